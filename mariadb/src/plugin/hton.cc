/* SPDX-License-Identifier: GPL-2.0-only

   See plugin/hton.h. Also the declaration of the plugin. */

#include "plugin/hton.h"

#include <my_global.h>
#include <mysql/plugin.h>
#include <handler.h>
#include <mysqld.h>
#include <sql_class.h>

#include <cerrno>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "ddl/lost_tables.h"
#include "ddl/table_options.h"
#include "dictionary/dictionary.h"
#include "engine/errors.h"
#include "engine/log.h"
#include "handler/ha_frondb.h"
#include "inspect/information_schema.h"
#include "inspect/status.h"
#include "plugin/abi.h"
#include "plugin/variables.h"
#include "txn/connection.h"
#include "txn/prepared_writes.h"
#include "txn/waits.h"
#include "txn/xa.h"

/** The server's: a folder that is no database, though it is where databases are. In no header of its own. */
void ignore_db_dirs_append(const char *folder);

namespace fron {
namespace {

handlerton *the_hton;
Db the_db;
Dictionary the_dictionary;

/** Tables have no files of their own. */
const char *no_extensions[] = {nullptr};

handler *create_handler(handlerton *ht, TABLE_SHARE *share, MEM_ROOT *root) {
  return new (root) ha_frondb(ht, share);
}

int drop_table(handlerton *, const char *path) {
  std::string key = Dictionary::key_of_path(path);
  THD *thd = _current_thd();
  if (thd && may_refuse_drop(thd, key))
    if (int error = check_prepared(key)) return error;
  bool found;
  if (Error error = dictionary().drop(key, &found)) return ha_error(error);
  // The server names a table with partitions as a whole only if it has lost its files: see undefined_tables().
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

/** Tables of which the server has no definition: a crash in DROP TABLE leaves partitions so, for the server removes
    first what it knows of them. */
Error undefined_tables(std::set<std::string> *names) {
  std::vector<std::string> keys;
  if (Error error = dictionary().tables_of("", &keys)) return error;
  for (const std::string &key : keys) {
    // A temporary one has its definition elsewhere.
    if (key[0] == '/') continue;
    std::string name = key.substr(0, key.find(PARTITION));
    if (access((name + ".frm").c_str(), F_OK) != 0 && errno == ENOENT) names->insert(name);
  }
  return {};
}

/** A database of the server goes: tables that it does not know of, too. */
void drop_database(handlerton *, char *path) {
  std::string prefix = Dictionary::key_of_path(path);
  if (prefix.empty() || prefix.back() != '/') prefix.push_back('/');
  std::vector<std::string> keys;
  bool found;
  Error error = dictionary().tables_of(prefix, &keys);
  for (size_t i = 0; i < keys.size() && !error; i++) error = dictionary().drop(keys[i], &found);
  if (error) sql_print_warning("FronDB: DROP DATABASE left tables behind: %s", error.message());
}

/** After a crash in an ALTER: 0 if the table is as the new definition says. */
int check_version(handlerton *, const char *path, const LEX_CUSTRING *version, ulonglong) {
  std::string key = Dictionary::key_of_path(path);
  TableRecord record;
  bool found;
  Error error = dictionary().find(key, &record, &found);
  if (!error && !found) {
    // All partitions are changed at once, so any will do.
    std::vector<std::string> partitions;
    error = dictionary().tables_of(key + PARTITION, &partitions);
    if (!error && !partitions.empty()) error = dictionary().find(partitions[0], &record, &found);
  }
  if (error) sql_print_error("FronDB: reading the definition of %s: %s", key.c_str(), error.message());
  std::string_view wanted(reinterpret_cast<const char *>(version->str), version->length);
  return !error && found && record.definition == wanted ? 0 : 1;
}

/** The server has finished or undone the DDL that a crash interrupted: what nobody names now is nobody's. */
int signal_ddl_recovery_done(handlerton *) {
  // Space that is not given back is no reason to refuse the tables.
  if (Error error = dictionary().drop_orphans())
    sql_print_warning("FronDB: trees of no table were left: %s", error.message());
  // They stay: whoever copies files back may start the server before all are there.
  std::set<std::string> names;
  if (Error error = undefined_tables(&names))
    sql_print_warning("FronDB: looking for tables without a definition: %s", error.message());
  for (const std::string &name : names)
    sql_print_warning("FronDB: %s has rows and no file %s.frm: DROP TABLE gives its space back",
                      sql_name(name).c_str(), name.c_str());
  look_for_lost_tables();
  return 0;
}

bool flush_logs(handlerton *) { return bool(Error(frondb_db_sync(db()))); }

/** Says in the server's log why the engine is not there. */
int refuse(const char *what, const char *reason) {
  sql_print_error("FronDB: %s: %s", what, reason);
  return 1;
}

int init(void *place) {
  the_hton = static_cast<handlerton *>(place);
  std::string difference = abi_difference();
  if (!difference.empty()) return refuse("this server is not the one it was built for", difference.c_str());
  if (Error error = listen_to_engine()) return refuse("nobody would hear of damage", error.message());
  // Later, at INSTALL SONAME, the server's list of them is not its own to free.
  if (!mysqld_server_started) ignore_db_dirs_append(DATABASE_DIR);
  Starting starting;
  Options options;
  if (Error error = make_options(&options)) return refuse("the options do not fit", error.message());
  if (Error error = frondb_db_open(DATABASE_DIR, options.get(), the_db.out()))
    return refuse("cannot open the database", Sentence(error).text());
  if (Error error = the_dictionary.open(the_db.get()))
    return refuse("cannot read the tables' dictionary", Sentence(error).text());
  if (Error error = report_waits(the_db.get())) return refuse("cannot watch locks", error.message());
  the_hton->flags = HTON_SUPPORTS_EXTENDED_KEYS | HTON_REQUIRES_CLOSE_AFTER_TRUNCATE |
                    HTON_TRUNCATE_REQUIRES_EXCLUSIVE_USE;
  the_hton->create = create_handler;
  the_hton->drop_table = drop_table;
  the_hton->drop_database = drop_database;
  the_hton->flush_logs = flush_logs;
  the_hton->tablefile_extensions = no_extensions;
  the_hton->check_version = check_version;
  the_hton->signal_ddl_recovery_done = signal_ddl_recovery_done;
  the_hton->table_options = table_option_list;
  the_hton->index_options = index_option_list;
  set_transaction_hooks(the_hton);
  set_status_hook(the_hton);
  set_xa_hooks(the_hton);
  return 0;
}

int deinit(void *) {
  if (!the_db) return 0;
  stop_looking_for_lost_tables();
  the_dictionary = Dictionary();
  Error error = frondb_db_close(the_db.get());
  if (error) sql_print_error("FronDB: closing the database: %s", error.message());
  the_db.reset();
  Error ignored = frondb_set_log(nullptr, nullptr, nullptr);  // It cannot fail: we listened.
  return 0;
}

struct st_mysql_storage_engine storage_engine = {MYSQL_HANDLERTON_INTERFACE_VERSION};

}  // namespace

handlerton *hton() { return the_hton; }
frondb_db *db() { return the_db.get(); }
Dictionary &dictionary() { return the_dictionary; }

}  // namespace fron

maria_declare_plugin(frondb){
    MYSQL_STORAGE_ENGINE_PLUGIN,
    &fron::storage_engine,
    "FronDB",
    "The FronDB authors",
    "Fractal-tree storage: many indexes on tables larger than memory, transactions, compression",
    PLUGIN_LICENSE_GPL,
    fron::init,
    fron::deinit,
    FRONDB_VERSION_MAJOR << 8 | FRONDB_VERSION_MINOR,
    fron::status_variables,
    fron::system_variables,
    FRONDB_VERSION,
    MariaDB_PLUGIN_MATURITY_EXPERIMENTAL},
    FRONDB_SCHEMA_TABLE("FRONDB_TRX", "Transactions of FronDB", fron::init_trx_table),
    FRONDB_SCHEMA_TABLE("FRONDB_LOCKS", "Locks of FronDB's transactions", fron::init_locks_table),
    FRONDB_SCHEMA_TABLE("FRONDB_LOCK_WAITS", "Who waits for whom in FronDB", fron::init_lock_waits_table),
    FRONDB_SCHEMA_TABLE("FRONDB_TREES", "Sizes of FronDB's indexes", fron::init_trees_table),
    FRONDB_SCHEMA_TABLE("FRONDB_FILES", "Files of FronDB", fron::init_files_table) maria_declare_plugin_end;
