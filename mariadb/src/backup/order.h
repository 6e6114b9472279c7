/* SPDX-License-Identifier: GPL-2.0-only

   The parameters of a backup, and a backup that has begun. Its moment is the committed state that it will contain. */

#ifndef FRONDB_BACKUP_ORDER_H
#define FRONDB_BACKUP_ORDER_H

#include <cstdint>
#include <string>
#include <vector>

#include "engine/api.h"

namespace fron {

/** The target folder, the previous backup, and the speed limit of a backup. */
struct BackupOrder {
  std::string dir;
  /** The backup to continue; empty for a full backup. */
  std::string since;
  /** Speed limit; 0 means no limit. */
  uint64_t bytes_per_second;
};

/** A file that belongs to the data but not to the engine. */
struct AttachedFile {
  std::string name, bytes;
};

/** A backup that has begun, with the files of its moment. */
struct BegunBackup {
  Backup backup;
  std::vector<AttachedFile> definitions;
  /** Position in the binary log at the moment. */
  std::string position;
};

/** The reason why a backup failed; empty for success. */
using Failure = std::string;

/** Begins a backup: does the slow work that can precede the moment, so that commits are held back only briefly. */
Failure begin_backup(const BackupOrder &order, BegunBackup *begun);

/** Fixes the moment and records the position in the binary log. REQUIRES: the caller holds back commits. */
Failure fix_moment(BegunBackup *begun);

}  // namespace fron

#endif
