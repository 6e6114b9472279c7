/* SPDX-License-Identifier: GPL-2.0-only

   The system variables, and the options of the engine that they set. */

#ifndef FRONDB_PLUGIN_VARIABLES_H
#define FRONDB_PLUGIN_VARIABLES_H

#include "engine/api.h"

#include <my_global.h>
#include <mysql/plugin.h>

struct st_mysql_sys_var;

namespace fron {

/** Returns all system variables, with a null pointer at the end. */
struct st_mysql_sys_var **system_variables();

/** Creates the options of the database from the variables given at the server's start. */
Error make_options(Options *options);

/** Returns `frondb_log_dir`; empty if it is not given. */
const char *log_dir();

}  // namespace fron

#endif
