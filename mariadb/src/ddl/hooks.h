/* SPDX-License-Identifier: GPL-2.0-only

   DDL that the server asks of the engine and not of a table's handler: tables and databases that are dropped, and
   what a crash has left of an interrupted statement. */

#ifndef FRONDB_DDL_HOOKS_H
#define FRONDB_DDL_HOOKS_H

struct handlerton;

namespace fron {

/** Sets the functions and lists of the handlerton that are about DDL. */
void set_ddl_hooks(handlerton *hton);

}  // namespace fron

#endif
