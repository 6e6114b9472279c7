/* SPDX-License-Identifier: GPL-2.0-only

   See txn/fence.h. */

#include "txn/fence.h"

#include <sql_class.h>

#include "dictionary/dictionary.h"
#include "engine/db.h"
#include "engine/errors.h"
#include "engine/kill.h"
#include "txn/connection.h"
#include "txn/lock_timeout.h"

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

int FenceHolder::begin(MYSQL_THD thd) {
  TxnOptions options;
  if (Error error = frondb_txn_options_new(options.out())) return ha_error(error);
  if (Error error = frondb_txn_options_set_isolation(options.get(), FRONDB_READ_COMMITTED)) return ha_error(error);
  if (Error error = frondb_txn_options_set_lock_timeout_millis(options.get(), statement_lock_timeout_millis(thd)))
    return ha_error(error);
  return ha_error(frondb_db_begin(db(), options.get(), txn_.out()));
}

int FenceHolder::take(MYSQL_THD thd, const std::vector<std::string> &tables) {
  std::vector<std::string> wanted;
  for (const std::string &table : tables)
    if (tables_.insert(table).second) wanted.push_back(table);
  if (wanted.empty()) return 0;
  if (!txn_)
    if (int error = begin(thd)) return error;
  Connection *connection = Connection::of(thd);
  if (!connection) return HA_ERR_OUT_OF_MEM;
  connection->also_cancels(txn_.get());
  int error = is_killed(thd) ? HA_ERR_ABORTED_BY_USER : 0;
  for (size_t i = 0; i < wanted.size() && !error; i++)
    error = ha_error(lock(txn_.get(), wanted[i], FRONDB_LOCK_EXCLUSIVE));
  connection->also_cancels(nullptr);
  return error;
}

}  // namespace fron
