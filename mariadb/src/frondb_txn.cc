/* SPDX-License-Identifier: GPL-2.0-only

   See frondb_txn.h. */

#include "frondb_txn.h"

#include <sql_class.h>
#include <handler.h>

#include "frondb_error.h"
#include "frondb_hton.h"
#include "frondb_sysvar.h"

namespace fron {
namespace {

/** A savepoint as the server keeps it for us. */
struct Savepoint {
  uint64_t number;
};

frondb_isolation isolation_of(MYSQL_THD thd) {
  switch (thd_tx_isolation(thd)) {
    case ISO_READ_UNCOMMITTED: return FRONDB_READ_UNCOMMITTED;
    case ISO_READ_COMMITTED: return FRONDB_READ_COMMITTED;
    case ISO_REPEATABLE_READ: return FRONDB_REPEATABLE_READ;
    default: return FRONDB_SERIALIZABLE;
  }
}

bool is_multi_statement(MYSQL_THD thd) {
  return thd_test_options(thd, OPTION_NOT_AUTOCOMMIT | OPTION_BEGIN);
}

int close_connection(handlerton *, MYSQL_THD thd) {
  delete Connection::find(thd);
  thd_set_ha_data(thd, hton(), nullptr);
  return 0;
}

void kill_query(handlerton *, MYSQL_THD thd, enum thd_kill_levels) {
  if (Connection *connection = Connection::find(thd)) connection->cancel();
}

int commit(handlerton *, MYSQL_THD thd, bool all) {
  Connection *connection = Connection::find(thd);
  return connection ? connection->commit(thd, all) : 0;
}

int rollback(handlerton *, MYSQL_THD thd, bool all) {
  Connection *connection = Connection::find(thd);
  return connection ? connection->rollback(thd, all) : 0;
}

int savepoint_set(handlerton *, MYSQL_THD thd, void *place) {
  Connection *connection = Connection::find(thd);
  return connection ? connection->set_savepoint(&static_cast<Savepoint *>(place)->number) : 0;
}

int savepoint_rollback(handlerton *, MYSQL_THD thd, void *place) {
  Connection *connection = Connection::find(thd);
  return connection ? connection->roll_back_to(static_cast<Savepoint *>(place)->number) : 0;
}

int savepoint_release(handlerton *, MYSQL_THD thd, void *place) {
  Connection *connection = Connection::find(thd);
  return connection ? connection->release(static_cast<Savepoint *>(place)->number) : 0;
}

bool keeps_locks(handlerton *, MYSQL_THD) { return false; }

int start_consistent_snapshot(handlerton *ht, MYSQL_THD thd) {
  Connection *connection = Connection::of(thd);
  if (int error = connection->begin_statement(thd, false)) return error;
  trans_register_ha(thd, true, ht, 0);
  return ha_error(frondb_txn_take_snapshot(connection->txn()));
}

}  // namespace

Connection *Connection::of(MYSQL_THD thd) {
  Connection *connection = find(thd);
  if (!connection) {
    connection = new Connection(thd);
    thd_set_ha_data(thd, hton(), connection);
  }
  return connection;
}

Connection *Connection::find(MYSQL_THD thd) {
  return static_cast<Connection *>(thd_get_ha_data(thd, hton()));
}

int Connection::begin(MYSQL_THD thd) {
  TxnOptions options;
  if (Error error = frondb_txn_options_new(options.out())) return ha_error(error);
  Error errors[] = {
      frondb_txn_options_set_isolation(options.get(), isolation_of(thd)),
      frondb_txn_options_set_snapshot_isolation(options.get(), session_snapshot_isolation(thd)),
      frondb_txn_options_set_lock_timeout_millis(options.get(), session_lock_timeout_millis(thd)),
      frondb_txn_options_set_durability(options.get(), session_durability(thd)),
      frondb_db_begin(db(), options.get(), txn_.out())};
  for (const Error &error : errors)
    if (error) return ha_error(error);
  session_.has(txn_.get());
  return 0;
}

int Connection::begin_statement(MYSQL_THD thd, bool writes) {
  if (!txn_)
    if (int error = begin(thd)) return error;
  trans_register_ha(thd, false, hton(), 0);
  if (is_multi_statement(thd)) trans_register_ha(thd, true, hton(), 0);
  if (!in_statement_) {
    in_statement_ = true;
    if (int error = ha_error(frondb_txn_begin_statement(txn_.get()))) return error;
  }
  if (writes && !statement_)
    return ha_error(frondb_txn_set_savepoint(txn_.get(), &statement_));
  return 0;
}

void Connection::end() {
  session_.has(nullptr);
  txn_.reset();
  statement_ = 0;
  in_statement_ = false;
}

int Connection::commit(MYSQL_THD thd, bool all) {
  if (!txn_) return 0;
  if (all || !is_multi_statement(thd)) {
    int error = ha_error(frondb_txn_commit(txn_.get()));
    error ? counts_.roll_back() : counts_.commit();
    end();
    return error;
  }
  in_statement_ = false;
  counts_.end_statement();
  return release(std::exchange(statement_, 0));
}

int Connection::rollback(MYSQL_THD thd, bool all) {
  if (!txn_) return 0;
  if (all || !is_multi_statement(thd)) {
    int error = ha_error(frondb_txn_rollback(txn_.get()));
    counts_.roll_back();
    end();
    return error;
  }
  in_statement_ = false;
  counts_.roll_back_statement();
  uint64_t statement = std::exchange(statement_, 0);
  if (!statement) return 0;
  if (int error = roll_back_to(statement)) return error;
  return release(statement);
}

int Connection::set_savepoint(uint64_t *savepoint) {
  *savepoint = 0;
  if (!txn_) return 0;
  if (int error = ha_error(frondb_txn_set_savepoint(txn_.get(), savepoint))) return error;
  counts_.set_savepoint(*savepoint);
  return 0;
}

int Connection::roll_back_to(uint64_t savepoint) {
  if (!savepoint || !txn_) return 0;
  counts_.roll_back_to(savepoint);
  return ha_error(frondb_txn_roll_back_to(txn_.get(), savepoint));
}

int Connection::release(uint64_t savepoint) {
  if (!savepoint || !txn_) return 0;
  return ha_error(frondb_txn_release_savepoint(txn_.get(), savepoint));
}

void set_transaction_hooks(handlerton *ht) {
  ht->savepoint_offset = sizeof(Savepoint);
  ht->close_connection = close_connection;
  ht->kill_query = kill_query;
  ht->commit = commit;
  ht->rollback = rollback;
  ht->savepoint_set = savepoint_set;
  ht->savepoint_rollback = savepoint_rollback;
  ht->savepoint_rollback_can_release_mdl = keeps_locks;
  ht->savepoint_release = savepoint_release;
  ht->start_consistent_snapshot = start_consistent_snapshot;
}

}  // namespace fron
