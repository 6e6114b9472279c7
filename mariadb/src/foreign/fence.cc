/* SPDX-License-Identifier: GPL-2.0-only

   See foreign/fence.h. */

#include "foreign/fence.h"

#include <sql_class.h>

#include "dictionary/dictionary.h"
#include "engine/db.h"
#include "engine/errors.h"
#include "txn/connection.h"
#include "txn/session_variables.h"

namespace fron {
namespace {

Error lock(frondb_txn *txn, const std::string &table, frondb_lock mode) {
  size_t length;
  bool found;
  return frondb_txn_get_into(txn, dictionary().fences(), slice(table), mode, FRONDB_WAIT, nullptr, 0, &length, &found);
}

}  // namespace

int hold_fence(Connection *connection, const std::string &parent) {
  return ha_error(lock(connection->txn(), parent, FRONDB_LOCK_SHARED));
}

int FenceHolder::take(MYSQL_THD thd, const std::vector<std::string> &tables) {
  if (tables.empty()) return 0;
  TxnOptions options;
  if (Error error = frondb_txn_options_new(options.out())) return ha_error(error);
  if (Error error = frondb_txn_options_set_isolation(options.get(), FRONDB_READ_COMMITTED)) return ha_error(error);
  if (Error error = frondb_txn_options_set_lock_timeout_millis(options.get(), session_lock_timeout_millis(thd)))
    return ha_error(error);
  if (Error error = frondb_db_begin(db(), options.get(), txn_.out())) return ha_error(error);
  for (const std::string &table : tables)
    if (Error error = lock(txn_.get(), table, FRONDB_LOCK_EXCLUSIVE)) return ha_error(error);
  return 0;
}

}  // namespace fron
