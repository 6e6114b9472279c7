/* SPDX-License-Identifier: GPL-2.0-only

   A backup beside another tool's: the session that makes the backup waits until the sessions of the other tool have held
   back commits, as mariadb-backup does, so that both backups have one moment.

     the session of SET frondb_backup_dir        the sessions of the other tool
       wait_for_stage() ........................   BACKUP STAGE START: meet_begin_of_stages()
                                                   BACKUP STAGE BLOCK_COMMIT
                                                   FLUSH ENGINE LOGS: meet_flush_of_logs() fixes the moment
       copies  <................................   BACKUP STAGE END: meet_end_of_stage()

   Each FLUSH ENGINE LOGS between the tool's first stage and its last, while commits are held back, fixes the moment anew;
   the last one counts. If the stages end without one, as after a failure of the tool, the session goes on waiting. The
   tool copies the definitions of all tables itself. */

#ifndef FRONDB_BACKUP_MEETING_H
#define FRONDB_BACKUP_MEETING_H

#include "backup/order.h"

class THD;

namespace fron {

/** True if this session holds what the other tool would wait for; the error is raised. */
bool cannot_wait(THD *thd);

/** Waits until another session has fixed the moment and has ended its stages, at most lock_wait_timeout. False if it has
    not; `failure` then has the reason, unless the statement was killed. */
bool wait_for_stage(THD *thd, BegunBackup *begun, Failure *failure);

/** When a session begins stages. */
void meet_begin_of_stages();

/** In any session, when the server flushes the logs of its engines. */
void meet_flush_of_logs(THD *thd);

/** When the stages of a session end. */
void meet_end_of_stage();

}  // namespace fron

#endif
