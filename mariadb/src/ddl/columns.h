/* SPDX-License-Identifier: GPL-2.0-only

   Columns that an ALTER without a copy adds, moves, widens and lets go: which changes rows that are there can stay
   for, and how they are read from then on. Called by handler/alter.cc, with no state of its own. */

#ifndef FRONDB_DDL_COLUMNS_H
#define FRONDB_DDL_COLUMNS_H

#include <my_global.h>
#include <sql_class.h>
#include <handler.h>

#include "codec/layout.h"

namespace fron {

/** Changes of columns that a layout may be able to follow. */
constexpr alter_table_operations OF_COLUMNS =
    ALTER_ADD_STORED_BASE_COLUMN | ALTER_ADD_VIRTUAL_COLUMN | ALTER_DROP_STORED_COLUMN | ALTER_DROP_VIRTUAL_COLUMN |
    ALTER_STORED_COLUMN_ORDER | ALTER_VIRTUAL_COLUMN_ORDER | ALTER_COLUMN_TYPE_CHANGE_BY_ENGINE;

/** Whether rows that are there can stay as they are, and be read by the new definition. */
bool keeps_rows(const TABLE *table, const TABLE *altered, const Alter_inplace_info *info, const Layout &layout);

/** How they are read then. Uses record[0] of `altered`. False if the form is damaged. */
bool change_form(const TABLE *table, TABLE *altered, const Alter_inplace_info *info, RowForm *form);

/** Whether a column of one definition has the same bytes in rows by the other: a VARCHAR that becomes longer. */
bool is_widened(const Field &field, const Column_definition &wanted);

}  // namespace fron

#endif
