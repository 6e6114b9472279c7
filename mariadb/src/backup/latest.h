/* SPDX-License-Identifier: GPL-2.0-only

   The latest backup, for SHOW STATUS, so that other sessions see its progress and result. */

#ifndef FRONDB_BACKUP_LATEST_H
#define FRONDB_BACKUP_LATEST_H

#include <cstdint>
#include <string>

namespace fron {

struct LatestBackup {
  std::string dir;
  /** Bytes read so far, and bytes to read in all. */
  uint64_t done = 0, total = 0;
  bool is_running = false;
  /** Why the backup failed; empty while it runs, and after success. */
  std::string error;
};

/** Makes a new backup the latest one. Returns false if another backup is running; that one then stays the latest. */
bool note_begin_of_backup(const std::string &dir);
void note_progress_of_backup(uint64_t done, uint64_t total);
void note_end_of_backup(const std::string &error);
LatestBackup latest_backup();

}  // namespace fron

#endif
