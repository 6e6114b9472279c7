/* SPDX-License-Identifier: GPL-2.0-only

   A backup beside another tool's: the session that makes the backup waits until the sessions of the other tool have held
   back commits, as mariadb-backup does, so that both backups have one moment.

     the session of SET frondb_backup_dir        the sessions of the other tool
       wait_for_stage() ........................   BACKUP STAGE BLOCK_COMMIT
                                                   FLUSH ENGINE LOGS: meet_flush_of_logs() fixes the moment
       copies  <................................   BACKUP STAGE END: meet_end_of_stage()

   Each FLUSH ENGINE LOGS while commits are held back fixes the moment anew; the last one counts. */

#ifndef FRONDB_BACKUP_MEETING_H
#define FRONDB_BACKUP_MEETING_H

#include "backup/order.h"

class THD;

namespace fron {

/** Waits until another session has fixed the moment and has ended its stages. False if the statement was killed. */
bool wait_for_stage(THD *thd, const BackupOrder &order, BegunBackup *begun, Failure *failure);

/** In any session, when the server flushes the logs of its engines. */
void meet_flush_of_logs(THD *thd);

/** When the stages of a session end. */
void meet_end_of_stage();

}  // namespace fron

#endif
