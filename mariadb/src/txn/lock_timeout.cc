/* SPDX-License-Identifier: GPL-2.0-only

   See txn/lock_timeout.h.

   The server does not pass WAIT n and NOWAIT to engines. It sets two variables of the session to n or 0 while the
   statement runs: its own `lock_wait_timeout` and InnoDB's `innodb_lock_wait_timeout`. Their defaults differ (a day,
   50 seconds), so equal values mean that the statement has such a clause, or that the session wants this timeout
   for every wait. */

#include "txn/lock_timeout.h"

#include <sql_class.h>
#include <set_var.h>

#include <algorithm>

#include "txn/session_variables.h"

namespace fron {
namespace {

/** Returns the variable; null if the server does not have it, because it runs without InnoDB. */
sys_var *variable(MYSQL_THD thd, const char *name) { return find_sys_var(thd, name, strlen(name), true); }

template <typename T>
uint64_t value(const sys_var *variable, MYSQL_THD thd) {
  return *reinterpret_cast<const T *>(variable->value_ptr(thd, OPT_SESSION, &null_clex_str));
}

}  // namespace

uint64_t statement_lock_timeout_millis(MYSQL_THD thd) {
  static const sys_var *const of_server = variable(thd, "lock_wait_timeout");
  static const sys_var *const of_innodb = variable(thd, "innodb_lock_wait_timeout");
  uint64_t of_session = session_lock_timeout_millis(thd);
  if (!of_server) return of_session;
  uint64_t seconds = value<unsigned long>(of_server, thd);
  // Without InnoDB's variable a statement's clause looks the same as the session's setting; take the shorter timeout.
  if (!of_innodb) return std::min(seconds * 1000, of_session);
  return seconds == value<unsigned int>(of_innodb, thd) ? seconds * 1000 : of_session;
}

}  // namespace fron
