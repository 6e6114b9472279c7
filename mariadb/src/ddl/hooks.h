/* SPDX-License-Identifier: GPL-2.0-only

   DDL for which the server calls the engine instead of a table's handler: dropping tables and databases, and recovering
   statements that a crash has interrupted. */

#ifndef FRONDB_DDL_HOOKS_H
#define FRONDB_DDL_HOOKS_H

struct handlerton;

namespace fron {

/** Sets the DDL functions and lists of the handlerton. */
void set_ddl_hooks(handlerton *hton);

}  // namespace fron

#endif
