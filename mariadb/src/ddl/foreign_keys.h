/* SPDX-License-Identifier: GPL-2.0-only

   FOREIGN KEY clauses, which FronDB does not keep: a statement with one must fail, for the server
   itself says nothing when an engine ignores them. */

#ifndef FRONDB_DDL_FOREIGN_KEYS_H
#define FRONDB_DDL_FOREIGN_KEYS_H

struct HA_CREATE_INFO;

namespace fron {

/** Whether the statement that creates or copies a table asks for a new foreign key. */
bool asks_for_foreign_key(const HA_CREATE_INFO *info);

/** Whether the server's list of keys lies where our headers say. Asked once, when it loads us. */
bool can_see_foreign_keys();

}  // namespace fron

#endif
