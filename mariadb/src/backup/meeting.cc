/* SPDX-License-Identifier: GPL-2.0-only

   See backup/meeting.h. */

#include "backup/meeting.h"

#include <my_global.h>
#include <sql_class.h>
#include <backup.h>
#include <mdl.h>

#include "backup/definitions.h"

namespace fron {
namespace {

/** Whether this or another session holds back commits. mariadb-backup flushes the logs in another session than the one with
    its stages, so it is found out by asking for the lock of a commit. */
bool are_commits_held_back(THD *thd) {
  if (thd->current_backup_stage == BACKUP_LOCK_COMMIT) return true;
  MDL_request request;
  MDL_REQUEST_INIT(&request, MDL_key::BACKUP, "", "", MDL_BACKUP_COMMIT, MDL_EXPLICIT);
  if (thd->mdl_context.try_acquire_lock(&request)) return false;
  if (!request.ticket) return true;
  thd->mdl_context.release_lock(request.ticket);
  return false;
}

/** The one session that waits, and what the other session has done for it. */
class Meeting {
 public:
  Meeting() {
    mysql_mutex_init(0, &mutex_, MY_MUTEX_INIT_FAST);
    mysql_cond_init(0, &changed_, nullptr);
  }

  bool wait(THD *thd, const BackupOrder &order, BegunBackup *begun, Failure *failure);
  void flush(THD *thd);
  void end();

 private:
  mysql_mutex_t mutex_;
  mysql_cond_t changed_;
  /** Of the session that waits; null if none does. */
  const BackupOrder *order_ = nullptr;
  BegunBackup *begun_ = nullptr;
  Failure failure_;
  bool is_fixed_ = false;
  bool is_over_ = false;
};

bool Meeting::wait(THD *thd, const BackupOrder &order, BegunBackup *begun, Failure *failure) {
  static PSI_stage_info stage = {0, "Waiting for BACKUP STAGE of another session", 0};
  mysql_mutex_lock(&mutex_);
  if (order_) {
    mysql_mutex_unlock(&mutex_);
    *failure = "another session waits for BACKUP STAGE already";
    return true;
  }
  order_ = &order;
  begun_ = begun;
  failure_.clear();
  is_fixed_ = false;
  is_over_ = false;
  PSI_stage_info before;
  THD_ENTER_COND(thd, &changed_, &mutex_, &stage, &before);
  while (!is_over_ && !thd_killed(thd)) mysql_cond_wait(&changed_, &mutex_);
  order_ = nullptr;
  bool is_over = is_over_;
  failure->swap(failure_);
  THD_EXIT_COND(thd, &before);  // Unlocks the mutex.
  return is_over;
}

void Meeting::flush(THD *thd) {
  mysql_mutex_lock(&mutex_);
  if (order_ && !is_over_ && are_commits_held_back(thd)) {
    is_fixed_ = true;
    *begun_ = BegunBackup();
    try {
      failure_ = read_definitions(&begun_->files);
      if (failure_.empty()) failure_ = fix_moment(*order_, begun_);
    } catch (const std::bad_alloc &) {
      failure_ = "out of memory";
    }
  }
  mysql_mutex_unlock(&mutex_);
}

void Meeting::end() {
  mysql_mutex_lock(&mutex_);
  if (order_ && is_fixed_) {
    is_over_ = true;
    mysql_cond_signal(&changed_);
  }
  mysql_mutex_unlock(&mutex_);
}

Meeting &meeting() {
  static Meeting it;
  return it;
}

}  // namespace

bool wait_for_stage(THD *thd, const BackupOrder &order, BegunBackup *begun, Failure *failure) {
  return meeting().wait(thd, order, begun, failure);
}

void meet_flush_of_logs(THD *thd) {
  if (thd) meeting().flush(thd);
}

void meet_end_of_stage() { meeting().end(); }

}  // namespace fron
