/* SPDX-License-Identifier: GPL-2.0-only

   SHOW STATUS LIKE 'Frondb_%' and SHOW ENGINE FRONDB STATUS: what the engine says about itself. */

#ifndef FRONDB_INSPECT_STATUS_H
#define FRONDB_INSPECT_STATUS_H

#include "engine/api.h"

#include <my_global.h>
#include <mysql/plugin.h>

struct handlerton;

namespace fron {

/** The status variables: all figures of the engine. */
extern struct st_mysql_show_var status_variables[];

/** Notes what both sides of a deadlock are doing; by the thread of its victim, as soon as it knows. */
void note_deadlock();

/** The function of the handlerton that is about status. */
void set_status_hook(handlerton *hton);

}  // namespace fron

#endif
