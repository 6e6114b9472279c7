/* SPDX-License-Identifier: GPL-2.0-only

   Columns that an ALTER without a copy adds, moves, widens or drops: which changes leave existing rows unchanged, and
   how these rows are read afterwards. Stateless; called by handler/alter.cc. */

#ifndef FRONDB_DDL_COLUMNS_H
#define FRONDB_DDL_COLUMNS_H

#include <my_global.h>
#include <sql_class.h>
#include <handler.h>

#include <vector>

#include "codec/layout.h"

namespace fron {

/** Changes of columns that a new layout may express. */
constexpr alter_table_operations OF_COLUMNS =
    ALTER_ADD_STORED_BASE_COLUMN | ALTER_ADD_VIRTUAL_COLUMN | ALTER_DROP_STORED_COLUMN | ALTER_DROP_VIRTUAL_COLUMN |
    ALTER_STORED_COLUMN_ORDER | ALTER_VIRTUAL_COLUMN_ORDER | ALTER_COLUMN_TYPE_CHANGE_BY_ENGINE | ALTER_COLUMN_NULLABLE |
    ALTER_COLUMN_NOT_NULLABLE;

/** For each column of an altered table, its number before the ALTER; Slot::GONE for a new column. */
using OldNumbers = std::vector<uint>;

/** Finds the old numbers of the columns. Returns false if they are unknown. */
bool match_columns(const TABLE *table, const TABLE *altered, const Alter_inplace_info *info, OldNumbers *old);

/** Returns whether the bytes of an existing column in rows can be read with the new definition. */
bool keeps_bytes(const Field *before, const Field *after);

/** Returns whether all existing rows get the same value of a new column; not for AUTO_INCREMENT or an expression
    that differs in each row. */
bool has_one_default(Field *added);

/** Returns whether the layout has too many slots after the change: each takes a bit in every row until a rebuild. */
bool has_too_many_slots(const TABLE *table, const TABLE *altered, const OldNumbers &old, const Layout &layout);

/** Changes the form so that existing rows are read with the new definition. Uses record[0] of `altered`. False if the
    form is damaged. */
bool change_form(const TABLE *table, TABLE *altered, const OldNumbers &old, RowForm *form);

/** Returns whether the column's entries in an index change, if the index has the whole column. */
bool changes_entries(const Field *before, const Field *after);

/** Returns whether a text gets a definition with which its bytes can be read: a longer VARCHAR, another collation,
    or a character set that contains the old one. */
bool is_read_as(const Field &field, const Column_definition &wanted);

/** Returns whether the table has a hidden column of the server, for a long unique key. */
bool has_hash_column(const TABLE *table);

}  // namespace fron

#endif
