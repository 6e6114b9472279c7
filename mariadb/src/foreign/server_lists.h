/* SPDX-License-Identifier: GPL-2.0-only

   The server's list of the clauses of a statement. Foreign keys are nowhere else, and a plugin that cannot see them
   would silently create tables without them. */

#ifndef FRONDB_FOREIGN_SERVER_LISTS_H
#define FRONDB_FOREIGN_SERVER_LISTS_H

namespace fron {

/** Returns whether the list is where the plugin's headers expect it. Called once, when the plugin is loaded. */
bool can_see_foreign_keys();

}  // namespace fron

#endif
