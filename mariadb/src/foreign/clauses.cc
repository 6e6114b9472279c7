/* SPDX-License-Identifier: GPL-2.0-only

   See foreign/clauses.h. */

#include "foreign/clauses.h"

#include <sql_alter.h>
#include <sql_table.h>

#include "engine/server.h"

namespace fron {

bool checks_foreign_keys(MYSQL_THD thd) { return !thd_test_options(thd, OPTION_NO_FOREIGN_KEY_CHECKS); }

std::string label_of(const Foreign_key &clause) {
  if (clause.name.str) return "`" + text_of(clause.name) + "`";
  std::string label;
  List_iterator_fast<Key_part_spec> columns(const_cast<Foreign_key &>(clause).columns);
  while (const Key_part_spec *column = columns++) label += (label.empty() ? "(" : ", ") + text_of(column->field_name);
  return label + ")";
}

Action action_of(enum_fk_option option) {
  switch (option) {
    case FK_OPTION_CASCADE: return Action::Cascade;
    case FK_OPTION_SET_NULL: return Action::SetNull;
    case FK_OPTION_NO_ACTION: return Action::NoAction;
    default: return Action::Restrict;
  }
}

/** Returns the key of the table that a statement gives these names. */
static std::string named_table(std::string database, std::string table) {
  if (lower_case_table_names) {
    database = lower_case(database);
    table = lower_case(table);
  }
  return table_key(database, table);
}

std::string new_name_by_alter(MYSQL_THD thd) {
  LEX *lex = thd->lex;
  if (thd_sql_command(thd) != SQLCOM_ALTER_TABLE || !(lex->alter_info.flags & ALTER_RENAME)) return {};
  return named_table(text_of(lex->first_select_lex()->db), text_of(lex->name));
}

std::string parent_of(const Foreign_key &clause, const std::string &own) {
  return named_table(clause.ref_db.str ? text_of(clause.ref_db) : shown_database(own), text_of(clause.ref_table));
}

std::vector<const Foreign_key *> new_clauses(const Alter_info *info) {
  std::vector<const Foreign_key *> clauses;
  List_iterator_fast<Key> keys(const_cast<::List<Key> &>(info->key_list));
  while (const Key *key = keys++)
    if (key->type == Key::FOREIGN_KEY && !key->old) clauses.push_back(static_cast<const Foreign_key *>(key));
  return clauses;
}

bool refers_to_itself(const Alter_info *info, const std::string &key) {
  for (const Foreign_key *clause : new_clauses(info))
    if (parent_of(*clause, key) == key) return true;
  return false;
}

bool is_dropped(const Alter_info *info, const std::string &name) {
  List_iterator_fast<Alter_drop> drops(const_cast<::List<Alter_drop> &>(info->drop_list));
  while (const Alter_drop *drop = drops++)
    if (drop->type == Alter_drop::FOREIGN_KEY && is_same_name(dropped_name(*drop), name)) return true;
  return false;
}

}  // namespace fron
