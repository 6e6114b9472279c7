/* SPDX-License-Identifier: GPL-2.0-only

   Tables of the information schema about the engine: FRONDB_TRX, FRONDB_LOCKS, FRONDB_LOCK_WAITS, FRONDB_TREES,
   FRONDB_FILES, FRONDB_FOREIGN_KEYS. As with InnoDB's tables, users without the PROCESS privilege see them empty. */

#ifndef FRONDB_INSPECT_INFORMATION_SCHEMA_H
#define FRONDB_INSPECT_INFORMATION_SCHEMA_H

#include <my_global.h>
#include <mysql/plugin.h>

namespace fron {

int init_trx_table(void *schema_table);
int init_locks_table(void *schema_table);
int init_lock_waits_table(void *schema_table);
int init_trees_table(void *schema_table);
int init_files_table(void *schema_table);
int init_foreign_keys_table(void *schema_table);

/** The server's description of a plugin with such a table. */
extern struct st_mysql_information_schema information_schema;

}  // namespace fron

/** The declaration of such a plugin, for the list in plugin/plugin.cc. */
#define FRONDB_SCHEMA_TABLE(name, description, init)                                          \
  {                                                                                           \
    MYSQL_INFORMATION_SCHEMA_PLUGIN, &fron::information_schema, name, "The FronDB authors",   \
        description, PLUGIN_LICENSE_GPL, init, nullptr,                                       \
        FRONDB_VERSION_MAJOR << 8 | FRONDB_VERSION_MINOR, nullptr, nullptr, FRONDB_VERSION,   \
        MariaDB_PLUGIN_MATURITY_GAMMA                                                  \
  }

#endif
