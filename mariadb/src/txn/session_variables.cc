/* SPDX-License-Identifier: GPL-2.0-only

   See txn/session_variables.h. */

#include "txn/session_variables.h"

#include <sql_class.h>

#include "engine/server.h"

namespace fron {
namespace {

MYSQL_THDVAR_BOOL(commit_sync, PLUGIN_VAR_OPCMDARG,
                  "A commit waits until it is on disk.", nullptr, nullptr, true);
MYSQL_THDVAR_BOOL(snapshot_isolation, PLUGIN_VAR_OPCMDARG,
                  "At REPEATABLE READ, fail a write of a row that has changed since the transaction's "
                  "snapshot.",
                  nullptr, nullptr, SNAPSHOT_ISOLATION_BY_DEFAULT);
MYSQL_THDVAR_ULONG(lock_wait_timeout, PLUGIN_VAR_RQCMDARG,
                   "Seconds to wait for a row lock.", nullptr, nullptr, 50, 0, 1073741824, 0);

MYSQL_THDVAR_ULONG(bulk_insert_rows, PLUGIN_VAR_RQCMDARG,
                   "INSERT .. SELECT, LOAD DATA and INSERT .. VALUES of at least this many rows (or 4 MiB) into an empty table "
                   "lock the whole table, and sort their rows before they write them. 0: never.",
                   nullptr, nullptr, 1000, 0, ~0UL, 0);

}  // namespace

SystemVariables session_variables() {
  return {MYSQL_SYSVAR(commit_sync), MYSQL_SYSVAR(snapshot_isolation), MYSQL_SYSVAR(lock_wait_timeout),
          MYSQL_SYSVAR(bulk_insert_rows)};
}

size_t session_bulk_rows(MYSQL_THD thd) { return THDVAR(thd, bulk_insert_rows); }

bool session_snapshot_isolation(MYSQL_THD thd) { return THDVAR(thd, snapshot_isolation); }

uint64_t session_lock_timeout_millis(MYSQL_THD thd) {
  return uint64_t(THDVAR(thd, lock_wait_timeout)) * 1000;
}

frondb_durability session_durability(MYSQL_THD thd) {
  return THDVAR(thd, commit_sync) ? FRONDB_SYNC : FRONDB_NO_SYNC;
}

}  // namespace fron
