/* SPDX-License-Identifier: GPL-2.0-only

   Rows that a prepared transaction (XA) has written must exist when it is committed. A prepared transaction whose
   connection has ended keeps its row locks, but the server holds no metadata locks for it. So a statement that would
   drop or copy a table checks here first. No such transaction can begin after the check, since the server lets no
   other connection write to the table then. */

#ifndef FRONDB_TXN_PREPARED_WRITES_H
#define FRONDB_TXN_PREPARED_WRITES_H

#include <my_global.h>
#include <mysql/plugin.h>

#include <string>

#include "engine/api.h"

namespace fron {

/** Returns the error of a statement that would drop or copy rows which a prepared transaction has written. */
int refuse_for_prepared();

/** Returns whether this tree may have writes of a transaction that was prepared before the engine was opened. */
bool may_have_prepared(frondb_tree *tree);
/** Called when the engine is opened. */
void note_prepared();

/** Returns 0, or the error of refuse_for_prepared() if a prepared transaction has written to this tree of rows. */
int check_prepared(frondb_tree *rows);

/** Does the same for a table, given its key in the dictionary. For the key of a partition, checks all partitions of the
    table, because the server drops them together. */
int check_prepared(const std::string &key);

/** Returns whether the statement is of a kind that may copy the rows of a table that it scans, and then drop the
    table. */
bool copies_tables(MYSQL_THD thd);

/** Returns whether a drop of the table can be refused: the statement is DROP TABLE, DROP DATABASE or CREATE OR REPLACE
    TABLE, not one such as ALTER TABLE that drops a table after copying it. The drop of a partition cannot be refused,
    because the server has removed its own record of all partitions before it drops the first. */
bool may_refuse_drop(MYSQL_THD thd, const std::string &key);

}  // namespace fron

#endif
