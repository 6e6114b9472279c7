/* SPDX-License-Identifier: GPL-2.0-only

   See backup/meeting.h. */

#include "backup/meeting.h"

#include <my_global.h>
#include <sql_class.h>
#include <backup.h>
#include <mdl.h>

#include <mysqld_error.h>

#include <chrono>
#include <new>

#include "engine/kill.h"

namespace fron {
namespace {

/** Returns whether this or another session holds back commits. The session in which mariadb-backup flushes the logs
    is not the one that has begun the stages, so this function tries to take the lock of a commit. */
bool are_commits_held_back(THD *thd) {
  if (thd->current_backup_stage == BACKUP_LOCK_COMMIT) return true;
  MDL_request request;
  MDL_REQUEST_INIT(&request, MDL_key::BACKUP, "", "", MDL_BACKUP_COMMIT, MDL_EXPLICIT);
  if (thd->mdl_context.try_acquire_lock(&request)) return false;
  if (!request.ticket) return true;
  thd->mdl_context.release_lock(request.ticket);
  return false;
}

/** The session that waits, if any, and what other sessions have done for it. */
class Meeting {
 public:
  Meeting() {
    mysql_mutex_init(0, &mutex_, MY_MUTEX_INIT_FAST);
    mysql_cond_init(0, &changed_, nullptr);
  }

  bool wait(THD *thd, BegunBackup *begun, Failure *failure);
  void begin();
  void flush(THD *thd);
  void end();

 private:
  bool sleep(THD *thd);

  mysql_mutex_t mutex_;
  mysql_cond_t changed_;
  /** The backup of the waiting session; null if no session waits. */
  BegunBackup *begun_ = nullptr;
  Failure failure_;
  /** Whether another session is in its stages; whether the moment was fixed in them; whether they have ended since. */
  bool is_in_stages_ = false, is_fixed_ = false, is_over_ = false;
};

/** Sleeps for at most a second, because nothing signals the loss of a connection. Returns false if the session need not
    wait any longer. */
bool Meeting::sleep(THD *thd) {
  timespec until;
  set_timespec(until, 1);
  mysql_cond_timedwait(&changed_, &mutex_, &until);
  return !is_over_ && !is_killed(thd) && thd->is_connected();
}

bool Meeting::wait(THD *thd, BegunBackup *begun, Failure *failure) {
  static PSI_stage_info stage = {0, "Waiting for BACKUP STAGE of another session", 0};
  mysql_mutex_lock(&mutex_);
  if (begun_) {
    mysql_mutex_unlock(&mutex_);
    *failure = "another session waits for BACKUP STAGE already";
    return false;
  }
  begun_ = begun;
  failure_.clear();
  is_fixed_ = is_over_ = false;
  PSI_stage_info before;
  THD_ENTER_COND(thd, &changed_, &mutex_, &stage, &before);
  auto begin = std::chrono::steady_clock::now();
  auto longest = std::chrono::seconds(ulonglong(double(thd->variables.lock_wait_timeout)));
  while (sleep(thd) && std::chrono::steady_clock::now() - begin < longest) {
  }
  begun_ = nullptr;
  bool is_over = is_over_;
  failure->swap(failure_);
  THD_EXIT_COND(thd, &before);  // Unlocks the mutex.
  if (!is_over)
    *failure = thd->is_connected() ? "no other session has ended BACKUP STAGE within lock_wait_timeout"
                                   : "the connection was lost";
  return is_over;
}

void Meeting::begin() {
  mysql_mutex_lock(&mutex_);
  is_in_stages_ = true;
  is_fixed_ = false;
  mysql_mutex_unlock(&mutex_);
}

void Meeting::flush(THD *thd) {
  mysql_mutex_lock(&mutex_);
  if (begun_ && is_in_stages_ && !is_over_ && are_commits_held_back(thd)) {
    try {
      failure_ = fix_moment(begun_);
    } catch (const std::bad_alloc &) {
      failure_ = "out of memory";
    }
    is_fixed_ = true;
  }
  mysql_mutex_unlock(&mutex_);
}

void Meeting::end() {
  mysql_mutex_lock(&mutex_);
  if (begun_ && is_fixed_) {
    is_over_ = true;
    mysql_cond_signal(&changed_);
  }
  is_in_stages_ = false;
  mysql_mutex_unlock(&mutex_);
}

Meeting &meeting() {
  static Meeting it;
  return it;
}

}  // namespace

bool cannot_wait(THD *thd) {
  if (thd->current_backup_stage != BACKUP_FINISHED) {
    my_printf_error(ER_BACKUP_WRONG_STAGE, "FronDB: this session has begun BACKUP STAGE itself: end it, or turn "
                    "frondb_backup_wait_for_stage off", MYF(0));
    return true;
  }
  if (!thd->locked_tables_mode && !thd->in_active_multi_stmt_transaction() && !thd->global_read_lock.is_acquired())
    return false;
  my_error(ER_LOCK_OR_ACTIVE_TRANSACTION, MYF(0));
  return true;
}

bool wait_for_stage(THD *thd, BegunBackup *begun, Failure *failure) { return meeting().wait(thd, begun, failure); }

void meet_begin_of_stages() { meeting().begin(); }

void meet_flush_of_logs(THD *thd) {
  if (thd) meeting().flush(thd);
}

void meet_end_of_stage() { meeting().end(); }

}  // namespace fron
