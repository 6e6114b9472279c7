/* SPDX-License-Identifier: GPL-2.0-only

   See txn/connection.h. */

#include "txn/connection.h"

#include <sql_class.h>
#include <handler.h>

#include <algorithm>
#include <mutex>
#include <new>

#include "dictionary/dictionary.h"
#include "engine/crash_points.h"
#include "engine/db.h"
#include "engine/errors.h"
#include "engine/kill.h"
#include "txn/handlerton.h"
#include "txn/lock_timeout.h"
#include "txn/prepared_counts.h"
#include "txn/session_variables.h"
#include "txn/xa.h"

namespace fron {
namespace {

bool is_multi_statement(MYSQL_THD thd) {
  return thd_test_options(thd, OPTION_NOT_AUTOCOMMIT | OPTION_BEGIN);
}

/** Returns whether the statement may write what others see, and the server has added tables to its list: those of
    triggers, stored functions, cascades or sequences. All of them are open here. */
bool writes_with_routines(MYSQL_THD thd) {
  LEX *lex = thd->lex;
  if (!lex->requires_prelocking()) return false;
  for (const TABLE_LIST *named = lex->query_tables; named; named = named->next_global) {
    bool is_temporary = named->table && named->table->s->tmp_table != NO_TMP_TABLE;
    if (named->lock_type >= TL_FIRST_WRITE && !is_temporary) return true;
  }
  return false;
}

/** Returns whether the end of a statement, or with `all` of a transaction, ends the transaction. */
bool ends_transaction(MYSQL_THD thd, bool all) { return all || !is_multi_statement(thd); }

frondb_isolation isolation_of(MYSQL_THD thd) {
  switch (thd_tx_isolation(thd)) {
    case ISO_READ_UNCOMMITTED: return FRONDB_READ_UNCOMMITTED;
    case ISO_READ_COMMITTED: return FRONDB_READ_COMMITTED;
    case ISO_REPEATABLE_READ: return FRONDB_REPEATABLE_READ;
    // A statement that is a transaction of its own and only reads is serializable without locks, since all of its reads
    // are at one snapshot. One that writes locks the rows that it reads at REPEATABLE READ, too (row_lock_of()), but no
    // SELECT does, also not one in a trigger or one that calls a function that writes: these run as SERIALIZABLE.
    default:
      return is_multi_statement(thd) || writes_with_routines(thd) ? FRONDB_SERIALIZABLE : FRONDB_REPEATABLE_READ;
  }
}

}  // namespace

/** Counts connections. The memory that the server and its threads hold for them counts as memory of the engine. */
void Connection::count(int more) {
  // Bytes that are charged for each connection. Measured: 215 KiB; the rest need not be charged.
  constexpr uint64_t BYTES = 128 << 10;
  // The engine is notified once per this many connections, which hold 2 MiB.
  constexpr uint64_t STEP = 16;
  static std::mutex counting;
  static uint64_t connections = 0, notified = 0;
  std::lock_guard<std::mutex> guard(counting);
  connections += uint64_t(int64_t(more));
  uint64_t steps = connections / STEP;
  if (steps == notified) return;
  notified = steps;
  // Ignore the error of a closed database: its memory budget no longer matters.
  if (db()) Error ignored = frondb_db_set_outside_memory_bytes(db(), steps * STEP * BYTES);
}

Connection *Connection::find(MYSQL_THD thd) {
  return static_cast<Connection *>(thd_get_ha_data(thd, hton()));
}

Connection *Connection::of(MYSQL_THD thd) {
  Connection *connection = find(thd);
  if (!connection) {
    connection = new (std::nothrow) Connection(thd);
    if (connection) thd_set_ha_data(thd, hton(), connection);
  }
  return connection;
}

// --- Beginning ---

Connection::Settings Connection::settings_of(MYSQL_THD thd) const {
  Settings settings{isolation_of(thd), false};
  settings.snapshot_isolation =
      settings.isolation == FRONDB_REPEATABLE_READ && session_snapshot_isolation(thd);
  return settings;
}

/** Makes the options of the next transaction; reuses them while the session's settings stay the same. */
int Connection::renew_options(const Settings &settings, frondb_durability durability) {
  if (options_ && settings == settings_ && durability == durability_) return 0;
  ended_.reset();
  if (Error error = frondb_txn_options_new(options_.out())) return ha_error(error);
  Error errors[] = {
      frondb_txn_options_set_isolation(options_.get(), settings.isolation),
      frondb_txn_options_set_snapshot_isolation(options_.get(), settings.snapshot_isolation),
      frondb_txn_options_set_durability(options_.get(), durability)};
  for (const Error &error : errors) {
    if (!error) continue;
    options_.reset();
    return ha_error(error);
  }
  settings_ = settings;
  durability_ = durability;
  return 0;
}

int Connection::begin(const Settings &settings, frondb_durability durability) {
  if (int error = renew_options(settings, durability)) return error;
  begun_at_ = dictionary().changes();
  Txn made;
  // If the ended transaction cannot begin the next one, the call for a new one reports the reason.
  if (ended_ && !Error(frondb_txn_begin_next(ended_.get())))
    made = std::move(ended_);
  else if (Error error = frondb_db_begin(db(), options_.get(), made.out()))
    return ha_error(error);
  session_.has(made.get());
  std::lock_guard<std::mutex> guard(handle_);
  txn_ = std::move(made);
  // No session has this timeout, so the first locking statement sets its session's timeout.
  lock_timeout_ = UINT64_MAX;
  return 0;
}

int Connection::begin_engine_statement(MYSQL_THD thd, bool is_new) {
  if (!is_new || settings_.isolation < FRONDB_REPEATABLE_READ)
    if (Error error = frondb_txn_begin_statement(txn_.get())) return ha_error(error);
  // A KILL before this call was forgotten when the engine's statement began; repeat it.
  if (is_killed(thd)) cancel();
  return 0;
}

int Connection::begin_locking(MYSQL_THD thd) {
  uint64_t timeout = statement_lock_timeout_millis(thd);
  if (timeout != lock_timeout_)
    if (Error error = frondb_txn_set_lock_timeout_millis(txn_.get(), timeout)) return ha_error(error);
  lock_timeout_ = timeout;
  locks_ = may_hold_locks_ = true;
  return 0;
}

int Connection::begin_statement(MYSQL_THD thd, bool locks, bool writes) {
  bool is_new = !txn_;
  if (is_new)
    if (int error = begin(settings_of(thd), session_durability(thd))) return error;
  trans_register_ha(thd, false, hton(), 0);
  bool is_part = is_multi_statement(thd);
  if (is_part) trans_register_ha(thd, true, hton(), 0);
  if (!in_statement_) {
    if (int error = begin_engine_statement(thd, is_new)) return error;
    in_statement_ = true;
  }
  if (!locks_ && (locks || settings_.isolation == FRONDB_SERIALIZABLE))
    if (int error = begin_locking(thd)) return error;
  writes_ |= writes;
  // A statement that is a transaction of its own needs no savepoint.
  if (!writes || !is_part || statement_) return 0;
  return ha_error(frondb_txn_set_savepoint(txn_.get(), &statement_));
}

int Connection::begin_at_snapshot(MYSQL_THD thd) {
  Settings settings = settings_of(thd);
  // Serializable reads would lock the newest rows. A transaction that asks for a snapshot gets snapshot isolation
  // instead: a write fails with a conflict if it would overwrite a row version that the snapshot does not have.
  if (settings.isolation == FRONDB_SERIALIZABLE) settings = {FRONDB_REPEATABLE_READ, true};
  if (!txn_)
    if (int error = begin(settings, session_durability(thd))) return error;
  trans_register_ha(thd, true, hton(), 0);
  if (settings.isolation < FRONDB_REPEATABLE_READ) return 0;
  return ha_error(frondb_txn_take_snapshot(txn_.get()));
}

// --- AUTO_INCREMENT ---

bool Connection::has_counter(const CounterLock &lock) const {
  return std::any_of(counter_locks_.begin(), counter_locks_.end(), [&](const auto &one) { return one.get() == &lock; });
}

int Connection::lock_counter(const std::shared_ptr<CounterLock> &lock) {
  if (has_counter(*lock)) return 0;
  counter_locks_.push_back(lock);
  // Count the statement before the wait, so that other statements queue behind it.
  lock->users++;
  Error error = dictionary().lock_counter(txn_.get(), lock->table);
  if (!error) return 0;
  lock->users--;
  counter_locks_.pop_back();
  return ha_error(error);
}

void Connection::unlock_counters() {
  for (const std::shared_ptr<CounterLock> &lock : counter_locks_) {
    // An ended transaction has no locks any more.
    if (txn_) Error ignored = dictionary().unlock_counter(txn_.get(), lock->table);
    lock->users--;
  }
  counter_locks_.clear();
}

void Connection::cancel() {
  std::lock_guard<std::mutex> guard(handle_);
  // No error matters: a transaction that has ended or does not wait has nothing to cancel.
  if (txn_) Error ignored = frondb_txn_cancel(txn_.get());
  if (other_) Error ignored = frondb_txn_cancel(other_);
}

// --- Ending ---

/** Drops the transaction. Keeps an ended transaction for reuse; frees any other, which rolls it back if it was neither
    committed nor prepared. */
void Connection::end(bool has_ended) {
  session_.has(nullptr);
  unlock_counters();
  std::lock_guard<std::mutex> guard(handle_);
  ended_.reset();
  if (has_ended)
    ended_ = std::move(txn_);
  else
    txn_.reset();
  committing_.reset();
  order_error_ = Error();
  if (prepared_) prepared_ = XidName();
  is_ordered_ = false;
  statement_ = 0;
  in_statement_ = locks_ = writes_ = may_hold_locks_ = has_overlay = false;
  for (uint64_t table : filled_) dictionary().note_fill(table);
  filled_.clear();
  if (std::exchange(has_dropped_, false)) dictionary().retire({});
}

int Connection::end_statement() {
  unlock_counters();
  in_statement_ = locks_ = false;
  counts_.end_statement();
  uint64_t statement = std::exchange(statement_, 0);
  if (int error = release(statement)) return error;
  // Below REPEATABLE READ each statement has its own snapshot, which is released here.
  if (settings_.isolation >= FRONDB_REPEATABLE_READ) return 0;
  return ha_error(frondb_txn_end_statement(txn_.get()));
}

/** Begins COMMIT as a statement of its own: a KILL of an earlier statement does not affect it, and a KILL of the
    COMMIT cancels its wait for space. */
void Connection::begin_commit(MYSQL_THD thd, bool all) {
  if (!all || prepared_) return;
  Error ignored = frondb_txn_forget_cancel(txn_.get());
  if (is_killed(thd)) cancel();
}

int Connection::prepare(MYSQL_THD thd, bool all) {
  if (!txn_ || !ends_transaction(thd, all)) return 0;
  if (must_roll_back) return ha_internal("a statement that failed has left rows incomplete");
  begin_commit(thd, all);
  may_crash_at("commit: not prepared");
  MYSQL_XID xid;
  thd_get_xid(thd, &xid);
  frondb_durability durability = session_durability(thd);
  if (durability != durability_) {
    if (Error error = frondb_txn_set_durability(txn_.get(), durability)) return ha_error(error);
    durability_ = durability;
    options_.reset();
  }
  XidName name(xid);
  // The server ends a transaction that it has prepared itself with this connection, except after a crash, so only the
  // counts of other ones are kept.
  if (!name.is_of_server()) keep_prepared_counts(name, counts_);
  if (Error error = frondb_txn_prepare(txn_.get(), name.bytes())) return ha_error(error);
  prepared_ = name;
  may_crash_at("commit: prepared");
  return 0;
}

void Connection::commit_ordered(MYSQL_THD thd, bool all) {
  if (!txn_ || is_ordered_ || !ends_transaction(thd, all)) return;
  is_ordered_ = true;
  may_crash_at("commit: not ordered");
  order_error_ = Error(frondb_txn_commit_in_order(txn_.get(), committing_.out()));
  may_crash_at("commit: ordered");
}

/** Ends a commit whose place in the order of commits is fixed. */
int Connection::finish(MYSQL_THD thd) {
  if (order_error_) {
    int error = ha_error(order_error_);
    // The binary log or the user has decided: a prepared transaction must be committed.
    if (prepared_ && order_error_.kind() != FRONDB_NOT_FOUND) retry_later(prepared_, true);
    return error;
  }
  thd_wakeup_subsequent_commits(thd, 0);
  // Do not wait for the disk: the prepare is durable, and so is the decision to commit, in the log that the server's
  // recovery reads.
  if (prepared_.is_of_server()) return 0;
  return committing_ ? ha_error(frondb_committing_wait(committing_.take())) : 0;
}

int Connection::commit(MYSQL_THD thd, bool all) {
  if (!txn_) return 0;
  if (must_roll_back) {
    if (int error = rollback(thd, all)) return error;
    return ha_internal("a statement that failed has left rows incomplete, so the transaction was rolled back");
  }
  if (!ends_transaction(thd, all)) return end_statement();
  begin_commit(thd, all);
  if (!is_ordered_ && !prepared_ && !writes_) {
    // A transaction that has written nothing has no place in the order of commits, and no wait for the disk.
    is_ordered_ = true;
    order_error_ = Error(frondb_txn_commit(txn_.get()));
  }
  commit_ordered(thd, true);
  int error = finish(thd);
  error ? counts_.roll_back() : counts_.commit();
  if (prepared_ && !prepared_.is_of_server()) forget_prepared_counts(prepared_);
  end(!error);
  run_retries();
  may_crash_at("commit: done");
  return error;
}

int Connection::rollback(MYSQL_THD thd, bool all) {
  must_roll_back = false;
  undone++;
  if (!txn_) return 0;
  if (ends_transaction(thd, all)) {
    Error error = frondb_txn_rollback(txn_.get());
    if (error && prepared_ && error.kind() != FRONDB_NOT_FOUND) retry_later(prepared_, false);
    counts_.roll_back();
    if (prepared_ && !prepared_.is_of_server()) forget_prepared_counts(prepared_);
    end(!error);
    return ha_error(error);
  }
  counts_.roll_back_statement();
  unlock_counters();
  Error undone;
  if (statement_) undone = Error(frondb_txn_roll_back_to(txn_.get(), statement_));
  // A victim of a deadlock has been rolled back as a whole.
  if (undone && undone.kind() == FRONDB_DEADLOCK) {
    in_statement_ = locks_ = false;
    statement_ = 0;
    return 0;
  }
  if (undone) return ha_error(undone);
  return end_statement();
}

// --- Savepoints ---

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
  // The engine forgets savepoints when it prepares; the server still knows their names.
  if (!savepoint || !txn_ || prepared_) return 0;
  counts_.release(savepoint, true);
  return ha_error(frondb_txn_release_savepoint(txn_.get(), savepoint));
}

int Connection::replace(uint64_t savepoint) {
  if (!savepoint || !txn_) return 0;
  counts_.release(savepoint, false);
  return ha_error(frondb_txn_forget_savepoint(txn_.get(), savepoint));
}

}  // namespace fron
