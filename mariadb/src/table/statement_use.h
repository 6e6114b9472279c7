/* SPDX-License-Identifier: GPL-2.0-only

   How the current statement uses a table. */

#ifndef FRONDB_TABLE_STATEMENT_USE_H
#define FRONDB_TABLE_STATEMENT_USE_H

#include <my_global.h>
#include <thr_lock.h>

#include <vector>

#include "engine/api.h"

namespace fron {

class Connection;

struct StatementUse {
  /** The table lock that the server requested last. */
  thr_lock_type asked_lock = TL_UNLOCK;
  /** The table lock that the statement has. */
  thr_lock_type type = TL_READ;
  /** Whether a replica that repeats the statement must read the same rows of the table (handler/statement.cc). Used at
      REPEATABLE READ. */
  bool is_repeated = false;
  /** Whether the handler was made by clone(), for this statement. */
  bool is_clone = false;
  Connection *connection = nullptr;
  /** How the statement locks rows, and whether it waits for locks. */
  frondb_lock row_lock = FRONDB_LOCK_NONE;
  frondb_wait row_wait = FRONDB_WAIT;
  /** Whether the server wants a locked row as it was last committed, and then decides whether to wait for it. */
  bool is_semi_consistent = false;
  /** Whether the server reads only fields that the index contains (HA_EXTRA_KEYREAD). */
  bool key_read = false;
  /** Whether the statement is HANDLER .. READ, which continues over many statements. */
  bool is_sql_handler = false;
  /** Whether the statement writes to the row that has a duplicate key: REPLACE, ON DUPLICATE KEY UPDATE. */
  bool writes_duplicates = false;
  /** Whether the statement has called check(): its later scans belong to the check and do not copy the table. */
  bool is_checked = false;
  /** Whether the statement has written to the table. */
  bool has_written = false;
  /** For each tree, whether the statement's snapshot has it; empty if the snapshot has all. */
  std::vector<bool> seen_trees;

  bool locks_rows() const { return row_lock != FRONDB_LOCK_NONE; }
  /** Returns whether entries are read one by one: each is locked, or each may be read by a statement of its own
      (HANDLER). */
  bool reads_singly() const { return locks_rows() || is_sql_handler; }
};

}  // namespace fron

#endif
