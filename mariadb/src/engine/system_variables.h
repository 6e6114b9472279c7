/* SPDX-License-Identifier: GPL-2.0-only

   The type of a list of system variables. The file that defines variables has a function that returns them;
   plugin/variables.cc joins all lists for the server. */

#ifndef FRONDB_ENGINE_SYSTEM_VARIABLES_H
#define FRONDB_ENGINE_SYSTEM_VARIABLES_H

#include <vector>

struct st_mysql_sys_var;

namespace fron {

using SystemVariables = std::vector<struct st_mysql_sys_var *>;

}  // namespace fron

#endif
