/* SPDX-License-Identifier: GPL-2.0-only

   See handler/ha_frondb.h. Here: the server's queries about foreign keys of a table. */

#include "handler/ha_frondb.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "dictionary/dictionary.h"
#include "engine/errors.h"
#include "foreign/binding.h"
#include "foreign/text.h"
#include "txn/connection.h"

using namespace fron;

namespace {

TableForeignKeys keys_of(const std::string &table) { return dictionary().foreign_keys().recorded_of(table); }

LEX_CSTRING *copied(THD *thd, const std::string &text) {
  return thd_make_lex_string(thd, nullptr, text.data(), text.size(), 1);
}

enum_fk_option option_of(Action action) {
  switch (action) {
    case Action::NoAction: return FK_OPTION_NO_ACTION;
    case Action::Cascade: return FK_OPTION_CASCADE;
    case Action::SetNull: return FK_OPTION_SET_NULL;
    case Action::Restrict: break;
  }
  return FK_OPTION_RESTRICT;
}

/** Returns the server's description of a foreign key, in the statement's memory; null if there is no memory left. */
FOREIGN_KEY_INFO *describe(THD *thd, const ForeignKey &key) {
  FOREIGN_KEY_INFO info;
  info.foreign_id = copied(thd, key.name);
  info.foreign_db = copied(thd, shown_database(key.child));
  info.foreign_table = copied(thd, shown_table(key.child));
  info.referenced_db = copied(thd, shown_database(key.parent));
  info.referenced_table = copied(thd, shown_table(key.parent));
  info.update_method = option_of(key.on_update);
  info.delete_method = option_of(key.on_delete);
  info.referenced_key_name = key.parent_side.is_bound ? copied(thd, key.parent_side.index) : nullptr;
  size_t count = key.columns.size();
  for (size_t i = 0; i < count; i++) {
    info.foreign_fields.push_back(copied(thd, key.columns[i]));
    info.referenced_fields.push_back(copied(thd, key.referenced[i]));
    if (key.child_side.is_bound && key.child_side.parts[i].can_be_null) info.set_nullable(thd, false, uint(i), uint(count));
    if (key.parent_side.is_bound && key.parent_side.parts[i].can_be_null) info.set_nullable(thd, true, uint(i), uint(count));
  }
  // A server of a later patch release may have more members; zeros are the safest values for them.
  constexpr size_t MORE = 256;
  auto place = static_cast<FOREIGN_KEY_INFO *>(thd_calloc(thd, sizeof info + MORE));
  if (place) memcpy(static_cast<void *>(place), &info, sizeof info);
  return place;
}

int list_of(THD *thd, const std::vector<ForeignKeyPtr> &keys, ::List<FOREIGN_KEY_INFO> *list) {
  for (const ForeignKeyPtr &key : keys) {
    // A table that a statement is creating cannot be opened by others.
    if (is_put_aside(key->child)) continue;
    FOREIGN_KEY_INFO *info = describe(thd, *key);
    if (!info || list->push_back(info, thd->mem_root)) return HA_ERR_OUT_OF_MEM;
  }
  return 0;
}

bool alters(THD *thd) {
  int command = thd_sql_command(thd);
  return command == SQLCOM_ALTER_TABLE || command == SQLCOM_CREATE_INDEX || command == SQLCOM_DROP_INDEX;
}

bool shares_columns(const ForeignKey &own, const ForeignKey &referencing) {
  for (const std::string &column : own.columns)
    for (const std::string &other : referencing.referenced)
      if (is_same_name(column, other)) return true;
  return false;
}

/** Makes the server open more children's tables for a DELETE. The server opens them only for the statement's own
    event, delete or update. A DELETE whose action sets columns of this table to NULL updates rows here, so it also
    needs the children that an update changes. */
void open_for_updates_of_deletes(TableForeignKeys *keys) {
  for (ForeignKeyPtr &key : keys->referencing) {
    if (changes_children(key->on_delete) || !changes_children(key->on_update)) continue;
    bool is_due = std::any_of(keys->own.begin(), keys->own.end(), [&](const ForeignKeyPtr &own) {
      return own->on_delete == Action::SetNull && shares_columns(*own, *key);
    });
    if (!is_due) continue;
    auto opened = std::make_shared<ForeignKey>(*key);
    opened->on_delete = Action::Cascade;
    key = opened;
  }
}

}  // namespace

char *ha_frondb::get_foreign_key_create_info() {
  char *text = nullptr;
  int error = guarded([&] {
    text = strdup(clauses_of(ha_thd(), keys_of(share_->name).own).c_str());
    return 0;
  });
  return error ? nullptr : text;
}

void ha_frondb::free_foreign_key_create_info(char *text) { free(text); }

int ha_frondb::get_foreign_key_list(THD *thd, ::List<FOREIGN_KEY_INFO> *list) {
  return guarded([&] { return list_of(thd, keys_of(share_->name).own, list); });
}

int ha_frondb::get_parent_foreign_key_list(THD *thd, ::List<FOREIGN_KEY_INFO> *list) {
  return guarded([&] {
    TableForeignKeys keys = keys_of(share_->name);
    if (!alters(thd)) open_for_updates_of_deletes(&keys);
    if (int error = list_of(thd, keys.referencing, list)) return error;
    if (!table->versioned()) return 0;
    // A delete of a versioned row is an update, also to a replica, which then opens the children's tables for it.
    List_iterator_fast<FOREIGN_KEY_INFO> all(*list);
    while (FOREIGN_KEY_INFO *info = all++)
      if (info->delete_method == FK_OPTION_CASCADE || info->delete_method == FK_OPTION_SET_NULL)
        info->update_method = info->delete_method;
    return 0;
  });
}

bool ha_frondb::referenced_by_foreign_key() const noexcept {
  bool is_referenced = false;
  int error = guarded([&] {
    is_referenced = !keys_of(share_->name).referencing.empty();
    return 0;
  });
  return error || is_referenced;
}

bool ha_frondb::is_fk_defined_on_table_or_index(uint index) {
  TableForeignKeys keys = keys_of(share_->name);
  if (index == MAX_KEY) return !keys.empty();
  for (const ForeignKeyPtr &key : keys.own)
    if (index_of(table, key->child_side) == index) return true;
  for (const ForeignKeyPtr &key : keys.referencing)
    if (index_of(table, key->parent_side) == index) return true;
  return false;
}

bool ha_frondb::can_switch_engines() { return keys_of(share_->name).empty(); }

bool ha_frondb::get_foreign_dup_key(char *child, uint child_size, char *key, uint key_size) {
  ForeignKeyPtr failed = use_.connection ? use_.connection->failed_foreign_key : nullptr;
  if (!failed) return false;
  snprintf(child, child_size, "%s", shown_table(failed->child).c_str());
  snprintf(key, key_size, "%s", use_.connection->duplicate_foreign_index.c_str());
  return true;
}
