/* SPDX-License-Identifier: GPL-2.0-only

   The transaction of a connection. It begins with the first statement that uses a FronDB table, is registered with
   the server, and ends when the server commits it or rolls it back. A statement that fails is rolled back to a
   savepoint that was set before its first write.

     1 phase    commit(): ordered and durable
     2 phases   prepare() durable -> commit_ordered(), one connection at a time, in the order of the
                binary log -> commit(), which waits for the disk only if no log could repeat the commit

   For transactions that a connection has left prepared see txn/xa.h. */

#ifndef FRONDB_TXN_CONNECTION_H
#define FRONDB_TXN_CONNECTION_H

#include "engine/api.h"

#include <my_global.h>
#include <mysql/plugin.h>

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "statistics/row_counts.h"
#include "txn/counter_lock.h"
#include "txn/session.h"
#include "txn/xid.h"

namespace fron {

class ChildTables;
class FenceHolder;
class Load;
class Share;
struct ForeignKey;

/** The state of a connection. Used by the connection's thread, or by a thread that calls commit_ordered() while the
    connection's thread waits; only cancel() may be called from any thread. */
class Connection {
 public:
  explicit Connection(MYSQL_THD thd) : session_(thd) { count(1); }
  /** Returns the state of a connection, created if it has none; null if there is no memory. */
  static Connection *of(MYSQL_THD thd);
  /** Returns the state of a connection, or null. */
  static Connection *find(MYSQL_THD thd);
  ~Connection() {
    end(false);
    count(-1);
  }

  /** Called when a statement begins to use a table: begins a transaction if there is none, and the engine's statement
      if this is the first table. `locks`: the statement may lock rows; `writes`: it may write. Returns 0 or an HA_ERR_
      number. */
  int begin_statement(MYSQL_THD thd, bool locks, bool writes);
  /** Called for START TRANSACTION WITH CONSISTENT SNAPSHOT. Below repeatable read, where each statement has its own
      snapshot, only begins a transaction. */
  int begin_at_snapshot(MYSQL_THD thd);
  frondb_txn *txn() const { return txn_.get(); }
  /** Returns whether no statement of the transaction can have locked a row, a gap or a tree. */
  bool has_only_read() const { return !may_hold_locks_; }
  /** Returns the rows that the transaction has inserted and deleted. */
  TransactionCounts &counts() { return counts_; }
  /** The bulk load of the table that the statement creates, if any. */
  std::weak_ptr<Load> load;
  /** The number of the index that has refused the last duplicate key; all ones if there is none. Stored in the
      connection instead of a handler: if a row moves to another partition and is refused there, the server asks the
      partition that the row came from. */
  unsigned duplicate_key = ~0u;
  /** Makes cancel() from now on end waits of `other` too; null for no other transaction. */
  void also_cancels(frondb_txn *other) {
    std::lock_guard<std::mutex> guard(handle_);
    other_ = other;
  }
  /** The foreign key that refused the last write, for the error's text; null if none did. */
  std::shared_ptr<const ForeignKey> failed_foreign_key;
  /** The number of rows that actions of foreign keys have written, and for each table the number of its last such
      row: a scan of the table must not continue with entries that it read before. */
  uint64_t actions = 0;
  std::unordered_map<const Share *, uint64_t> last_actions;
  void note_action(const Share *share) { last_actions[share] = ++actions; }
  bool has_acted_since(const Share *share, uint64_t action) const {
    auto last = last_actions.find(share);
    return last != last_actions.end() && last->second > action;
  }
  /** Tables that an action of the statement has opened. They are closed with the statement. */
  std::shared_ptr<ChildTables> child_tables;
  /** The fences (txn/fence.h) of the tables that the statement renames, held until the statement ends; null if there
      are none. */
  std::shared_ptr<FenceHolder> fence;
  /** The index of the children's table in which an action would create a duplicate. */
  std::string duplicate_foreign_index;
  /** The tree_contents() of the partitioned table that an ALTER TABLE has locked last. */
  std::string partitioned;
  /** Whether the transaction may have an overlay (handler/overlay.h), so that plain reads must check it. Reset only
      when the transaction ends: it can be true although the overlay was rolled back or belonged to an earlier
      statement. */
  bool has_overlay = false;
  /** Bytes of rows that the statement has gathered before it writes them in bulk (handler/gathered_rows.h). */
  size_t gathered_bytes = 0;
  /** Whether a statement failed and left rows incomplete, or dropped rows (handler/bulk_insert.cc). Until it is
      rolled back, no commit may succeed. */
  bool must_roll_back = false;
  /** Number of rollbacks, of statements and transactions. */
  uint64_t undone = 0;
  /** The server's number of a statement that copies a table with all its values unchanged; 0 for none. */
  int64_t copies_dates = 0;
  /** The number of the statement that was last warned about options of a table (warn_of_options()). */
  int64_t warned_of_row_format = 0;
  frondb_isolation isolation() const { return settings_.isolation; }
  /** Returns the number of changes of definitions (Dictionary::changes()) when the transaction began. */
  uint64_t begun_at() const { return begun_at_; }

  int prepare(MYSQL_THD thd, bool all);
  void commit_ordered(MYSQL_THD thd, bool all);
  /** Called at the end of a statement, or with `all` of the transaction. */
  int commit(MYSQL_THD thd, bool all);
  int rollback(MYSQL_THD thd, bool all);

  /** Takes the lock of a table's AUTO_INCREMENT counter, which the statement then holds until it ends. */
  int lock_counter(const std::shared_ptr<CounterLock> &lock);
  bool has_counter(const CounterLock &lock) const;

  /** Records that the connection has dropped a table. Within a transaction this is a temporary table, to which the
      transaction may have written. */
  void has_dropped() { has_dropped_ |= txn_.get() != nullptr; }

  /** Records that the transaction copies rows to a table or partition that its statement creates. */
  void fills(uint64_t table) { filled_.push_back(table); }

  /** Records that the transaction begins to wait for a lock. */
  void waits() { session_.waits(); }
  /** Ends a wait for a lock or for disk space immediately. May be called from any thread. */
  void cancel();

  int set_savepoint(uint64_t *savepoint);
  int roll_back_to(uint64_t savepoint);
  /** Releases the savepoint and all later ones. */
  int release(uint64_t savepoint);
  /** Releases only this savepoint, which a new savepoint of the same name replaces. */
  int replace(uint64_t savepoint);

 private:
  static void count(int more);

  /** Properties of a transaction that are fixed when it begins. */
  struct Settings {
    frondb_isolation isolation = FRONDB_REPEATABLE_READ;
    bool snapshot_isolation = false;
    bool operator==(const Settings &other) const {
      return isolation == other.isolation && snapshot_isolation == other.snapshot_isolation;
    }
  };

  Settings settings_of(MYSQL_THD thd) const;
  int begin(const Settings &settings, frondb_durability durability);
  int renew_options(const Settings &settings, frondb_durability durability);
  int begin_engine_statement(MYSQL_THD thd, bool is_new);
  int begin_locking(MYSQL_THD thd);
  int end_statement();
  void unlock_counters();
  void begin_commit(MYSQL_THD thd, bool all);
  int finish(MYSQL_THD thd);
  void end(bool has_ended);

  Settings settings_;
  TxnOptions options_;
  frondb_durability durability_ = FRONDB_SYNC;
  uint64_t lock_timeout_ = 0;

  Txn txn_;
  /** An ended transaction with the options of `options_`, for reuse. */
  Txn ended_;
  /** Another transaction of the connection's thread that holds fences (txn/fence.h); null for none. */
  frondb_txn *other_ = nullptr;
  /** Guards the handles against a cancel() while they are created or freed. */
  std::mutex handle_;
  TransactionCounts counts_;
  /** The connection's entry for other threads. */
  Session session_;

  /** Savepoint of the current statement; 0 if the statement has none. */
  uint64_t statement_ = 0;
  bool in_statement_ = false;
  /** Whether the transaction has dropped tables whose trees can be dropped only after it has ended. */
  bool has_dropped_ = false;
  /** The numbers of the tables to which the transaction copies rows; see fills(). */
  std::vector<uint64_t> filled_;
  /** Whether the statement may lock rows. */
  bool locks_ = false;
  /** Whether the transaction may have written. */
  bool writes_ = false;
  /** Whether an earlier statement or the current one may have locked rows; a rollback to a savepoint keeps locks. */
  bool may_hold_locks_ = false;
  /** The locks of counters that the statement holds or waits for. */
  std::vector<std::shared_ptr<CounterLock>> counter_locks_;

  /** The name of the prepared transaction; empty if it is not prepared. */
  XidName prepared_;
  /** Whether commit_ordered() was called, and its result. */
  bool is_ordered_ = false;
  Error order_error_;
  Committing committing_;
  uint64_t begun_at_ = 0;
};

}  // namespace fron

#endif
