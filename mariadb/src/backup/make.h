/* SPDX-License-Identifier: GPL-2.0-only

   SET frondb_backup_dir: a backup while other sessions read and write. The moment of a backup is the committed state
   that it contains.

     block definitions     read the definitions of tables          changes of definitions wait
     block commits         fix the moment, note the position       commits wait a few milliseconds
     release               copy                                    no statement waits */

#ifndef FRONDB_BACKUP_MAKE_H
#define FRONDB_BACKUP_MAKE_H

#include "backup/order.h"

class THD;

namespace fron {

/** Makes a backup. With `beside`, the backup complements another tool's backup, whose sessions fix the moment
    (backup/order.h) of both backups; see backup/meeting.h. `allowed_prefix`: see check_place(). Returns true after an
    error, which is raised. */
bool make_backup(THD *thd, const BackupOrder &order, bool beside, const char *allowed_prefix);

}  // namespace fron

#endif
