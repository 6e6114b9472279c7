/* SPDX-License-Identifier: GPL-2.0-only

   FOREIGN KEY clauses, which FronDB does not support. A statement with such a clause must fail, since the server does
   not warn when an engine ignores it. */

#ifndef FRONDB_DDL_FOREIGN_KEYS_H
#define FRONDB_DDL_FOREIGN_KEYS_H

struct HA_CREATE_INFO;

namespace fron {

/** Whether the statement that creates or copies a table asks for a new foreign key. */
bool asks_for_foreign_key(const HA_CREATE_INFO *info);

/** Whether the server's list of keys is where the plugin's headers expect it. Called once, when the plugin is
    loaded. */
bool can_see_foreign_keys();

}  // namespace fron

#endif
