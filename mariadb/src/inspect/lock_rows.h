/* SPDX-License-Identifier: GPL-2.0-only

   The engine's locks, waits and latest deadlock, with the names of tables and readable keys, for status pages and the
   information schema. */

#ifndef FRONDB_INSPECT_LOCK_ROWS_H
#define FRONDB_INSPECT_LOCK_ROWS_H

#include <memory>
#include <string>
#include <vector>

#include "dictionary/tree_names.h"
#include "engine/api.h"

namespace fron {

/** A held lock, or a wait for a lock. */
struct LockRow {
  uint64_t transaction = 0, tree = 0;
  /** The index; null for a tree that belongs to no table. */
  std::shared_ptr<const IndexShape> index;
  const char *mode = "", *area = "";
  /** The first key of the area, and the first key after it. Absent at an end of the index; a row has no upper key. */
  bool has_lower = false, has_upper = false;
  std::string lower, upper;
  /** For a wait: the transactions that it waits for. */
  std::vector<uint64_t> blockers;
  double waited_seconds = 0;

  /** Returns the lock in words. */
  std::string text() const;
};

/** Maximum number of rows read from one of the engine's lists of locks. */
constexpr size_t LOCK_ROWS_MAX = 100000;

Error held_locks(TreeNames *names, std::vector<LockRow> *rows);
Error lock_waits(TreeNames *names, std::vector<LockRow> *rows);

/** Reads the latest deadlock; `rows` are its waits in the order of the cycle. */
Error last_deadlock(TreeNames *names, frondb_deadlock_info *info, std::vector<LockRow> *rows, bool *found);

}  // namespace fron

#endif
