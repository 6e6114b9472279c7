/* SPDX-License-Identifier: GPL-2.0-only

   See ddl/changed_columns.h. */

#include "ddl/changed_columns.h"

#include <mysqld_error.h>

#include "dictionary/dictionary.h"
#include "foreign/binding.h"
#include "foreign/clauses.h"

namespace fron {
namespace {

constexpr size_t ABSENT = SIZE_MAX;

size_t place_of(const std::vector<std::string> &columns, const std::string &name) {
  for (size_t i = 0; i < columns.size(); i++)
    if (is_same_name(columns[i], name)) return i;
  return ABSENT;
}

int refuse(uint number, const std::string &column, const std::string &constraint, const std::string &child = {}) {
  my_error(number, MYF(0), column.c_str(), constraint.c_str(), child.c_str());
  return HA_ERR_DROP_INDEX_FK;
}

/** Returns a constraint's name as InnoDB's error shows it: with the database. */
std::string full_name(const ForeignKey &key) { return shown_database(key.child) + "/" + key.name; }

/** The change of one column, by its old name. */
struct Changed {
  std::string name;
  bool gets_type, gets_null, loses_null;
};

int check_own(const ForeignKey &key, const Changed &column, bool is_strict) {
  size_t place = place_of(key.columns, column.name);
  if (place == ABSENT) return 0;
  // A side can have lost its index while foreign_key_checks was 0. Such a side is compared with the other one when it
  // gets an index again.
  if (column.gets_type && key.child_side.is_bound) return refuse(ER_FK_COLUMN_CANNOT_CHANGE, column.name, full_name(key));
  if (!column.loses_null) return 0;
  bool sets_null = key.on_delete == Action::SetNull || key.on_update == Action::SetNull;
  bool can_parent_be_null = key.parent_side.is_bound && key.parent_side.parts[place].can_be_null;
  bool may_cascade_null = is_strict && key.on_update == Action::Cascade && can_parent_be_null;
  return sets_null || may_cascade_null ? refuse(ER_FK_COLUMN_NOT_NULL, column.name, key.name) : 0;
}

int check_referencing(const ForeignKey &key, const Changed &column, bool is_strict) {
  size_t place = place_of(key.referenced, column.name);
  if (place == ABSENT) return 0;
  std::string database = shown_database(key.child), table = shown_table(key.child);
  if (column.gets_type && key.parent_side.is_bound)
    return refuse(ER_FK_COLUMN_CANNOT_CHANGE_CHILD, column.name, full_name(key), database + "/" + table);
  bool can_child_be_null = !key.child_side.is_bound || key.child_side.parts[place].can_be_null;
  bool may_cascade_null = is_strict && column.gets_null && key.on_update == Action::Cascade && !can_child_be_null;
  return may_cascade_null ? refuse(ER_FK_COLUMN_CANNOT_CHANGE_CHILD, column.name, key.name, database + "." + table) : 0;
}

/** Returns the columns of the child's side of a foreign key that the statement adds, by their old names; empty if
    the table does not yet have an index for them. */
std::vector<std::string> indexed_columns(const Foreign_key &clause, const TABLE *table, const TABLE *altered, const OldNumbers &old) {
  std::vector<std::string> names;
  List_iterator_fast<Key_part_spec> columns(const_cast<Foreign_key &>(clause).columns);
  while (const Key_part_spec *column = columns++) {
    const Field *field = field_of(altered, text_of(column->field_name));
    if (!field || old[field->field_index] == Slot::GONE) return {};
    names.push_back(table->field[old[field->field_index]]->field_name.str);
  }
  KeySide side;
  BindingFault fault;
  return bind_side(table, false, names, nullptr, &side, &fault) ? names : std::vector<std::string>{};
}

/** Refuses a new type for a column of an added foreign key. Like InnoDB, does so only if the index of the foreign key
    existed before the statement. */
int check_added(const Foreign_key &clause, const std::vector<std::string> &columns, const Changed &column, const std::string &table) {
  if (!column.gets_type || place_of(columns, column.name) == ABSENT) return 0;
  // InnoDB has not yet assigned a number to the constraint here, so an automatic name in its error has the number 0
  // too.
  std::string name = clause.constraint_name.str ? text_of(clause.constraint_name) : automatic_name(table, 0);
  return refuse(ER_FK_COLUMN_CANNOT_CHANGE, column.name, shown_database(table) + "/" + name);
}

}  // namespace

int check_changed_columns(THD *thd, const TABLE *table, const TABLE *altered, const Alter_inplace_info *info,
                          const OldNumbers &old, const std::string &key) {
  TableForeignKeys keys = dictionary().foreign_keys().recorded_of(key);
  std::vector<const Foreign_key *> added = new_clauses(info->alter_info);
  if (keys.own.empty() && keys.referencing.empty() && added.empty()) return 0;
  bool is_strict = thd->is_strict_mode();
  for (uint i = 0; i < old.size(); i++) {
    if (old[i] == Slot::GONE) continue;
    const Field *before = table->field[old[i]], *after = altered->field[i];
    bool was_nullable = before->real_maybe_null(), is_nullable = after->real_maybe_null();
    bool gets_type = before->charset() != after->charset() || before->field_length != after->field_length;
    Changed column{{before->field_name.str, before->field_name.length}, gets_type, !was_nullable && is_nullable, was_nullable && !is_nullable};
    if (!column.gets_type && !column.gets_null && !column.loses_null) continue;
    for (const ForeignKeyPtr &own : keys.own)
      if (!is_dropped(info->alter_info, own->name))
        if (int error = check_own(*own, column, is_strict)) return error;
    for (const Foreign_key *clause : added)
      if (int error = check_added(*clause, indexed_columns(*clause, table, altered, old), column, key)) return error;
    for (const ForeignKeyPtr &referencing : keys.referencing)
      if (!referencing->refers_to_itself() || !is_dropped(info->alter_info, referencing->name))
        if (int error = check_referencing(*referencing, column, is_strict)) return error;
  }
  return 0;
}

}  // namespace fron
