/* SPDX-License-Identifier: GPL-2.0-only

   Foreign keys as texts: in SHOW CREATE TABLE, in errors, and in SHOW ENGINE FRONDB STATUS. */

#ifndef FRONDB_FOREIGN_TEXT_H
#define FRONDB_FOREIGN_TEXT_H

#include <my_global.h>
#include <mysql/plugin.h>

#include <string>
#include <vector>

#include "dictionary/foreign_key.h"

struct TABLE_LIST;

namespace fron {

/** Returns the clause, "CONSTRAINT `name` FOREIGN KEY .. REFERENCES ..". */
std::string clause_of(MYSQL_THD thd, const ForeignKey &key);

/** Returns the text that SHOW CREATE TABLE adds for the foreign keys of a table. */
std::string clauses_of(MYSQL_THD thd, const std::vector<ForeignKeyPtr> &keys);

/** Returns "`database`.`table`" for a table's key. */
std::string quoted_table(MYSQL_THD thd, const std::string &table);

/** Returns the key of a table that a statement names. */
std::string key_of(const TABLE_LIST &table);

/** Returns the key of a statement's first table, which is the one that an ALTER changes; empty if there is none. */
std::string altered_table(MYSQL_THD thd);

/** Returns the part in parentheses of errors 1451 and 1452. */
std::string failure_of(MYSQL_THD thd, const ForeignKey &key);

/** Keeps a text as the latest error, with the time and the connection. */
void note_foreign_error(MYSQL_THD thd, const std::string &sentence);
/** Returns the latest error of any connection; empty if there was none since the start. */
std::string latest_foreign_error();

}  // namespace fron

#endif
