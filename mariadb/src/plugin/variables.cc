/* SPDX-License-Identifier: GPL-2.0-only

   See plugin/variables.h. */

#include "plugin/variables.h"

#include "backup/variables.h"
#include "engine/db.h"
#include "engine/option_rows.h"
#include "handler/optimize_variables.h"
#include "handler/read_free.h"
#include "inspect/status.h"
#include "table/auto_increment.h"
#include "table/options.h"
#include "txn/session_variables.h"

#include <mysqld.h>
#include <sql_class.h>

#include <string>
#include <utility>
#include <vector>

namespace fron {
namespace {

char *log_dir_value;

/** Sets a variable of the server if the engine has accepted the value; otherwise fails the statement. */
void keep(void *variable, const void *value, const Error &error) {
  if (error)
    my_printf_error(ER_UNKNOWN_ERROR, "FronDB: %s", MYF(0), error.message());
  else
    *static_cast<unsigned long long *>(variable) = *static_cast<const unsigned long long *>(value);
}

unsigned long long number(const void *value) { return *static_cast<const unsigned long long *>(value); }

void set_fsync_log_period(MYSQL_THD, struct st_mysql_sys_var *, void *variable, const void *value) {
  frondb_sync_mode mode = number(value) ? FRONDB_SYNC_EVERY_MILLIS : FRONDB_SYNC_ALWAYS;
  keep(variable, value, frondb_db_set_sync_mode(db(), mode, number(value)));
}

void set_checkpoint_period(MYSQL_THD, struct st_mysql_sys_var *, void *variable, const void *value) {
  keep(variable, value, frondb_db_set_checkpoint_millis(db(), number(value) * 1000));
}

void set_bandwidth_limit(MYSQL_THD, struct st_mysql_sys_var *, void *variable, const void *value) {
  keep(variable, value, frondb_db_set_background_bytes_per_second(db(), number(value)));
}

void set_memory(MYSQL_THD, struct st_mysql_sys_var *, void *variable, const void *value) {
  keep(variable, value, frondb_db_set_memory_bytes(db(), number(value)));
}

constexpr int AT_START = PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY;

/** Define a variable of the server. A C++ variable of the same name has its value. */
#define NUMBER(name, flags, text, update, initial, max) \
  unsigned long long name;                              \
  MYSQL_SYSVAR_ULONGLONG(name, name, flags, text, nullptr, update, initial, 0, max, 0)
/** As NUMBER, with the text, default and largest value of an option of the library. 0 is its default or no limit. */
#define NUMBER_OF(name, flags, option, update)                                                              \
  NUMBER(name, flags, database_rows::option.text, update, database_rows::option.initial, database_rows::option.max)
#define FLAG_OF(name, option)                                                                                      \
  my_bool name;                                                                                                    \
  MYSQL_SYSVAR_BOOL(name, name, PLUGIN_VAR_OPCMDARG | PLUGIN_VAR_READONLY, database_rows::option.text, nullptr, nullptr, \
                    database_rows::option.initial != 0)

NUMBER_OF(memory, PLUGIN_VAR_RQCMDARG, memory_bytes, set_memory);
MYSQL_SYSVAR_STR(log_dir, log_dir_value, AT_START,
                 "Folder of the engine's log, to put it on another device; empty means the folder of the data. "
                 "Must be the same at every start.",
                 nullptr, nullptr, nullptr);
NUMBER_OF(log_segment_size, AT_START, log_segment_bytes, nullptr);
FLAG_OF(log_compression, log_compression);
FLAG_OF(verify_fast_codecs, verify_fast_codecs);
NUMBER_OF(bandwidth_limit, PLUGIN_VAR_RQCMDARG, background_bytes_per_second, set_bandwidth_limit);
FLAG_OF(direct_io, direct_io);
NUMBER_OF(reserve, AT_START, reserve_bytes, nullptr);

// The values of these three mean something else than those of the library's options.
NUMBER(fsync_log_period, PLUGIN_VAR_RQCMDARG,
       "Milliseconds between two syncs of the log, for which commits do not wait. "
       "0: each commit waits until it is on disk, unless frondb_commit_sync is off.",
       set_fsync_log_period, 0, database_rows::sync.max);
NUMBER(checkpoint_period, PLUGIN_VAR_RQCMDARG,
       "Approximate seconds before a commit is written from the log to its tables, so that a recovery "
       "replays no more than that. 0: only the size of the log counts.",
       set_checkpoint_period, 60, database_rows::checkpoint_period.max / 1000);
unsigned int background_threads;
MYSQL_SYSVAR_UINT(background_threads, background_threads, AT_START,
                  "Number of threads that flush and merge. 0 means half of the cores, at least two.", nullptr,
                  nullptr, 0, 0, database_rows::background_threads.max, 0);

/** A variable that sets an option of the database. */
struct Setting {
  struct st_mysql_sys_var *variable;
  const char *option;
  /** Returns the option's value as a text. */
  std::string (*value)();
};

std::string on_or_off(my_bool flag) { return flag ? "on" : "off"; }

std::vector<Setting> settings() {
  return {
      {MYSQL_SYSVAR(memory), "memory_bytes", [] { return std::to_string(memory); }},
      {MYSQL_SYSVAR(log_segment_size), "log_segment_bytes", [] { return std::to_string(log_segment_size); }},
      {MYSQL_SYSVAR(log_compression), "log_compression", [] { return on_or_off(log_compression); }},
      {MYSQL_SYSVAR(verify_fast_codecs), "verify_fast_codecs", [] { return on_or_off(verify_fast_codecs); }},
      {MYSQL_SYSVAR(fsync_log_period), "sync",
       [] { return fsync_log_period ? std::to_string(fsync_log_period) + "ms" : "always"; }},
      {MYSQL_SYSVAR(checkpoint_period), "checkpoint_period", [] { return std::to_string(checkpoint_period) + "s"; }},
      {MYSQL_SYSVAR(bandwidth_limit), "background_bytes_per_second", [] { return std::to_string(bandwidth_limit); }},
      // 0 of the variable means the default. 0 of the library means no threads, which is for tests.
      {MYSQL_SYSVAR(background_threads), "background_threads",
       [] { return background_threads ? std::to_string(background_threads) : "default"; }},
      {MYSQL_SYSVAR(direct_io), "direct_io", [] { return on_or_off(direct_io); }},
      {MYSQL_SYSVAR(reserve), "reserve_bytes", [] { return std::to_string(reserve); }},
  };
}

SystemVariables all_variables() {
  SystemVariables all = {MYSQL_SYSVAR(log_dir)};
  for (const Setting &setting : settings()) all.push_back(setting.variable);
  for (const SystemVariables &some :
       {status_page_variables(), session_variables(), table_option_variables(), optimize_variables(),
        read_free_variables(), auto_increment_variables(), backup_variables()})
    all.insert(all.end(), some.begin(), some.end());
  all.push_back(nullptr);
  return all;
}

std::string octal(uint mode) {
  char text[16];
  snprintf(text, sizeof text, "0%o", mode);
  return text;
}

}  // namespace

struct st_mysql_sys_var **system_variables() {
  static SystemVariables all = all_variables();
  return all.data();
}

const char *log_dir() { return log_dir_value ? log_dir_value : ""; }

Error make_options(Options *options) {
  if (Error error = frondb_options_new(options->out())) return error;
  frondb_options *to = options->get();
  if (*log_dir())
    if (Error error = frondb_options_set_log_dir(to, log_dir())) return error;
  std::vector<std::pair<const char *, std::string>> values = {
      // Use the modes of the server's own files, from UMASK and UMASK_DIR.
      {"file_mode", octal((my_umask & 0666) | 0600)},
      {"dir_mode", octal((my_umask_dir & 0777) | 0700)},
      // This lets `frondb stats` and `frondb backup` run while the server is up, for users who may use its files
      // according to the modes above.
      {"attachable", "on"}};
  for (const Setting &setting : settings()) values.emplace_back(setting.option, setting.value());
  for (auto &[name, value] : values)
    if (Error error = frondb_options_set(to, name, value.c_str())) return error;
  return {};
}

}  // namespace fron
