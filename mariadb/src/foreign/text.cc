/* SPDX-License-Identifier: GPL-2.0-only

   See foreign/text.h. */

#include "foreign/text.h"

#include <sql_class.h>
#include <sql_show.h>

#include <ctime>
#include <mutex>

namespace fron {
namespace {

std::string quoted(MYSQL_THD thd, const std::string &name) {
  StringBuffer<NAME_LEN * 2> text(system_charset_info);
  append_identifier(thd, &text, name.c_str(), name.size());
  return std::string(text.ptr(), text.length());
}

std::string list_of(MYSQL_THD thd, const std::vector<std::string> &names) {
  std::string list;
  for (const std::string &name : names) list += (list.empty() ? "" : ", ") + quoted(thd, name);
  return list;
}

std::string action_of(const char *event, Action action) {
  switch (action) {
    case Action::NoAction: return std::string(event) + " NO ACTION";
    case Action::Cascade: return std::string(event) + " CASCADE";
    case Action::SetNull: return std::string(event) + " SET NULL";
    case Action::Restrict: break;
  }
  return "";
}

/** Guards latest(). LOCK: innermost. */
std::mutex latest_lock;

std::string &latest() {
  static std::string text;
  return text;
}

}  // namespace

std::string quoted_table(MYSQL_THD thd, const std::string &table) {
  return quoted(thd, shown_database(table)) + "." + quoted(thd, shown_table(table));
}

std::string clause_of(MYSQL_THD thd, const ForeignKey &key) {
  bool is_near = database_of(key.child) == database_of(key.parent);
  std::string parent = is_near ? quoted(thd, shown_table(key.parent)) : quoted_table(thd, key.parent);
  return "CONSTRAINT " + quoted(thd, key.name) + " FOREIGN KEY (" + list_of(thd, key.columns) + ") REFERENCES " + parent +
         " (" + list_of(thd, key.referenced) + ")" + action_of(" ON DELETE", key.on_delete) +
         action_of(" ON UPDATE", key.on_update);
}

std::string clauses_of(MYSQL_THD thd, const std::vector<ForeignKeyPtr> &keys) {
  std::string text;
  for (const ForeignKeyPtr &key : keys) text += ",\n  " + clause_of(thd, *key);
  return text;
}

std::string key_of(const TABLE_LIST &table) {
  return table_key({table.db.str, table.db.length}, {table.table_name.str, table.table_name.length});
}

std::string altered_table(MYSQL_THD thd) {
  const TABLE_LIST *first = thd->lex->query_tables;
  if (!first) return {};
  return key_of(*first);
}

std::string failure_of(MYSQL_THD thd, const ForeignKey &key) {
  // An ALTER by copy checks the rows of a table with a temporary name.
  std::string altered = is_put_aside(key.child) ? altered_table(thd) : "";
  if (altered.empty()) return quoted_table(thd, key.child) + ", " + clause_of(thd, key);
  ForeignKey shown = key;
  shown.child = altered;
  if (key.refers_to_itself()) shown.parent = altered;
  return quoted_table(thd, altered) + ", " + clause_of(thd, shown);
}

void note_foreign_error(MYSQL_THD thd, const std::string &sentence) {
  char when[32];
  time_t now = time(nullptr);
  struct tm local;
  localtime_r(&now, &local);
  strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &local);
  std::lock_guard<std::mutex> guard(latest_lock);
  latest() = std::string(when) + " connection " + std::to_string(thd_get_thread_id(thd)) + ": " + sentence;
}

std::string latest_foreign_error() {
  std::lock_guard<std::mutex> guard(latest_lock);
  return latest();
}

}  // namespace fron
