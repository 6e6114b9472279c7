/* SPDX-License-Identifier: GPL-2.0-only

   What a statement orders, and a backup of which the moment is fixed. */

#ifndef FRONDB_BACKUP_ORDER_H
#define FRONDB_BACKUP_ORDER_H

#include <cstdint>
#include <string>
#include <vector>

#include "engine/api.h"

namespace fron {

/** Where to, from what on, and how fast. */
struct BackupOrder {
  std::string dir;
  /** The backup to continue; empty for a full one. */
  std::string since;
  /** 0 means no limit. */
  uint64_t bytes_per_second;
};

/** A file that belongs to the data and is not the engine's. */
struct AttachedFile {
  std::string name, bytes;
};

/** A backup that has begun, with the files of its moment. */
struct BegunBackup {
  Backup backup;
  std::vector<AttachedFile> definitions;
  /** In the binary log, at the moment. */
  std::string position;
};

/** Why a backup is not made, in words; empty if nothing is wrong. */
using Failure = std::string;

/** Begins a backup: nothing that may take long is left to be done while commits are held back. */
Failure begin_backup(const BackupOrder &order, BegunBackup *begun);

/** Fixes the moment and notes the position in the binary log, while the caller holds back commits. */
Failure fix_moment(BegunBackup *begun);

}  // namespace fron

#endif
