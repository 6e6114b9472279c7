/* SPDX-License-Identifier: GPL-2.0-only

   Renames of tables with foreign keys, and the tables that may not be dropped. */

#ifndef FRONDB_FOREIGN_RENAME_H
#define FRONDB_FOREIGN_RENAME_H

#include <my_global.h>
#include <mysql/plugin.h>

#include <string>

namespace fron {

class FenceHolder;

/** Renames a table. Transactions that check foreign keys against a table of the statement wait from the first rename
    until the statement ends: a later rename, for example of the copy that an ALTER puts in the table's place, can fail,
    and the server then renames the tables back. Returns an HA_ERR_ number. */
int rename_with_fences(MYSQL_THD thd, const std::string &from, const std::string &to);

/** Returns HA_ERR_ROW_IS_REFERENCED if a foreign key of another table refers to the table, which is to be dropped. The
    other table does not count if the statement drops it too (DROP DATABASE), or does not check foreign keys. */
int check_drop(MYSQL_THD thd, const std::string &table);

/** Waits for every transaction that has checked a foreign key of another table against the table, which is to be
    dropped. Returns an HA_ERR_ number. */
int wait_for_checks(MYSQL_THD thd, const std::string &table, FenceHolder *fence);

}  // namespace fron

#endif
