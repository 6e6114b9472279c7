/* SPDX-License-Identifier: GPL-2.0-only

   System variables of a session that transactions read: how durable commits are, isolation, waits for locks. */

#ifndef FRONDB_TXN_SESSION_VARIABLES_H
#define FRONDB_TXN_SESSION_VARIABLES_H

#include "engine/api.h"
#include "engine/system_variables.h"

#include <my_global.h>
#include <mysql/plugin.h>

namespace fron {

SystemVariables session_variables();

/** Returns the number of a statement's rows at which they are written in bulk; 0 for never. */
size_t session_bulk_rows(MYSQL_THD thd);
bool session_snapshot_isolation(MYSQL_THD thd);
uint64_t session_lock_timeout_millis(MYSQL_THD thd);
frondb_durability session_durability(MYSQL_THD thd);

}  // namespace fron

#endif
