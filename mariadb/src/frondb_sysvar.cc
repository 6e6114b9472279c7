/* SPDX-License-Identifier: GPL-2.0-only

   See frondb_sysvar.h. */

#include "frondb_sysvar.h"

#include "frondb_options.h"

#include <mysqld.h>
#include <sql_class.h>

namespace fron {
namespace {

unsigned long long memory;
unsigned long long fsync_log_period;
char *log_dir;
unsigned int background_threads;

MYSQL_SYSVAR_ULONGLONG(memory, memory, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                       "Memory of the engine, bytes: cache, write buffers and work together. "
                       "0 takes a quarter of the machine's.",
                       nullptr, nullptr, 0, 0, ~0ULL, 0);
MYSQL_SYSVAR_STR(log_dir, log_dir, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                 "Folder of the engine's log; empty for the folder of its data.", nullptr, nullptr,
                 nullptr);
MYSQL_SYSVAR_ULONGLONG(fsync_log_period, fsync_log_period, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                       "Milliseconds between two syncs of the log, for commits that do not wait "
                       "for one. 0: every commit is synced.",
                       nullptr, nullptr, 0, 0, 3600000, 0);
MYSQL_SYSVAR_UINT(background_threads, background_threads, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                  "Threads that flush and merge. 0 takes as many as there are cores, two at least.",
                  nullptr, nullptr, 0, 0, 256, 0);
MYSQL_THDVAR_BOOL(commit_sync, PLUGIN_VAR_OPCMDARG,
                  "Whether a commit waits until it is on the disk.", nullptr, nullptr, true);
MYSQL_THDVAR_BOOL(snapshot_isolation, PLUGIN_VAR_OPCMDARG,
                  "Whether, at REPEATABLE READ, writing a row that changed since the transaction's "
                  "snapshot is an error.",
                  nullptr, nullptr, false);
MYSQL_THDVAR_ULONG(lock_wait_timeout, PLUGIN_VAR_RQCMDARG,
                   "Seconds to wait for a lock of a row.", nullptr, nullptr, 50, 0, 1073741824, 0);

}  // namespace

struct st_mysql_sys_var *system_variables[] = {
    MYSQL_SYSVAR(memory),      MYSQL_SYSVAR(log_dir),
    MYSQL_SYSVAR(fsync_log_period), MYSQL_SYSVAR(background_threads),
    MYSQL_SYSVAR(commit_sync), MYSQL_SYSVAR(snapshot_isolation),
    MYSQL_SYSVAR(lock_wait_timeout),
    default_compression_variable, default_block_size_variable, default_fanout_variable, nullptr};

Error make_options(Options *options) {
  if (Error error = frondb_options_new(options->out())) return error;
  if (memory)
    if (Error error = frondb_options_set_memory_bytes(options->get(), memory)) return error;
  if (log_dir && *log_dir)
    if (Error error = frondb_options_set_log_dir(options->get(), log_dir)) return error;
  if (background_threads)
    if (Error error = frondb_options_set_background_threads(options->get(), background_threads))
      return error;
  frondb_sync_mode mode = fsync_log_period ? FRONDB_SYNC_EVERY_MILLIS : FRONDB_SYNC_ALWAYS;
  return frondb_options_set_sync(options->get(), mode, fsync_log_period);
}

bool session_snapshot_isolation(MYSQL_THD thd) { return THDVAR(thd, snapshot_isolation); }

uint64_t session_lock_timeout_millis(MYSQL_THD thd) {
  return uint64_t(THDVAR(thd, lock_wait_timeout)) * 1000;
}

frondb_durability session_durability(MYSQL_THD thd) {
  return THDVAR(thd, commit_sync) ? FRONDB_SYNC : FRONDB_NO_SYNC;
}

}  // namespace fron
