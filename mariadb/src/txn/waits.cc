/* SPDX-License-Identifier: GPL-2.0-only

   See txn/waits.h. */

#include "txn/waits.h"

#include <my_global.h>
#include <sql_class.h>

#include <new>

#include "txn/connection.h"
#include "txn/session.h"

// Functions of the server that no header declares.
extern "C" int thd_need_wait_reports(const MYSQL_THD thd);
extern "C" int thd_rpl_deadlock_check(MYSQL_THD thd, MYSQL_THD other_thd);

namespace fron {
namespace {

/** Keeps the waiting statement, for the page about the last deadlock. */
void keep_statement(MYSQL_THD waiter) {
  Connection *connection = Connection::find(waiter);
  if (!connection) return;
  try {
    connection->waits();
  } catch (const std::bad_alloc &) {
    // There is no memory for the statement: SHOW ENGINE FRONDB STATUS then shows the deadlock without it.
  }
}

/** Called by the thread that is about to wait. */
void report(void *, uint64_t, const uint64_t *holders, size_t count) {
  THD *waiter = _current_thd();
  if (!waiter) return;
  keep_statement(waiter);
  if (!thd_need_wait_reports(waiter)) return;
  // Marks the transaction as one that waited: a replica does not apply such a transaction optimistically again.
  thd_rpl_deadlock_check(waiter, nullptr);
  for_each_owner(holders, count, [](MYSQL_THD holder) { thd_rpl_deadlock_check(_current_thd(), holder); });
}

}  // namespace

Error report_waits(frondb_db *db) { return frondb_db_set_wait_hook(db, report, nullptr, nullptr); }

}  // namespace fron
