/* SPDX-License-Identifier: GPL-2.0-only

   Columns of foreign keys that an ALTER in place changes. For a copy, the server itself checks them. */

#ifndef FRONDB_DDL_CHANGED_COLUMNS_H
#define FRONDB_DDL_CHANGED_COLUMNS_H

#include <my_global.h>
#include <sql_class.h>

#include <string>

#include "ddl/columns.h"

namespace fron {

/** Refuses, with InnoDB's errors, changes to columns of foreign keys of the table `key` that would break them: another
    type; NOT NULL in a child that an action would set to NULL; and, in a strict mode, NULL in a parent whose children
    cannot be NULL. Returns 0 or an HA_ERR_ number; the error has been reported. */
int check_changed_columns(THD *thd, const TABLE *table, const TABLE *altered, const Alter_inplace_info *info,
                          const OldNumbers &old, const std::string &key);

}  // namespace fron

#endif
