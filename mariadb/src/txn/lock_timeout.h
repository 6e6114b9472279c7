/* SPDX-License-Identifier: GPL-2.0-only

   How long a statement waits for locks of rows: what the session says, or WAIT n and NOWAIT. */

#ifndef FRONDB_TXN_LOCK_TIMEOUT_H
#define FRONDB_TXN_LOCK_TIMEOUT_H

#include <my_global.h>
#include <mysql/plugin.h>

#include <cstdint>

namespace fron {

/** Milliseconds that the present statement waits for a lock; 0: not at all. */
uint64_t statement_lock_timeout_millis(MYSQL_THD thd);

}  // namespace fron

#endif
