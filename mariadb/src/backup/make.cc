/* SPDX-License-Identifier: GPL-2.0-only

   See backup/make.h. */

#include "backup/make.h"

#include <my_global.h>
#include <sql_class.h>

#include <mysqld_error.h>

#include <new>

#include "backup/commit_block.h"
#include "backup/definitions.h"
#include "backup/latest.h"
#include "backup/meeting.h"
#include "backup/place.h"
#include "backup/position.h"
#include "engine/crash_points.h"
#include "engine/db.h"
#include "engine/errors.h"
#include "engine/kill.h"
#include "engine/progress.h"

namespace fron {
namespace {

/** Maximum number of times that a backup's moment is fixed. It is fixed again if the binary log has grown meanwhile. */
constexpr int TRIES_MAX = 20;

/** The statement that makes a backup, for progress reports. */
struct Statement {
  THD *thd;
  /** Whether SHOW STATUS shows this backup. */
  bool is_noted;
  int percent;
};

int32_t report(void *of, const char *tree, uint64_t done, uint64_t total) {
  auto *statement = static_cast<Statement *>(of);
  may_crash_at("backup");
  if (statement->is_noted) note_progress_of_backup(done, total);
  int percent = total ? int(done * 100 / total) : 0;
  if (percent != statement->percent) {
    statement->percent = percent;
    char text[40];
    snprintf(text, sizeof text, "Backup about %d%% done", percent);
    show_in_processlist(statement->thd, text);
  }
  return report_progress(statement->thd, tree, done, total);
}

/** Fixes the backup's moment (backup/order.h) and holds back commits itself meanwhile, instead of waiting for another
    session. Returns true after an error that is raised; sets `failure` for any other error. */
bool fix_alone(THD *thd, BegunBackup *begun, Failure *failure) {
  CommitBlock block(thd);
  if (block.block_definitions()) return true;
  *failure = read_definitions(&begun->definitions);
  if (!failure->empty()) return false;
  if (block.block_commits()) return true;
  *failure = fix_moment(begun);
  return false;
}

Failure attach(const BegunBackup &begun) {
  auto attach = [&](const std::string &name, const std::string &bytes) {
    return Error(frondb_backup_attach(begun.backup.get(), name.c_str(), slice(bytes)));
  };
  for (const AttachedFile &file : begun.definitions)
    if (Error error = attach(file.name, file.bytes)) return Sentence(error).text();
  if (begun.position.empty()) return {};
  Error error = attach("replication_position", begun.position);
  return error ? Failure(Sentence(error).text()) : Failure();
}

/** Copies the data into the backup's folder. Returns true after a KILL. */
bool copy(THD *thd, const BackupOrder &order, const BegunBackup &begun, bool is_noted, Failure *failure) {
  Statement statement = {thd, is_noted, -1};
  Stats counts;
  thd_progress_init(thd, 1);
  Error error = frondb_backup_copy(begun.backup.get(), report, &statement, counts.out());
  thd_progress_end(thd);
  if (error && error.kind() == FRONDB_CANCELLED) return true;
  if (error) {
    *failure = Sentence(error).text();
    return false;
  }
  uint64_t bytes = 0;
  if (Error missing = frondb_stats_find(counts.get(), "bytes", &bytes)) bytes = 0;
  sql_print_information("FronDB: backup to %s is complete: %llu bytes", order.dir.c_str(), ulonglong(bytes));
  return false;
}

/** Makes the backup. Returns true after an error that is raised; sets `failure` for any other error. */
bool make(THD *thd, const BackupOrder &order, bool beside, bool is_noted, Failure *failure) {
  BegunBackup begun;
  if (beside && cannot_wait(thd)) return true;
  *failure = begin_backup(order, &begun);
  if (!failure->empty()) return false;
  if (beside) {
    if (!wait_for_stage(thd, &begun, failure)) {
      if (!is_killed(thd)) return false;
      thd->send_kill_message();
      return true;
    }
  } else if (fix_alone(thd, &begun, failure)) {
    return true;
  }
  if (failure->empty()) *failure = attach(begun);
  if (!failure->empty()) return false;
  if (!copy(thd, order, begun, is_noted, failure)) return false;
  thd->send_kill_message();
  return true;
}

}  // namespace

Failure begin_backup(const BackupOrder &order, BegunBackup *begun) {
  const char *since = order.since.empty() ? nullptr : order.since.c_str();
  Error error =
      frondb_db_begin_backup(db(), order.dir.c_str(), since, order.bytes_per_second, begun->backup.out());
  return error ? Failure(Sentence(error).text()) : Failure();
}

Failure fix_moment(BegunBackup *begun) {
  // A parallel replica releases the lock of a commit while it waits for the commits before it, and may write such a
  // commit to the binary log meanwhile. So try again if the binary log has grown.
  for (int tries = 0; tries < TRIES_MAX; tries++) {
    begun->position = replication_position();
    if (Error error = frondb_backup_fix(begun->backup.get())) return Sentence(error).text();
    if (replication_position() == begun->position) return {};
  }
  return "the binary log grows although commits are held back: stop the replica's SQL thread for the backup";
}

bool make_backup(THD *thd, const BackupOrder &order, bool beside, const char *allowed_prefix) {
  if (lacks_privileges(thd)) return true;
  bool is_noted = note_begin_of_backup(order.dir), is_raised = false;
  const char *before = thd_proc_info(thd, "Backup");
  Failure failure;
  try {
    failure = check_place(order, allowed_prefix);
    if (failure.empty()) is_raised = make(thd, order, beside, is_noted, &failure);
  } catch (const std::bad_alloc &) {
    failure = "out of memory";
  }
  thd_proc_info(thd, before);
  const char *why = is_raised ? "the statement was killed or refused" : failure.c_str();
  if (is_noted) note_end_of_backup(why);
  if (*why) sql_print_error("FronDB: no backup in %s: %s", order.dir.c_str(), why);
  if (!is_raised && *why)
    my_printf_error(ER_UNKNOWN_ERROR, "FronDB: no backup in %s: %s", MYF(0), order.dir.c_str(), why);
  return is_raised || *why;
}

}  // namespace fron
