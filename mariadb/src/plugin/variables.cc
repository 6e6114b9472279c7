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

unsigned long long memory, fsync_log_period, checkpoint_period, bandwidth_limit, log_segment_size, reserve;
char *log_dir_value;
unsigned int background_threads;
my_bool log_compression, verify_fast_codecs, direct_io;

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
constexpr int FLAG_AT_START = PLUGIN_VAR_OPCMDARG | PLUGIN_VAR_READONLY;

MYSQL_SYSVAR_ULONGLONG(memory, memory, PLUGIN_VAR_RQCMDARG,
                       "Bytes of memory for the engine: cache, write buffers and work together. "
                       "0 means a quarter of the machine's memory.",
                       nullptr, set_memory, 0, 0, database_rows::memory_bytes.max, 0);
MYSQL_SYSVAR_STR(log_dir, log_dir_value, AT_START,
                 "Folder of the engine's log, to put it on another device; empty means the folder of the data. "
                 "Must be the same at every start.",
                 nullptr, nullptr, nullptr);
MYSQL_SYSVAR_ULONGLONG(log_segment_size, log_segment_size, AT_START,
                       "Largest size of a log file in bytes. 0 means a quarter of the write buffer, at "
                       "most 100 MiB.",
                       nullptr, nullptr, 0, 0, database_rows::log_segment_bytes.max, 0);
MYSQL_SYSVAR_BOOL(log_compression, log_compression, FLAG_AT_START,
                  "Compress records of the log where that saves space.", nullptr, nullptr, false);
MYSQL_SYSVAR_BOOL(verify_fast_codecs, verify_fast_codecs, FLAG_AT_START,
                  "Decode and compare each block that lz4 or zstd up to level 3 has compressed before it is written, "
                  "as is always done with other codecs.",
                  nullptr, nullptr, false);
MYSQL_SYSVAR_ULONGLONG(fsync_log_period, fsync_log_period, PLUGIN_VAR_RQCMDARG,
                       "Milliseconds between two syncs of the log, for which commits do not wait. "
                       "0: each commit waits until it is on disk, unless frondb_commit_sync is off.",
                       nullptr, set_fsync_log_period, 0, 0, database_rows::sync.max, 0);
MYSQL_SYSVAR_ULONGLONG(checkpoint_period, checkpoint_period, PLUGIN_VAR_RQCMDARG,
                       "Approximate seconds before a commit is written from the log to its tables, so that a recovery "
                       "replays no more than that. 0: only the size of the log counts.",
                       nullptr, set_checkpoint_period, 60, 0, database_rows::checkpoint_period.max / 1000, 0);
MYSQL_SYSVAR_ULONGLONG(bandwidth_limit, bandwidth_limit, PLUGIN_VAR_RQCMDARG,
                       "Bytes per second that flushes and merges may write. 0 means no limit.", nullptr,
                       set_bandwidth_limit, 0, 0, ~0ULL, 0);
MYSQL_SYSVAR_UINT(background_threads, background_threads, AT_START,
                  "Number of threads that flush and merge. 0 means half of the cores, at least two.", nullptr,
                  nullptr, 0, 0, database_rows::background_threads.max, 0);
MYSQL_SYSVAR_BOOL(direct_io, direct_io, FLAG_AT_START,
                  "Bypass the operating system's cache for data files where the file system can.", nullptr,
                  nullptr, true);
MYSQL_SYSVAR_ULONGLONG(reserve, reserve, AT_START,
                       "Bytes of disk space reserved for deletes and one merge on a full disk.", nullptr, nullptr,
                       database_rows::reserve_bytes.initial, 0, database_rows::reserve_bytes.max, 0);

}  // namespace

struct st_mysql_sys_var *system_variables[] = {
    MYSQL_SYSVAR(memory),
    MYSQL_SYSVAR(log_dir),
    MYSQL_SYSVAR(log_segment_size),
    MYSQL_SYSVAR(log_compression),
    MYSQL_SYSVAR(verify_fast_codecs),
    MYSQL_SYSVAR(fsync_log_period),
    MYSQL_SYSVAR(checkpoint_period),
    MYSQL_SYSVAR(bandwidth_limit),
    MYSQL_SYSVAR(background_threads),
    MYSQL_SYSVAR(direct_io),
    MYSQL_SYSVAR(reserve),
    drive_tbw_variable,
    commit_sync_variable,
    snapshot_isolation_variable,
    lock_wait_timeout_variable,
    bulk_insert_rows_variable,
    default_compression_variable,
#define VARIABLE(field, sql, library) default_##field##_variable,
    SQL_TREE_OPTIONS(VARIABLE)
#undef VARIABLE
    optimize_mode_variable, optimize_throttle_variable, optimize_index_name_variable,
    optimize_index_fraction_variable,
    rpl_lookup_rows_variable, rpl_unique_checks_variable,
    autoinc_lock_mode_variable,
    backup_dir_variable, backup_since_variable, backup_throttle_variable, backup_wait_for_stage_variable,
    backup_allowed_prefix_variable, nullptr};

const char *log_dir() { return log_dir_value ? log_dir_value : ""; }

static std::string octal(uint mode) {
  char text[16];
  snprintf(text, sizeof text, "0%o", mode);
  return text;
}

Error make_options(Options *options) {
  if (Error error = frondb_options_new(options->out())) return error;
  frondb_options *to = options->get();
  if (*log_dir())
    if (Error error = frondb_options_set_log_dir(to, log_dir())) return error;
  std::vector<std::pair<const char *, std::string>> values = {
      // Use the modes of the server's own files, from UMASK and UMASK_DIR.
      {"file_mode", octal((my_umask & 0666) | 0600)},
      {"dir_mode", octal((my_umask_dir & 0777) | 0700)},
      // For `frondb stats` and `frondb backup` run while the server is up, by users who may use its files according to
      // the modes above.
      {"attachable", "on"},
      {"sync", fsync_log_period ? std::to_string(fsync_log_period) + "ms" : "always"},
      {"log_segment_bytes", std::to_string(log_segment_size)},
      {"log_compression", log_compression ? "on" : "off"},
      {"verify_fast_codecs", verify_fast_codecs ? "on" : "off"},
      {"direct_io", direct_io ? "on" : "off"},
      {"reserve_bytes", std::to_string(reserve)},
      {"checkpoint_period", std::to_string(checkpoint_period) + "s"},
      {"background_bytes_per_second", std::to_string(bandwidth_limit)}};
  // 0 leaves the choice of these two to the library.
  if (memory) values.emplace_back("memory_bytes", std::to_string(memory));
  if (background_threads) values.emplace_back("background_threads", std::to_string(background_threads));
  for (auto &[name, value] : values)
    if (Error error = frondb_options_set(to, name, value.c_str())) return error;
  return {};
}

}  // namespace fron
