/* SPDX-License-Identifier: GPL-2.0-only

   Foreign keys of statements that create or alter a table: the records for the dictionary.

     CREATE TABLE             the statement's clauses; foreign keys of other tables that wait for this one
     ALTER TABLE by copy      new clauses, dropped ones, and the indexes that remaining ones use in the new table
     ALTER TABLE in place     the same, from the handler's own two definitions

   A refusal pushes a warning with the reason, like most refusals of InnoDB, and returns HA_ERR_CANNOT_ADD_FOREIGN: the
   server's own error 1005 says little. A copy that does not suit an existing foreign key fails with InnoDB's error 1025
   instead. */

#ifndef FRONDB_FOREIGN_DEFINE_H
#define FRONDB_FOREIGN_DEFINE_H

#include <my_global.h>
#include <sql_class.h>

#include <string>
#include <vector>

#include "dictionary/foreign_keys.h"

struct HA_CREATE_INFO;
class Alter_info;
class Alter_inplace_info;

namespace fron {

/** Keeps out ALTERs of the parents that a statement's clauses name, until the statement ends. Waits, so call it before
    taking any other lock. */
int hold_parents(THD *thd, const TABLE *form, const Alter_info *info, const std::string &key);

/** Collects the change for a table that is created with this key; its records are stored under `key`. */
int define_for_create(THD *thd, const TABLE *form, const HA_CREATE_INFO *info, const std::string &key,
                      ForeignKeyChange *change);

/** Collects the change for an ALTER in place of the table `key`. `added`, if not null, receives the new foreign keys.
    Refusals are reported: as error 1828 or 1829 if a column is needed, as 1553 if an index is needed, otherwise with
    the error of an ALTER by copy. With foreign_key_checks = 0 the errors are InnoDB's. */
int define_in_place(THD *thd, const TABLE *altered, const Alter_inplace_info *info,
                    const std::string &key, ForeignKeyChange *change, std::vector<ForeignKeyPtr> *added);

/** Binds foreign keys of other tables that have waited for a table with this key, whose definition is `form`. */
int adopt_waiting(THD *thd, const TABLE *form, const std::string &own, ForeignKeyChange *change);

/** Returns whether a change makes foreign keys find their parents in other trees of the table `key`. If so, every
    transaction that has locked a key in the old tree must end first. */
bool moves_parents(const std::string &key, const ForeignKeyChange &change);

/** Returns whether a foreign key finds its parents in a tree of the table. */
bool is_parent(const std::string &key);

}  // namespace fron

#endif
