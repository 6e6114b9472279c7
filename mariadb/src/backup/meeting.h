/* SPDX-License-Identifier: GPL-2.0-only

   Coordinates a backup with the backup of another tool: the session that makes the backup waits until the sessions of
   the other tool have held back commits, as mariadb-backup does, so that both backups have the same moment, that is,
   contain the same committed state.

     the session of SET frondb_backup_dir        the sessions of the other tool
       wait_for_stage() ........................   BACKUP STAGE START: meet_begin_of_stages()
                                                   BACKUP STAGE BLOCK_COMMIT
                                                   FLUSH ENGINE LOGS: meet_flush_of_logs() fixes the moment
       copies  <................................   BACKUP STAGE END: meet_end_of_stage()

   Each FLUSH ENGINE LOGS between the tool's first stage and its last, while commits are held back, fixes the moment
   again; the last one counts. If the stages end without a flush, as after a failure of the tool, the session continues
   to wait. The tool copies the definitions of all tables itself. */

#ifndef FRONDB_BACKUP_MEETING_H
#define FRONDB_BACKUP_MEETING_H

#include "backup/order.h"

class THD;

namespace fron {

/** Returns true, with an error, if this session has begun stages itself, or holds a lock that the other tool would wait
    for. */
bool cannot_wait(THD *thd);

/** Waits, for at most lock_wait_timeout, until another session has fixed the moment and ended its stages. Returns false
    if that did not happen; `failure` then has the reason, unless the statement was killed. If the moment could not be
    fixed, returns true with the reason in `failure`. */
bool wait_for_stage(THD *thd, BegunBackup *begun, Failure *failure);

/** Called when a session begins backup stages (BACKUP STAGE START). */
void meet_begin_of_stages();

/** Called in any session when the server flushes the logs of its engines. */
void meet_flush_of_logs(THD *thd);

/** Called when the backup stages of a session end. */
void meet_end_of_stage();

}  // namespace fron

#endif
