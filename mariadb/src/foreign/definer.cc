/* SPDX-License-Identifier: GPL-2.0-only

   See foreign/definer.h. */

#include "foreign/definer.h"

#include <handler.h>
#include <item.h>
#include <sql_alter.h>

#include <unistd.h>

#include "dictionary/dictionary.h"
#include "foreign/clauses.h"
#include "foreign/define.h"
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

int Definer::refuse(const std::string &label, const std::string &why, const char *with) {
  std::string sentence = std::string(is_alter_ ? "Alter " : "Create ") + " table " + quoted_table(thd_, own_) +
                         " " + with + "foreign key " + label + " constraint failed. " + why;
  push_warning(thd_, Sql_condition::WARN_LEVEL_WARN, HA_ERR_CANNOT_ADD_FOREIGN, sentence.c_str());
  note_foreign_error(thd_, sentence);
  return HA_ERR_CANNOT_ADD_FOREIGN;
}

int Definer::columns_of(const ::List<Key_part_spec> &list, const TABLE *table, const std::string &label,
                        std::vector<std::string> *names) {
  List_iterator_fast<Key_part_spec> columns(const_cast<::List<Key_part_spec> &>(list));
  while (const Key_part_spec *column = columns++) {
    std::string name = text_of(column->field_name);
    // The table's own spelling, as InnoDB shows it.
    if (table) {
      const Field *field = field_of(table, name);
      if (!field) return refuse(label, "Column " + name + " was not found.", "");
      name = field->field_name.str;
    }
    names->push_back(std::move(name));
  }
  return 0;
}

int Definer::explain(const BindingFault &fault, const std::string &label, const ForeignKey &key, bool of_parent) {
  std::string of_table = "in the referenced table";
  const std::string &column = key.columns[fault.column];
  switch (fault.reason) {
    case BindingFault::PrefixOnly:
      return refuse(label, "There is only prefix index " + of_table + " where the referenced columns appear as the first columns.");
    case BindingFault::TypesDiffer:
      return refuse(label, "Field type or character set for column '" + column + "' does not match referenced column '" +
                               fault.own_column + "'.");
    case BindingFault::NoPrimaryKey:
      return refuse(label, "A system-versioned table needs a primary key for foreign keys.");
    default:
      return refuse(label, "There is no index " + std::string(of_parent ? of_table : "in the table") +
                               " where the referenced columns appear as the first columns.");
  }
}

/** Refuses actions that no row can survive, or that the table's generated columns would not notice. */
int Definer::check_actions(const ForeignKey &key, const std::string &label) {
  bool sets_null = key.on_delete == Action::SetNull || key.on_update == Action::SetNull;
  bool changes = sets_null || key.on_update == Action::Cascade;
  for (size_t i = 0; i < key.columns.size(); i++) {
    const std::string &name = key.columns[i];
    const Field *field = field_of(form_, name);
    bool can_parent_be_null = key.parent_side.is_bound && key.parent_side.parts[i].can_be_null;
    // With another ON DELETE, or in a mode that is not strict, InnoDB does not look; then no NULL of the parent gets into
    // the child.
    if (thd_->is_strict_mode() && key.on_delete == Action::Restrict && key.on_update == Action::Cascade && can_parent_be_null && !field->real_maybe_null())
      return refuse(label, "You have defined an ON UPDATE CASCADE condition but column '" + name +
                               "' is defined as NOT NULL, and the referenced column is not.");
    if (sets_null && !field->real_maybe_null())
      return refuse(label, "You have defined a SET NULL condition but column '" + name + "' is defined as NOT NULL.");
    if (changes && is_base_of_stored(form_, field))
      return refuse(label, "A stored generated column depends on column '" + name + "', which the action would change.");
  }
  return 0;
}

int Definer::bind_parent(const std::string &label, ForeignKey *key, const ::List<Key_part_spec> &columns) {
  Definition definition;
  const TABLE *parent = form_;
  bool found = true;
  if (key->parent != own_) {
    TableRecord record;
    if (Error error = dictionary().find(key->parent, &record, &found)) return refuse(label, error.message());
    found = found && definition.open(thd_, key->parent);
    parent = found ? definition.table() : nullptr;
  }
  if (!found) {
    if (checks_foreign_keys(thd_)) {
      bool is_elsewhere = access(("./" + key->parent + ".frm").c_str(), F_OK) == 0;
      return refuse(label, "Referenced table " + quoted_table(thd_, key->parent) +
                               (is_elsewhere ? " is not a table of FronDB, or is partitioned." : " not found in the data dictionary."));
    }
    return columns_of(columns, nullptr, label, &key->referenced);
  }
  if (int error = columns_of(columns, parent, label, &key->referenced)) return error;
  BindingFault fault;
  if (bind_side(parent, true, key->referenced, &key->child_side.parts, &key->parent_side, &fault)) return 0;
  return explain(fault, label, *key, true);
}

int Definer::define(const Foreign_key &clause, ForeignKey *key) {
  std::string label = label_of(clause);
  key->child = own_;
  key->on_delete = action_of(clause.delete_opt);
  key->on_update = action_of(clause.update_opt);
  if (int error = columns_of(clause.columns, form_, label, &key->columns)) return error;
  BindingFault fault;
  if (!bind_side(form_, false, key->columns, nullptr, &key->child_side, &fault)) return explain(fault, label, *key, false);
  key->name = clause.constraint_name.str ? text_of(clause.constraint_name) : automatic_name(own_, number_++);
  key->parent = parent_of(clause, own_);
  if (int error = bind_parent(label, key, clause.ref_columns)) return error;
  return check_actions(*key, label);
}

}  // namespace fron
