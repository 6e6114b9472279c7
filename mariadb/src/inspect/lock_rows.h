/* SPDX-License-Identifier: GPL-2.0-only

   Locks, waits and the last deadlock of the engine with the names of tables and readable keys: for status
   pages and the information schema. */

#ifndef FRONDB_INSPECT_LOCK_ROWS_H
#define FRONDB_INSPECT_LOCK_ROWS_H

#include <memory>
#include <string>
#include <vector>

#include "dictionary/tree_names.h"
#include "engine/api.h"

namespace fron {

/** A lock that is held, or a wait for one. */
struct LockRow {
  uint64_t transaction = 0, tree = 0;
  /** Null for a tree that is no table's. */
  std::shared_ptr<const IndexShape> index;
  const char *mode = "", *area = "";
  /** The first key, and the first one behind; none at the ends of the index, no upper one for a row. */
  bool has_lower = false, has_upper = false;
  std::string lower, upper;
  /** Of a wait. */
  std::vector<uint64_t> blockers;
  double waited_seconds = 0;

  /** In words. */
  std::string text() const;
};

/** At most so many of a list are read out: for people more is less. */
constexpr size_t LOCK_ROWS_MAX = 100000;

Error held_locks(TreeNames *names, std::vector<LockRow> *rows);
Error lock_waits(TreeNames *names, std::vector<LockRow> *rows);

/** The last deadlock; `rows` are its waits in the order of the circle. */
Error last_deadlock(TreeNames *names, frondb_deadlock_info *info, std::vector<LockRow> *rows, bool *found);

}  // namespace fron

#endif
