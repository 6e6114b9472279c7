/* SPDX-License-Identifier: GPL-2.0-only

   System variables of a session that control OPTIMIZE TABLE. */

#ifndef FRONDB_HANDLER_OPTIMIZE_VARIABLES_H
#define FRONDB_HANDLER_OPTIMIZE_VARIABLES_H

#include "engine/system_variables.h"

#include <cstdint>

#include <my_global.h>
#include <mysql/plugin.h>

namespace fron {

SystemVariables optimize_variables();

/** Returns whether OPTIMIZE TABLE lets the server copy the table (frondb_optimize_mode=copy). */
bool session_optimizes_by_copy(MYSQL_THD thd);
/** Leaves to optimize per second; 0 means no limit. */
uint64_t session_optimize_throttle(MYSQL_THD thd);
/** Returns the only index to optimize; empty for all. */
const char *session_optimize_index(MYSQL_THD thd);
/** Returns the part of an index to optimize, as a fraction. */
double session_optimize_fraction(MYSQL_THD thd);

}  // namespace fron

#endif
