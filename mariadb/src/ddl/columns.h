/* SPDX-License-Identifier: GPL-2.0-only

   Columns that an ALTER without a copy adds, moves, widens and drops: which changes existing rows can follow unchanged,
   and how these rows are read afterwards. Stateless; called by handler/alter.cc. */

#ifndef FRONDB_DDL_COLUMNS_H
#define FRONDB_DDL_COLUMNS_H

#include <my_global.h>
#include <sql_class.h>
#include <handler.h>

#include "codec/layout.h"

namespace fron {

/** Changes of columns that a new layout may express. */
constexpr alter_table_operations OF_COLUMNS =
    ALTER_ADD_STORED_BASE_COLUMN | ALTER_ADD_VIRTUAL_COLUMN | ALTER_DROP_STORED_COLUMN | ALTER_DROP_VIRTUAL_COLUMN |
    ALTER_STORED_COLUMN_ORDER | ALTER_VIRTUAL_COLUMN_ORDER | ALTER_COLUMN_TYPE_CHANGE_BY_ENGINE;

/** Whether existing rows can stay unchanged and be read with the new definition. */
bool keeps_rows(const TABLE *table, const TABLE *altered, const Alter_inplace_info *info, const Layout &layout);

/** Changes the form so that existing rows are read with the new definition. Uses record[0] of `altered`. False if the
    form is damaged. */
bool change_form(const TABLE *table, TABLE *altered, const Alter_inplace_info *info, RowForm *form);

/** Whether a VARCHAR becomes longer and keeps its bytes in rows and keys. */
bool is_widened(const Field &field, const Column_definition &wanted);

}  // namespace fron

#endif
