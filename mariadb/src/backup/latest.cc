/* SPDX-License-Identifier: GPL-2.0-only

   See backup/latest.h. */

#include "backup/latest.h"

#include <mutex>

namespace fron {
namespace {

std::mutex lock;
LatestBackup latest;

}  // namespace

bool note_begin_of_backup(const std::string &dir) {
  std::lock_guard<std::mutex> guard(lock);
  if (latest.is_running) return false;
  latest = LatestBackup();
  latest.dir = dir;
  return latest.is_running = true;
}

void note_progress_of_backup(uint64_t done, uint64_t total) {
  std::lock_guard<std::mutex> guard(lock);
  latest.done = done;
  latest.total = total;
}

void note_end_of_backup(const std::string &error) {
  std::lock_guard<std::mutex> guard(lock);
  latest.is_running = false;
  latest.error = error;
}

LatestBackup latest_backup() {
  std::lock_guard<std::mutex> guard(lock);
  return latest;
}

}  // namespace fron
