/* SPDX-License-Identifier: GPL-2.0-only

   Whether a session may make a backup, and in which folder. */

#ifndef FRONDB_BACKUP_PLACE_H
#define FRONDB_BACKUP_PLACE_H

#include <string>

#include "backup/order.h"

class THD;

namespace fron {

/** Returns true if the session lacks a privilege: RELOAD, as for BACKUP STAGE, or FILE, because the server writes
    files. The error is raised. */
bool lacks_privileges(THD *thd);

/** Returns why the folder of a backup, or of the backup to continue, is refused; empty if both are allowed. They must
    be absolute paths that secure_file_priv and `allowed_prefix` (null: any) allow, the first one outside of the data
    directory. */
Failure check_place(const BackupOrder &order, const char *allowed_prefix);

}  // namespace fron

#endif
