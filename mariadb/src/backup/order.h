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

/** A backup of which the moment is fixed, with the files of that moment. */
struct BegunBackup {
  Backup backup;
  std::vector<AttachedFile> files;
};

/** Why a backup is not made, in words; empty if nothing is wrong. */
using Failure = std::string;

/** Fixes the moment, while the caller holds back commits and changes of definitions. Adds the position in the binary log
    to the files. */
Failure fix_moment(const BackupOrder &order, BegunBackup *begun);

}  // namespace fron

#endif
