/* SPDX-License-Identifier: GPL-2.0-only

   See backup/variables.h. */

#include "backup/variables.h"

#include <set_var.h>
#include <sql_class.h>
#include <sql_lex.h>

#include <mysqld_error.h>

#include <string_view>

#include "backup/make.h"
#include "engine/errors.h"

namespace fron {
namespace {

char *allowed_prefix;

int make_backup_in(MYSQL_THD thd, struct st_mysql_sys_var *, void *save, struct st_mysql_value *value);
int check_since(MYSQL_THD thd, struct st_mysql_sys_var *, void *save, struct st_mysql_value *value);

MYSQL_THDVAR_STR(backup_dir, PLUGIN_VAR_NOCMDOPT | PLUGIN_VAR_MEMALLOC,
                 "Setting it makes a backup of all FronDB tables in this folder, which must be empty or missing; the "
                 "statement returns when the backup is complete.",
                 make_backup_in, nullptr, "");
MYSQL_THDVAR_STR(backup_since, PLUGIN_VAR_NOCMDOPT | PLUGIN_VAR_MEMALLOC,
                 "Folder of the backup that the next one continues, which then holds only what has changed; empty for a "
                 "full backup.",
                 check_since, nullptr, "");
MYSQL_THDVAR_ULONGLONG(backup_throttle, PLUGIN_VAR_RQCMDARG,
                       "Bytes a second that a backup reads, at most; 0 means no limit.", nullptr, nullptr, 0, 0,
                       ULONGLONG_MAX, 0);
MYSQL_THDVAR_BOOL(backup_wait_for_stage, PLUGIN_VAR_OPCMDARG,
                  "A backup waits for BACKUP STAGE BLOCK_COMMIT of another session, as of mariadb-backup, and has the "
                  "moment of that one.",
                  nullptr, nullptr, false);
MYSQL_SYSVAR_STR(backup_allowed_prefix, allowed_prefix, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                 "The only folder below which backups may be made; empty for any.", nullptr, nullptr, nullptr);

/** Returns true, with an error, if the statement sets this variable globally: the settings of a backup belong to the
    session that makes it. A global frondb_backup_since would make other sessions' full backups incremental. */
bool refuses_global(MYSQL_THD thd, std::string_view wanted) {
  List_iterator_fast<set_var_base> each(thd->lex->var_list);
  while (set_var_base *any = each++) {
    if (!any->is_system()) continue;
    auto *assignment = static_cast<set_var *>(any);
    std::string_view name(assignment->var->name.str, assignment->var->name.length);
    if (name != wanted || assignment->type != OPT_GLOBAL) continue;
    my_error(ER_LOCAL_VARIABLE, MYF(0), assignment->var->name.str);
    return true;
  }
  return false;
}

int check_since(MYSQL_THD thd, struct st_mysql_sys_var *variable, void *save, struct st_mysql_value *value) {
  return refuses_global(thd, "frondb_backup_since") || check_text(thd, variable, save, value);
}

/** Returns true, with an error, if the statement also sets another variable of backups, whose new value would take
    effect only after this variable's check. */
bool refuses_assignments(MYSQL_THD thd) {
  constexpr std::string_view OURS = "frondb_backup_", DIR = "frondb_backup_dir";
  List_iterator_fast<set_var_base> each(thd->lex->var_list);
  while (set_var_base *any = each++) {
    if (!any->is_system()) continue;
    auto *assignment = static_cast<set_var *>(any);
    std::string_view name(assignment->var->name.str, assignment->var->name.length);
    if (name != DIR && name.substr(0, OURS.size()) == OURS) {
      my_printf_error(ER_UNKNOWN_ERROR, "FronDB: set %s in a statement of its own, before frondb_backup_dir", MYF(0),
                      assignment->var->name.str);
      return true;
    }
  }
  return false;
}

/** Makes the backup while the server checks the value: while the server updates a variable, it may hold a lock on all
    variables. */
int make_backup_in(MYSQL_THD thd, struct st_mysql_sys_var *variable, void *save, struct st_mysql_value *value) {
  if (refuses_global(thd, "frondb_backup_dir") || check_text(thd, variable, save, value)) return 1;
  const char *dir = *static_cast<const char **>(save);
  if (!dir || !*dir) return 0;
  if (!thd->lex->stmt_var_list.is_empty() || !thd->lex->old_var_list.is_empty()) {
    // The server would set the variable again, to its old value.
    my_printf_error(ER_SET_STATEMENT_NOT_SUPPORTED, "FronDB: SET STATEMENT cannot make a backup: use SET", MYF(0));
    return 1;
  }
  if (refuses_assignments(thd)) return 1;
  return guarded([&] {
    const char *since = THDVAR(thd, backup_since);
    BackupOrder order = {dir, since ? since : "", THDVAR(thd, backup_throttle)};
    return int(make_backup(thd, order, THDVAR(thd, backup_wait_for_stage), allowed_prefix));
  });
}

}  // namespace

SystemVariables backup_variables() {
  return {MYSQL_SYSVAR(backup_dir), MYSQL_SYSVAR(backup_since), MYSQL_SYSVAR(backup_throttle),
          MYSQL_SYSVAR(backup_wait_for_stage), MYSQL_SYSVAR(backup_allowed_prefix)};
}

}  // namespace fron
