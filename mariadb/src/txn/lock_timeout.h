/* SPDX-License-Identifier: GPL-2.0-only

   How long a statement waits for row locks: the session's timeout, or the timeout of WAIT n or NOWAIT. */

#ifndef FRONDB_TXN_LOCK_TIMEOUT_H
#define FRONDB_TXN_LOCK_TIMEOUT_H

#include <my_global.h>
#include <mysql/plugin.h>

#include <cstdint>

namespace fron {

/** Returns the milliseconds that the current statement waits for a lock; 0 means not to wait. */
uint64_t statement_lock_timeout_millis(MYSQL_THD thd);

}  // namespace fron

#endif
