/* SPDX-License-Identifier: GPL-2.0-only

   See ddl/hooks.h. */

#include "ddl/hooks.h"

#include <my_global.h>
#include <handler.h>
#include <mysqld.h>
#include <sql_class.h>

#include <cerrno>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ddl/lost_tables.h"
#include "dictionary/dictionary.h"
#include "engine/errors.h"
#include "txn/fence.h"
#include "foreign/rename.h"
#include "table/options.h"
#include "txn/connection.h"
#include "txn/prepared_writes.h"

namespace fron {
namespace {

/** FronDB's tables have no files of their own. */
const char *no_extensions[] = {nullptr};

int drop_table(handlerton *, const char *path) {
  std::string key = Dictionary::key_of_path(path);
  THD *thd = _current_thd();
  if (thd && may_refuse_drop(thd, key))
    if (int error = check_prepared(key)) return error;
  if (thd)
    if (int error = check_drop(thd, key)) return error;
  FenceHolder fence;
  if (thd)
    if (int error = wait_for_checks(thd, key, &fence)) return error;
  std::lock_guard<std::mutex> changing(dictionary().foreign_keys().changing());
  bool found;
  if (Error error = dictionary().drop(key, &found)) return ha_error(error);
  // The server drops a partitioned table as a whole only if the server's own files of the table are lost: see
  // undefined_tables().
  std::vector<std::string> partitions;
  if (!found)
    if (Error error = dictionary().tables_of(key + PARTITION, &partitions)) return ha_error(error);
  if (!partitions.empty())
    if (int error = check_prepared(partitions[0])) return error;
  for (const std::string &partition : partitions)
    if (Error error = dictionary().drop(partition, &found)) return ha_error(error);
  if (Connection *connection = thd ? Connection::find(thd) : nullptr) connection->has_dropped();
  return found ? 0 : ENOENT;
}

/** Finds tables without a definition in the server. A crash in DROP TABLE can leave the partitions of a table in
    this state, since the server first removes its own files of the table. */
Error undefined_tables(std::set<std::string> *names) {
  std::vector<std::string> keys;
  if (Error error = dictionary().tables_of("", &keys)) return error;
  for (const std::string &key : keys) {
    // The definition file of a temporary table is not in the data directory.
    if (key[0] == '/') continue;
    std::string name = key.substr(0, std::min(key.find(PARTITION), key.find(VECTOR_INDEX)));
    if (access((name + ".frm").c_str(), F_OK) != 0 && errno == ENOENT) names->insert(name);
  }
  return {};
}

/** Returns whether ALTER TABLE has made the table as a copy, or has moved it aside for its copy. */
bool is_of_alter(const std::string &name) {
  constexpr std::string_view INTERNAL = "#sql";
  size_t begin = name.rfind('/') + 1;
  return name.compare(begin, INTERNAL.size(), INTERNAL) == 0;
}

/** Drops all tables of a database, including tables for which the server has no definition. */
void drop_database(handlerton *, char *path) {
  std::string prefix = Dictionary::key_of_path(path);
  if (prefix.empty() || prefix.back() != '/') prefix.push_back('/');
  std::lock_guard<std::mutex> changing(dictionary().foreign_keys().changing());
  std::vector<std::string> keys;
  bool found;
  Error error = dictionary().tables_of(prefix, &keys);
  for (size_t i = 0; i < keys.size() && !error; i++) error = dictionary().drop(keys[i], &found);
  if (error)
    sql_print_warning("FronDB: DROP DATABASE could not drop all tables of %s: %s", prefix.c_str(), error.message());
}

/** Called after a crash in an ALTER. Returns 0 if the table has the new definition. */
int check_version(handlerton *, const char *path, const LEX_CUSTRING *version, ulonglong) {
  std::string key = Dictionary::key_of_path(path);
  TableRecord record;
  bool found;
  Error error = dictionary().find(key, &record, &found);
  if (!error && !found) {
    // All partitions are changed atomically, so the record of any partition decides.
    std::vector<std::string> partitions;
    error = dictionary().tables_of(key + PARTITION, &partitions);
    if (!error && !partitions.empty()) error = dictionary().find(partitions[0], &record, &found);
  }
  if (error) sql_print_error("FronDB: cannot read the definition of %s: %s", key.c_str(), error.message());
  std::string_view wanted(reinterpret_cast<const char *>(version->str), version->length);
  return !error && found && record.definition == wanted ? 0 : 1;
}

/** Called when the server has finished or undone the DDL that a crash interrupted: now trees without a record can be
    dropped. */
int signal_ddl_recovery_done(handlerton *) {
  // Only warn: tables work even if the space of orphaned trees cannot be freed.
  if (Error error = dictionary().drop_orphans())
    sql_print_warning("FronDB: cannot drop the trees of dropped tables; the next start tries again: %s", error.message());
  // Do not drop tables without a definition: the server may have been started before all files of a restored copy were
  // in place.
  std::set<std::string> names;
  if (Error error = undefined_tables(&names))
    sql_print_warning("FronDB: cannot search for tables without a definition: %s", error.message());
  for (const std::string &name : names)
    sql_print_warning("FronDB: %s has data but no definition file %s.frm: %s", sql_name(name).c_str(), name.c_str(),
                      is_of_alter(name) ? "a crash has interrupted an ALTER TABLE. If its table cannot be opened, this may be "
                                          "the only copy of the rows: keep a backup of the data directory, and restore the "
                                          "table. If the table has its rows, free the space with DROP TABLE"
                                        : "restore the file, or free the space with DROP TABLE");
  search_for_lost_tables();
  return 0;
}

}  // namespace

void set_ddl_hooks(handlerton *ht) {
  ht->drop_table = drop_table;
  ht->drop_database = drop_database;
  ht->tablefile_extensions = no_extensions;
  ht->check_version = check_version;
  ht->signal_ddl_recovery_done = signal_ddl_recovery_done;
  ht->table_options = table_option_list;
  ht->index_options = index_option_list;
}

}  // namespace fron
