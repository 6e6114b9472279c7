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
#include "engine/progress.h"

namespace fron {
namespace {

/** The statement of a backup, for the progress. */
struct Statement {
  THD *thd;
  int percent;
};

int32_t report(void *of, const char *tree, uint64_t done, uint64_t total) {
  auto *statement = static_cast<Statement *>(of);
  may_crash_at("backup");
  note_progress_of_backup(done, total);
  int percent = total ? int(done * 100 / total) : 0;
  if (percent != statement->percent) {
    statement->percent = percent;
    char text[40];
    snprintf(text, sizeof text, "Backup about %d%% done", percent);
    show_in_processlist(statement->thd, text);
  }
  return report_progress(statement->thd, tree, done, total);
}

/** Fixes the moment with locks of its own. True after an error that is raised; another one is in `failure`. */
bool fix_alone(THD *thd, const BackupOrder &order, BegunBackup *begun, Failure *failure) {
  CommitBlock block(thd);
  if (block.block_definitions()) return true;
  *failure = read_definitions(&begun->files);
  if (!failure->empty()) return false;
  if (block.block_commits()) return true;
  *failure = fix_moment(order, begun);
  return false;
}

Failure attach(const BegunBackup &begun) {
  for (const AttachedFile &file : begun.files)
    if (Error error = frondb_backup_attach(begun.backup.get(), file.name.c_str(), slice(file.bytes)))
      return Sentence(error).text();
  return {};
}

/** Copies the backup. True after a KILL. */
bool copy(THD *thd, const BackupOrder &order, const BegunBackup &begun, Failure *failure) {
  Statement statement = {thd, -1};
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

/** True after an error that is raised; another one is in `failure`. */
bool make(THD *thd, const BackupOrder &order, bool beside, Failure *failure) {
  BegunBackup begun;
  if (beside) {
    if (!wait_for_stage(thd, order, &begun, failure)) {
      thd->send_kill_message();
      return true;
    }
  } else if (fix_alone(thd, order, &begun, failure)) {
    return true;
  }
  if (failure->empty()) *failure = attach(begun);
  if (!failure->empty()) return false;
  if (!copy(thd, order, begun, failure)) return false;
  thd->send_kill_message();
  return true;
}

}  // namespace

Failure fix_moment(const BackupOrder &order, BegunBackup *begun) {
  const char *since = order.since.empty() ? nullptr : order.since.c_str();
  if (Error error = frondb_db_begin_backup(db(), order.dir.c_str(), since, order.bytes_per_second, begun->backup.out()))
    return Sentence(error).text();
  std::string position = replication_position();
  if (!position.empty()) begun->files.push_back({"replication_position", position});
  return {};
}

bool make_backup(THD *thd, const BackupOrder &order, bool beside, const char *allowed_prefix) {
  if (lacks_privileges(thd)) return true;
  Failure failure = check_place(order.dir, allowed_prefix);
  bool is_raised = false;
  const char *before = thd_proc_info(thd, "Backup");
  if (failure.empty()) {
    bool is_noted = note_begin_of_backup(order.dir);
    try {
      is_raised = make(thd, order, beside, &failure);
    } catch (const std::bad_alloc &) {
      failure = "out of memory";
    }
    if (is_noted) note_end_of_backup(is_raised ? "the statement was killed, or could not hold back others" : failure);
  }
  thd_proc_info(thd, before);
  if (!failure.empty()) {
    my_printf_error(ER_UNKNOWN_ERROR, "FronDB: no backup in %s: %s", MYF(0), order.dir.c_str(), failure.c_str());
    sql_print_error("FronDB: no backup in %s: %s", order.dir.c_str(), failure.c_str());
  }
  return is_raised || !failure.empty();
}

}  // namespace fron
