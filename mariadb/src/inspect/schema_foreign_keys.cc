/* SPDX-License-Identifier: GPL-2.0-only

   See inspect/information_schema.h. Here: FRONDB_FOREIGN_KEYS, all foreign keys with the indexes that serve them,
   including foreign keys that wait for a table, which the server's own tables do not show. */

#include "inspect/information_schema.h"

#include <sql_i_s.h>

#include "dictionary/dictionary.h"
#include "inspect/schema_row.h"

namespace fron {
namespace {

using namespace Show;

constexpr uint NAME_CHARS = 64, COLUMNS_CHARS = 2100;

ST_FIELD_INFO fields[] = {Column("CONSTRAINT_NAME", Varchar(NAME_CHARS), NOT_NULL),
                          Column("DATABASE_NAME", Varchar(NAME_CHARS), NOT_NULL),
                          Column("TABLE_NAME", Varchar(NAME_CHARS), NOT_NULL),
                          Column("COLUMN_NAMES", Varchar(COLUMNS_CHARS), NOT_NULL),
                          Column("INDEX_NAME", Varchar(NAME_CHARS), NULLABLE),
                          Column("REFERENCED_DATABASE_NAME", Varchar(NAME_CHARS), NOT_NULL),
                          Column("REFERENCED_TABLE_NAME", Varchar(NAME_CHARS), NOT_NULL),
                          Column("REFERENCED_COLUMN_NAMES", Varchar(COLUMNS_CHARS), NOT_NULL),
                          Column("REFERENCED_INDEX_NAME", Varchar(NAME_CHARS), NULLABLE),
                          Column("DELETE_RULE", Varchar(12), NOT_NULL),
                          Column("UPDATE_RULE", Varchar(12), NOT_NULL),
                          CEnd()};

const char *name_of(Action action) {
  switch (action) {
    case Action::NoAction: return "NO ACTION";
    case Action::Cascade: return "CASCADE";
    case Action::SetNull: return "SET NULL";
    case Action::Restrict: break;
  }
  return "RESTRICT";
}

std::string joined(const std::vector<std::string> &names) {
  std::string all;
  for (const std::string &name : names) all += (all.empty() ? "" : ",") + name;
  return all;
}

int fill(MYSQL_THD thd, TABLE_LIST *tables, Item *) {
  if (!may_see(thd)) return 0;
  for (const ForeignKeyPtr &key : dictionary().foreign_keys().all()) {
    SchemaRow row(thd, tables->table);
    row.text(key->name).text(shown_database(key->child)).text(shown_table(key->child)).text(joined(key->columns));
    row.text_or_null(key->child_side.index, key->child_side.is_bound);
    row.text(shown_database(key->parent)).text(shown_table(key->parent)).text(joined(key->referenced));
    row.text_or_null(key->parent_side.index, key->parent_side.is_bound);
    row.text(name_of(key->on_delete)).text(name_of(key->on_update));
    if (row.store()) return 1;
  }
  return 0;
}

}  // namespace

int init_foreign_keys_table(void *place) { return init_schema_table(place, fields, guarded<fill>); }

}  // namespace fron
