/* SPDX-License-Identifier: GPL-2.0-only

   SHOW STATUS LIKE 'Frondb_%' and SHOW ENGINE FRONDB STATUS. */

#ifndef FRONDB_INSPECT_STATUS_H
#define FRONDB_INSPECT_STATUS_H

#include "engine/api.h"

#include <my_global.h>
#include <mysql/plugin.h>

struct handlerton;

namespace fron {

/** `frondb_drive_tbw`: terabytes that may be written to the drive of the data; 0 if not given. */
extern struct st_mysql_sys_var *const drive_tbw_variable;

/** The status variables: all statistics of the engine. */
extern struct st_mysql_show_var status_variables[];

/** Keeps the statements of all transactions of the latest deadlock. Called by the victim's thread as soon as the
    thread gets its error. */
void note_deadlock();

/** Sets the function of the handlerton for SHOW ENGINE STATUS. */
void set_status_hook(handlerton *hton);

}  // namespace fron

#endif
