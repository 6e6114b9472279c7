/* SPDX-License-Identifier: GPL-2.0-only

   What transactions that are prepared (XA) have written must be there when they are committed. One whose connection has
   gone keeps its locks of rows, but the server keeps none of its tables for it; so what would drop or copy a table asks
   here first. Nothing of the kind can begin afterwards: the server lets nobody write to the table then. */

#ifndef FRONDB_TXN_PREPARED_WRITES_H
#define FRONDB_TXN_PREPARED_WRITES_H

#include <my_global.h>
#include <mysql/plugin.h>

#include <string>

#include "engine/api.h"

namespace fron {

/** The error of a statement that must not touch what a prepared transaction has written. */
int refuse_for_prepared();

/** 0, or an error for the server if a prepared transaction has written to these rows. */
int check_prepared(frondb_tree *rows);

/** The same for a table by its key in the dictionary; of a partition for all of its table, which go together. */
int check_prepared(const std::string &key);

/** Whether the statement would copy the rows of a table that it scans, and drop it. */
bool copies_tables(MYSQL_THD thd);

/** Whether the statement drops the table because the user wants it so, not to put another in its place, and can be
    refused: the server has removed what it knows of partitions before it drops the first. */
bool may_refuse_drop(MYSQL_THD thd, const std::string &key);

}  // namespace fron

#endif
