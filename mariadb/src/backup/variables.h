/* SPDX-License-Identifier: GPL-2.0-only

   System variables with which a session makes backups. */

#ifndef FRONDB_BACKUP_VARIABLES_H
#define FRONDB_BACKUP_VARIABLES_H

#include <my_global.h>
#include <mysql/plugin.h>

namespace fron {

/** The variables, for the plugin's list. */
extern struct st_mysql_sys_var *const backup_dir_variable;
extern struct st_mysql_sys_var *const backup_since_variable;
extern struct st_mysql_sys_var *const backup_throttle_variable;
extern struct st_mysql_sys_var *const backup_wait_for_stage_variable;
extern struct st_mysql_sys_var *const backup_allowed_prefix_variable;

}  // namespace fron

#endif
