/* SPDX-License-Identifier: GPL-2.0-only

   The system variables, and what they mean for the engine. */

#ifndef FRONDB_PLUGIN_VARIABLES_H
#define FRONDB_PLUGIN_VARIABLES_H

#include "engine/api.h"

#include <my_global.h>
#include <mysql/plugin.h>

struct st_mysql_sys_var;

namespace fron {

extern struct st_mysql_sys_var *system_variables[];

/** Where the database is: below the server's data directory. */
constexpr const char *DATABASE_DIR = "#frondb";

/** Options of the database, from the variables that are set when the server starts. */
Error make_options(Options *options);

bool session_snapshot_isolation(MYSQL_THD thd);
uint64_t session_lock_timeout_millis(MYSQL_THD thd);
frondb_durability session_durability(MYSQL_THD thd);

}  // namespace fron

#endif
