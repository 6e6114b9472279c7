/* SPDX-License-Identifier: GPL-2.0-only

   The transaction of a connection: begun with the first statement that touches a table of ours, told
   to the server, ended by it. A statement that fails is undone to the savepoint set before its first
   write.

     1 phase    commit(): ordered and durable
     2 phases   prepare() durable -> commit_ordered(), one connection at a time, in the order of the
                binary log -> commit(), which waits for the disk only if no log could repeat the commit

   What comes of transactions that a connection has left prepared is in txn/xa.h. */

#ifndef FRONDB_TXN_CONNECTION_H
#define FRONDB_TXN_CONNECTION_H

#include "engine/api.h"

#include <my_global.h>
#include <mysql/plugin.h>

#include <memory>
#include <mutex>
#include <string>

#include "statistics/row_counts.h"
#include "txn/session.h"
#include "txn/xid.h"

namespace fron {

class Load;

/** What a connection has with us. Used by its thread alone, or by one that works for it while it
    waits (commit_ordered()); but cancel() comes from any. */
class Connection {
 public:
  explicit Connection(MYSQL_THD thd) : session_(thd) { count(1); }
  /** The connection's, made if it has none; null if there is no memory. */
  static Connection *of(MYSQL_THD thd);
  /** The connection's, or null. */
  static Connection *find(MYSQL_THD thd);
  ~Connection() {
    end();
    count(-1);
  }

  /** A statement begins to use a table: begins a transaction if there is none, and the statement
      if this is its first table. `locks`: it may lock rows; `writes`: it may write. 0 or an HA_ERR_
      number. */
  int begin_statement(MYSQL_THD thd, bool locks, bool writes);
  /** START TRANSACTION WITH CONSISTENT SNAPSHOT. Below repeatable read, where each statement has a
      snapshot of its own, it is a begin and no more. */
  int begin_at_snapshot(MYSQL_THD thd);
  frondb_txn *txn() const { return txn_.get(); }
  /** The rows it has written and deleted. */
  TransactionCounts &counts() { return counts_; }
  /** The load of the table that the statement makes, if it makes one. */
  std::weak_ptr<Load> load;
  /** The index in which a row was a duplicate last. Of the connection and not of a handler: a row that moves
      to another partition is refused there, and the partition that it was in is asked. All ones: none. */
  unsigned duplicate_key = ~0u;
  /** See tree_contents(): of the partitioned table that an ALTER TABLE locked last. */
  std::string partitioned;
  /** Its plain reads see entries that its snapshot does not have, or not those that it has: see
      handler/overlay.cc. True also when all of them were rolled back, or were for an earlier statement. */
  bool has_overlay = false;
  /** The server's number of the statement that copies a table and all its values as they are; 0 for none. */
  int64_t copies_dates = 0;
  /** That of the statement that was warned of its row format last. */
  int64_t warned_of_row_format = 0;
  /** What the transaction was begun with. */
  frondb_isolation isolation() const { return settings_.isolation; }
  /** How many changes of definitions there were when the transaction began. */
  uint64_t begun_at() const { return begun_at_; }

  int prepare(MYSQL_THD thd, bool all);
  void commit_ordered(MYSQL_THD thd, bool all);
  /** The statement, or with `all` the transaction, ends. */
  int commit(MYSQL_THD thd, bool all);
  int rollback(MYSQL_THD thd, bool all);

  /** It has dropped a table, a temporary one if it is in a transaction, which may have written there. */
  void has_dropped() { has_dropped_ |= txn_.get() != nullptr; }

  /** A wait for a lock begins. */
  void waits() { session_.waits(); }
  /** A wait for a lock ends at once; from any thread. */
  void cancel();

  int set_savepoint(uint64_t *savepoint);
  int roll_back_to(uint64_t savepoint);
  /** With those set after it. */
  int release(uint64_t savepoint);
  /** It alone: another of its name is set. */
  int replace(uint64_t savepoint);

 private:
  static void count(int more);

  /** What a transaction is begun with. */
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
  void begin_commit(MYSQL_THD thd, bool all);
  int finish(MYSQL_THD thd);
  void end();

  Settings settings_;
  TxnOptions options_;
  frondb_durability durability_ = FRONDB_SYNC;
  uint64_t lock_timeout_ = 0;

  Txn txn_;
  /** Guards the handle against a cancel() that comes while it is made or freed. */
  std::mutex handle_;
  TransactionCounts counts_;
  /** What others can see of this. */
  Session session_;

  /** Undoes the statement under way; 0 if none has written. */
  uint64_t statement_ = 0;
  bool in_statement_ = false;
  /** Trees are kept until the transaction ends. */
  bool has_dropped_ = false;
  /** It may lock rows. */
  bool locks_ = false;

  /** Its name, if it is prepared. */
  XidName prepared_;
  /** commit_ordered() was called, and this is what came of it. */
  bool is_ordered_ = false;
  Error order_error_;
  Committing committing_;
  uint64_t begun_at_ = 0;
};

}  // namespace fron

#endif
