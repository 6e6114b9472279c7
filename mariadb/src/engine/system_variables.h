/* SPDX-License-Identifier: GPL-2.0-only

   The type of a list of system variables, and checks of texts that SET gives to them. Each file that defines variables
   has a function that returns their list; plugin/variables.cc joins all lists for the server. */

#ifndef FRONDB_ENGINE_SYSTEM_VARIABLES_H
#define FRONDB_ENGINE_SYSTEM_VARIABLES_H

#include <vector>

class THD;
struct st_mysql_sys_var;
struct st_mysql_value;
struct st_typelib;

namespace fron {

using SystemVariables = std::vector<struct st_mysql_sys_var *>;

/** Check of a variable that is a text: takes it as the server does, but refuses a NUL byte, where the value would end and
    the rest be lost. Returns nonzero if the text is refused; the server then raises error 1231. */
int check_text(THD *thd, struct st_mysql_sys_var *, void *save, struct st_mysql_value *value);

/** Check of a variable whose value is one of some names or the number of a name. Refuses a NUL byte too. */
int check_name(const st_typelib &names, void *save, struct st_mysql_value *value);

/** check_name() for NAMES, with the parameters that the definition of a variable requires. */
template <const st_typelib &NAMES>
int check_name_of(THD *, struct st_mysql_sys_var *, void *save, struct st_mysql_value *value) {
  return check_name(NAMES, save, value);
}

}  // namespace fron

#endif
