/* SPDX-License-Identifier: GPL-2.0-only

   Foreign keys in a statement, as the server has parsed them. */

#ifndef FRONDB_FOREIGN_CLAUSES_H
#define FRONDB_FOREIGN_CLAUSES_H

#include <my_global.h>
#include <sql_class.h>

#include <string>
#include <vector>

#include "dictionary/foreign_key.h"

class Alter_info;

namespace fron {

inline std::string text_of(const LEX_CSTRING &name) { return std::string(name.str, name.length); }

/** Returns whether the statement checks foreign keys. */
bool checks_foreign_keys(MYSQL_THD thd);

/** Returns a clause's name, or its columns, for a warning. */
std::string label_of(const Foreign_key &clause);

Action action_of(enum_fk_option option);

/** Returns the key of the table that an ALTER statement renames its table to; empty if it renames none. */
std::string new_name_by_alter(MYSQL_THD thd);

/** Returns the key of the table that a clause of the table `own` refers to. */
std::string parent_of(const Foreign_key &clause, const std::string &own);

/** Returns the clauses of a statement that are not yet foreign keys of the altered table. */
std::vector<const Foreign_key *> new_clauses(const Alter_info *info);

/** Returns whether a statement's new clauses refer to the table itself. */
bool refers_to_itself(const Alter_info *info, const std::string &key);

/** Returns whether a statement drops the foreign key of this name. */
bool is_dropped(const Alter_info *info, const std::string &name);

}  // namespace fron

#endif
