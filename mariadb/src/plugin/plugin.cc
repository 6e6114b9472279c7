/* SPDX-License-Identifier: GPL-2.0-only

   The declaration of the plugin, and the actions when the server loads and unloads it. */

#include <my_global.h>
#include <mysql/plugin.h>
#include <handler.h>
#include <mysqld.h>
#include <sql_class.h>

#include <new>
#include <string>

#include "ddl/hooks.h"
#include "ddl/lost_tables.h"
#include "dictionary/dictionary.h"
#include "engine/db.h"
#include "engine/errors.h"
#include "engine/folder.h"
#include "engine/log.h"
#include "handler/costs.h"
#include "handler/ha_frondb.h"
#include "inspect/information_schema.h"
#include "inspect/status.h"
#include "plugin/abi.h"
#include "plugin/variables.h"
#include "table/options.h"
#include "txn/handlerton.h"
#include "txn/hooks.h"
#include "txn/waits.h"
#include "txn/prepared_writes.h"
#include "txn/xa.h"

namespace fron {
namespace {

handler *create_handler(handlerton *ht, TABLE_SHARE *share, MEM_ROOT *root) {
  return new (root) ha_frondb(ht, share);
}

/** Writes the reason why the engine does not start to the server's log. */
int refuse(const char *what, const char *reason) {
  sql_print_error("FronDB: %s: %s", what, reason);
  return 1;
}

/** Refuses, and closes the database, since the server does not call deinit() after a failed init(). */
int refuse_open(const char *what, const char *reason) {
  refuse(what, reason);
  dictionary() = Dictionary();
  if (Error error = close_db()) sql_print_error("FronDB: cannot close the database: %s", error.message());
  return 1;
}

std::string shown_series(uint64_t series) { return std::to_string(series / 100) + "." + std::to_string(series % 100); }

/** The text of a refusal if a server of a newer series has used the data: such a server may have changed definitions and
    system tables so that this one misreads them. */
Error refuse_newer_server(std::string *text) {
  constexpr uint64_t series = MYSQL_VERSION_ID / 100;
  uint64_t newest;
  if (Error error = dictionary().note_server(series, &newest)) return error;
  if (newest != series)
    *text = "MariaDB " + shown_series(newest) + " has used the data, and this server is " + shown_series(series) +
            ": start it with MariaDB " + shown_series(newest) + ", or restore a backup from before the upgrade";
  return {};
}

int init(void *place) {
  auto ht = static_cast<handlerton *>(place);
  set_hton(ht);
  std::string difference = abi_difference();
  if (!difference.empty()) return refuse("the plugin does not fit this server", difference.c_str());
  if (Error error = listen_to_engine()) return refuse("cannot direct the engine's messages to the error log", error.message());
  Starting starting;
  correct_defaults();
  Options options;
  if (Error error = make_options(&options)) return refuse("the options are invalid", error.message());
  std::string reason = take_earlier_folder();
  if (reason.empty() && *log_dir()) reason = refuse_log_dir(log_dir());
  if (!reason.empty()) return refuse("cannot open the database", reason.c_str());
  if (Error error = open_db(options)) return refuse("cannot open the database", Sentence(error).text());
  if (Error error = dictionary().open())
    return refuse_open("cannot open the dictionary of tables", Sentence(error).text());
  std::string newer;
  if (Error error = refuse_newer_server(&newer)) return refuse_open("cannot note the server's version", error.message());
  if (!newer.empty()) return refuse_open("cannot open the database", newer.c_str());
  note_prepared();
  if (Error error = report_waits(db())) return refuse_open("cannot report waits for locks", error.message());
  set_deadlock_listener(note_deadlock);
  ht->flags = HTON_SUPPORTS_EXTENDED_KEYS | HTON_SUPPORTS_FOREIGN_KEYS | HTON_REQUIRES_CLOSE_AFTER_TRUNCATE | HTON_TRUNCATE_REQUIRES_EXCLUSIVE_USE;
  ht->create = create_handler;
  set_ddl_hooks(ht);
  set_transaction_hooks(ht);
  set_status_hook(ht);
  set_xa_hooks(ht);
  set_cost_hook(ht);
  return 0;
}

int deinit(void *) {
  if (!db()) return 0;
  stop_search_for_lost_tables();
  dictionary() = Dictionary();
  if (Error error = close_db()) sql_print_error("FronDB: cannot close the database: %s", error.message());
  Error ignored = frondb_set_log(nullptr, nullptr, nullptr);  // Cannot fail: init() has set a log.
  return 0;
}

struct st_mysql_storage_engine storage_engine = {MYSQL_HANDLERTON_INTERFACE_VERSION};

}  // namespace
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
    fron::system_variables(),
    FRONDB_VERSION,
    MariaDB_PLUGIN_MATURITY_GAMMA},
    FRONDB_SCHEMA_TABLE("FRONDB_TRX", "Transactions of FronDB", fron::init_trx_table),
    FRONDB_SCHEMA_TABLE("FRONDB_LOCKS", "Locks of FronDB's transactions", fron::init_locks_table),
    FRONDB_SCHEMA_TABLE("FRONDB_LOCK_WAITS", "Waits for locks in FronDB", fron::init_lock_waits_table),
    FRONDB_SCHEMA_TABLE("FRONDB_TREES", "Sizes of FronDB's indexes", fron::init_trees_table),
    FRONDB_SCHEMA_TABLE("FRONDB_FILES", "Files of FronDB", fron::init_files_table),
    FRONDB_SCHEMA_TABLE("FRONDB_FOREIGN_KEYS", "Foreign keys of FronDB's tables", fron::init_foreign_keys_table)
        maria_declare_plugin_end;
