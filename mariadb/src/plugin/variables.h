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

/** Options of the database, from the variables that are set when the server starts. */
Error make_options(Options *options);

}  // namespace fron

#endif
