/* SPDX-License-Identifier: GPL-2.0-only

   See foreign/definer.h. */

#include "foreign/definer.h"

#include <handler.h>
#include <item.h>
#include <mysqld_error.h>
#include <sql_alter.h>

#include <unistd.h>

#include "dictionary/dictionary.h"
#include "engine/errors.h"
#include "foreign/clauses.h"
#include "foreign/text.h"

namespace fron {
namespace {

bool is_base_of_stored(const TABLE *table, const Field *base) {
  std::vector<my_bitmap_map> bits(bitmap_buffer_size(table->s->fields) / sizeof(my_bitmap_map) + 1);
  for (Field **field = table->field; *field; field++) {
    if (!(*field)->vcol_info || !(*field)->stored_in_db()) continue;
    MY_BITMAP used;
    if (my_bitmap_init(&used, bits.data(), table->s->fields)) return true;
    (*field)->vcol_info->expr->walk(&Item::register_field_in_bitmap, 1, &used);
    if (bitmap_is_set(&used, base->field_index)) return true;
  }
  return false;
}

}  // namespace

void warn_of_refusal(THD *thd, bool is_create, const std::string &own, const char *with, const std::string &label,
                     const std::string &why) {
  std::string sentence = std::string(is_create ? "Create " : "Alter ") + " table " + quoted_table(thd, own) + " " + with +
                         "foreign key " + label + " constraint failed. " + why;
  push_warning(thd, Sql_condition::WARN_LEVEL_WARN, HA_ERR_CANNOT_ADD_FOREIGN, sentence.c_str());
  note_foreign_error(thd, sentence);
}

std::string reason_of(const BindingFault &fault, const ForeignKey &key, bool of_parent) {
  std::string of_table = of_parent ? "in the referenced table" : "in the table";
  switch (fault.reason) {
    case BindingFault::PrefixOnly:
      return "There is only prefix index " + of_table + " where the referenced columns appear as the first columns.";
    case BindingFault::TypesDiffer:
      return "Field type or character set for column '" + key.columns[fault.column] + "' does not match referenced column '" +
             fault.own_column + "'.";
    case BindingFault::NoPrimaryKey: return "A system-versioned table needs a primary key for foreign keys.";
    default: return "There is no index " + of_table + " where the referenced columns appear as the first columns.";
  }
}

std::string reason_of_null(const std::string &column) {
  return "You have defined a SET NULL condition but column '" + column + "' is defined as NOT NULL.";
}

bool Definer::is_unchecked_in_place() const {
  return statement_ == Statement::AlterInPlace && !checks_foreign_keys(thd_);
}

int Definer::refuse(const std::string &why, uint number, const char *with) {
  warn_of_refusal(thd_, statement_ == Statement::Create, own_, with, label_of(*clause_), why);
  if (!number || !is_unchecked_in_place()) return HA_ERR_CANNOT_ADD_FOREIGN;
  std::string constraint = shown_database(own_) + "/" + key_->name;
  if (number == ER_FK_NO_INDEX_PARENT) my_error(number, MYF(0), text_of(clause_->name).c_str(), text_of(clause_->ref_table).c_str());
  else my_error(number, MYF(0), shown_table(own_).c_str(), constraint.c_str());
  return ALTER_ERROR_REPORTED;
}

int Definer::columns_of(const ::List<Key_part_spec> &list, const TABLE *table, bool of_parent, std::vector<std::string> *names) {
  names->clear();
  List_iterator_fast<Key_part_spec> columns(const_cast<::List<Key_part_spec> &>(list));
  while (const Key_part_spec *column = columns++) {
    std::string name = text_of(column->field_name);
    // Use the table's own spelling, as InnoDB shows it.
    if (table) {
      const Field *field = field_of(table, name);
      if (!field) return refuse("Column " + name + " was not found.", of_parent ? ER_FK_NO_INDEX_PARENT : 0, "");
      name = field->field_name.str;
    }
    names->push_back(std::move(name));
  }
  return 0;
}

/** Returns whether the table had an index for the child's columns before the statement. */
bool Definer::had_index() {
  Definition before;
  KeySide side;
  BindingFault fault;
  return before.open(thd_, own_) && bind_side(before.table(), false, key_->columns, nullptr, &side, &fault);
}

int Definer::explain(const BindingFault &fault, bool of_parent) {
  uint number = of_parent && fault.reason != BindingFault::NoPrimaryKey ? ER_FK_NO_INDEX_PARENT : 0;
  // If the child's index existed before the statement, InnoDB reports that the parent has no matching index. If the
  // statement adds the index, InnoDB compares the types later, and reports another error.
  if (fault.reason == BindingFault::TypesDiffer && is_unchecked_in_place() && !had_index()) number = ER_FK_INCORRECT_OPTION;
  return refuse(reason_of(fault, *key_, of_parent), number);
}

/** Refuses actions that would write NULL into a NOT NULL column, or change a column on which a stored generated column
    depends. */
int Definer::check_actions() {
  bool sets_null = key_->on_delete == Action::SetNull || key_->on_update == Action::SetNull;
  bool changes = sets_null || key_->on_update == Action::Cascade;
  for (const std::string &name : key_->columns) {
    const Field *field = field_of(form_, name);
    if (sets_null && !field->real_maybe_null())
      return refuse(reason_of_null(name), ER_FK_INCORRECT_OPTION);
    if (changes && is_base_of_stored(form_, field))
      return refuse("A stored generated column depends on column '" + name + "', which the action would change.");
  }
  return 0;
}

int Definer::check_nulls(const Foreign_key &clause, const ForeignKey &key) {
  // With another ON DELETE, in a mode that is not strict, or in place, InnoDB does not check this; then no NULL of the
  // parent gets into the child.
  bool looks = thd_->is_strict_mode() && !is_unchecked_in_place() && key.parent_side.is_bound &&
               key.on_delete == Action::Restrict && key.on_update == Action::Cascade;
  if (!looks) return 0;
  for (size_t i = 0; i < key.columns.size(); i++) {
    if (!key.parent_side.parts[i].can_be_null || field_of(form_, key.columns[i])->real_maybe_null()) continue;
    clause_ = &clause;
    return refuse("You have defined an ON UPDATE CASCADE condition but column '" + key.columns[i] +
                  "' is defined as NOT NULL, and the referenced column is not.");
  }
  return 0;
}

int Definer::bind_parent_in(const TABLE *parent) {
  if (int error = columns_of(clause_->ref_columns, parent, true, &key_->referenced)) return error;
  BindingFault fault;
  if (bind_side(parent, true, key_->referenced, &key_->child_side.parts, &key_->parent_side, &fault)) return 0;
  return explain(fault, true);
}

int Definer::bind_parent() {
  bool is_own = key_->parent == own_, found;
  if (is_own && statement_ == Statement::Create) return bind_parent_in(form_);
  TableRecord record;
  Definition definition;
  if (Error error = dictionary().find(key_->parent, &record, &found)) return refuse(error.message());
  found = found && definition.open(thd_, key_->parent);
  // The statement changes the table from another engine to FronDB, so the dictionary does not have the table yet.
  if (is_own && !found) return bind_parent_in(form_);
  if (!found) {
    if (!checks_foreign_keys(thd_)) return columns_of(clause_->ref_columns, nullptr, true, &key_->referenced);
    bool is_elsewhere = access(("./" + key_->parent + ".frm").c_str(), F_OK) == 0;
    return refuse("Referenced table " + quoted_table(thd_, key_->parent) +
                  (is_elsewhere ? " is not a table of FronDB, or is partitioned." : " not found in the data dictionary."));
  }
  if (int error = bind_parent_in(definition.table())) return error;
  // As in InnoDB, which a replica may use, the altered table must have had the index before the statement, and must
  // keep it.
  return is_own ? bind_parent_in(form_) : 0;
}

int Definer::define(const Foreign_key &clause, ForeignKey *key) {
  clause_ = &clause;
  key_ = key;
  key->child = own_;
  key->on_delete = action_of(clause.delete_opt);
  key->on_update = action_of(clause.update_opt);
  if (int error = columns_of(clause.columns, form_, false, &key->columns)) return error;
  BindingFault fault;
  if (!bind_side(form_, false, key->columns, nullptr, &key->child_side, &fault)) return explain(fault, false);
  key->name = clause.constraint_name.str ? text_of(clause.constraint_name) : automatic_name(own_, number_++);
  key->parent = parent_of(clause, own_);
  if (int error = bind_parent()) return error;
  return check_actions();
}

}  // namespace fron
