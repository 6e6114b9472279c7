/* SPDX-License-Identifier: GPL-2.0-only

   SHOW STATUS LIKE 'Frondb_%' and SHOW ENGINE FRONDB STATUS. */

#ifndef FRONDB_INSPECT_STATUS_H
#define FRONDB_INSPECT_STATUS_H

#include "engine/api.h"
#include "engine/system_variables.h"

#include <my_global.h>
#include <mysql/plugin.h>

struct handlerton;

namespace fron {

SystemVariables status_page_variables();

/** The status variables: all statistics of the engine, the latest backup, and the reads that a replica has omitted. */
extern struct st_mysql_show_var status_variables[];

/** Keeps the statements of all transactions of the latest deadlock. Called by the victim's thread as soon as the
    thread gets its error. */
void note_deadlock();

/** Sets the function of the handlerton for SHOW ENGINE STATUS. */
void set_status_hook(handlerton *hton);

}  // namespace fron

#endif
