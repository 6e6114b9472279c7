/* SPDX-License-Identifier: GPL-2.0-only

   See ddl/galera.h. */

#include "ddl/galera.h"

#include <mysqld_error.h>
#include <wsrep_on.h>

#include "txn/handlerton.h"

namespace fron {
namespace {

/** Returns whether the statement rebuilds an existing FronDB table. */
bool is_rewritten(MYSQL_THD thd) {
  switch (thd_sql_command(thd)) {
    case SQLCOM_ALTER_TABLE:
    case SQLCOM_CREATE_INDEX:
    case SQLCOM_DROP_INDEX:
    case SQLCOM_OPTIMIZE: break;
    default: return false;
  }
  const TABLE_LIST *list = thd->lex->query_tables;
  return list && list->table && list->table->file->partition_ht() == hton();
}

}  // namespace

bool is_refused_in_cluster(MYSQL_THD thd, const HA_CREATE_INFO *info) {
  if (!WSREP(thd) || info->options & HA_LEX_CREATE_TMP_TABLE || is_rewritten(thd)) return false;
  my_printf_error(ER_GALERA_REPLICATION_NOT_SUPPORTED,
                  "Galera does not replicate FronDB tables: use InnoDB, or SET SESSION wsrep_on=OFF to create the table "
                  "on this node only",
                  MYF(0));
  return true;
}

}  // namespace fron
