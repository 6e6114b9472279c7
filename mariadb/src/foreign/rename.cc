/* SPDX-License-Identifier: GPL-2.0-only

   See foreign/rename.h. */

#include "foreign/rename.h"

#include <sql_class.h>
#include <handler.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>
#include <vector>

#include "dictionary/dictionary.h"
#include "engine/errors.h"
#include "foreign/binding.h"
#include "foreign/clauses.h"
#include "foreign/define.h"
#include "txn/fence.h"
#include "foreign/text.h"
#include "txn/connection.h"
#include "txn/handlerton.h"

namespace fron {
namespace {

/** Returns whether the statement asks for a rename. If not, the server undoes a rename. */
bool is_asked_for(MYSQL_THD thd, const std::string &from, const std::string &to) {
  if (thd_sql_command(thd) != SQLCOM_RENAME_TABLE) return from == altered_table(thd);
  // The statement's tables are pairs of an old name and a new one.
  const TABLE_LIST *named = thd->lex->query_tables;
  for (; named && named->next_global; named = named->next_global->next_global)
    if (key_of(*named) == from && key_of(*named->next_global) == to) return true;
  return false;
}

/** Returns whether a foreign key of the renamed table would get a name that is taken in the other database. The
    error is InnoDB's, and a warning names the foreign key. A rename back is not refused, although another connection may
    have taken the name: the server would ignore the error, and the definition would lose its rows. */
bool has_taken_name(MYSQL_THD thd, const std::string &from, const std::string &to) {
  if (is_put_aside(from) || is_put_aside(to) || database_of(from) == database_of(to)) return false;
  if (!is_asked_for(thd, from, to)) return false;
  for (const ForeignKeyPtr &key : dictionary().foreign_keys().of(from)->own) {
    if (!dictionary().foreign_keys().find(database_of(to), key->name)) continue;
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_DUP_CONSTRAINT_NAME, ER_THD(thd, ER_DUP_CONSTRAINT_NAME),
                        "FOREIGN KEY", (shown_database(to) + "/" + key->name).c_str());
    my_error(ER_TABLE_EXISTS_ERROR, MYF(0), shown_table(to).c_str());
    return true;
  }
  return false;
}

/** Returns whether a foreign key of another table waits for a table of this name. */
bool waits_for(const std::string &table) {
  for (const ForeignKeyPtr &key : dictionary().foreign_keys().recorded_of(table).referencing)
    if (!key->parent_side.is_bound) return true;
  return false;
}

/** Returns the tables whose fences (txn/fence.h) a rename needs: none, or all tables of the statement. A RENAME or ALTER
    takes the fences of all its tables before it renames the first one, so that no wait can fail when only some have
    their new names: a deadlock would end all fences of the statement. The fences of the new names keep transactions from
    checking rows there while the statement can still be undone. */
std::vector<std::string> fenced_tables(MYSQL_THD thd, const std::string &from, const std::string &to) {
  std::vector<std::string> tables = {from, to};
  if (thd_sql_command(thd) == SQLCOM_RENAME_TABLE) {
    const TABLE_LIST *named = thd->lex->query_tables;
    for (; named; named = named->next_global) tables.push_back(key_of(*named));
  } else if (is_put_aside(from) && !altered_table(thd).empty()) {
    // An ALTER with RENAME may rename only the copy. Transactions that have checked rows against the old table must end
    // too.
    tables.push_back(altered_table(thd));
  }
  // An ALTER by copy gives the old table a temporary name first.
  if (std::string name = new_name_by_alter(thd); !name.empty()) tables.push_back(name);
  tables.erase(std::remove_if(tables.begin(), tables.end(), is_put_aside), tables.end());
  auto is_parent_name = [](const std::string &table) {
    return !dictionary().foreign_keys().of(table)->referencing.empty() || waits_for(table);
  };
  if (std::none_of(tables.begin(), tables.end(), is_parent_name)) return {};
  // Statements that take the same fences take them in the same order.
  std::sort(tables.begin(), tables.end());
  tables.erase(std::unique(tables.begin(), tables.end()), tables.end());
  return tables;
}

/** Takes fences that the connection holds until the statement ends. */
int take_until_statement_ends(MYSQL_THD thd, Connection *connection, const std::vector<std::string> &tables) {
  if (tables.empty()) return 0;
  if (!connection->fence) connection->fence = std::make_shared<FenceHolder>();
  // Makes the server call commit() or rollback() at the end of the statement, after it has undone a statement that fails.
  trans_register_ha(thd, false, hton(), 0);
  return connection->fence->take(thd, tables);
}

}  // namespace

int rename_with_fences(MYSQL_THD thd, const std::string &from, const std::string &to) {
  Connection *connection = Connection::of(thd);
  if (!connection) return HA_ERR_OUT_OF_MEM;
  if (int error = take_until_statement_ends(thd, connection, fenced_tables(thd, from, to))) return error;
  // Bind foreign keys that wait for a table of this name.
  Definition definition;
  ForeignKeyChange adopted;
  if (!is_put_aside(to) && waits_for(to) && definition.open(thd, from))
    if (int error = adopt_waiting(thd, definition.table(), to, &adopted)) return error;
  bool found = false;
  int error;
  {
    std::lock_guard<std::mutex> changing(dictionary().foreign_keys().changing());
    error = has_taken_name(thd, from, to) ? HA_ERR_FOUND_DUPP_KEY : ha_error(dictionary().rename(from, to, &found, adopted));
  }
  return error ? error : found ? 0 : ENOENT;
}

int check_drop(MYSQL_THD thd, const std::string &table) {
  if (!checks_foreign_keys(thd)) return 0;
  // If the dictionary does not have the table, foreign keys that refer to its name only wait for it.
  TableRecord record;
  bool found;
  if (Error error = dictionary().find(table, &record, &found)) return ha_error(error);
  if (!found) return 0;
  if (Connection *connection = Connection::find(thd)) connection->failed_foreign_key = nullptr;
  bool drops_all = thd_sql_command(thd) == SQLCOM_DROP_DB;
  for (const ForeignKeyPtr &key : dictionary().foreign_keys().of(table)->referencing) {
    if (key->child == table || (drops_all && database_of(key->child) == database_of(table))) continue;
    note_foreign_error(thd, "Cannot drop table " + quoted_table(thd, table) + " because it is referenced by " +
                                failure_of(thd, *key));
    return HA_ERR_ROW_IS_REFERENCED;
  }
  return 0;
}

int wait_for_checks(MYSQL_THD thd, const std::string &table, FenceHolder *fence) {
  const Connection *connection = Connection::find(thd);
  if (is_put_aside(table) || (connection && connection->fence)) return 0;
  for (const ForeignKeyPtr &key : dictionary().foreign_keys().of(table)->referencing)
    if (key->child != table) return fence->take(thd, {table});
  return 0;
}

}  // namespace fron
