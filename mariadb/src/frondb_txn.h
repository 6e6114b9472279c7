/* SPDX-License-Identifier: GPL-2.0-only

   The transaction of a connection: begun with the first statement that touches a table of ours, told
   to the server, ended by it. A statement that fails is undone to the savepoint set at its beginning. */

#ifndef FRONDB_TXN_H
#define FRONDB_TXN_H

#include "frondb_api.h"
#include "frondb_counts.h"
#include "frondb_session.h"

#include <my_global.h>
#include <mysql/plugin.h>

struct handlerton;

namespace fron {

/** What a connection has with us. Used by its thread alone, but for cancel(). */
class Connection {
 public:
  explicit Connection(MYSQL_THD thd) : session_(thd) {}
  /** The connection's, made if it has none. */
  static Connection *of(MYSQL_THD thd);
  /** The connection's, or null. */
  static Connection *find(MYSQL_THD thd);

  /** A statement begins to use a table: begins a transaction if there is none, and the statement
      if this is its first table. 0 or an HA_ERR_ number. */
  int begin_statement(MYSQL_THD thd, bool writes);
  frondb_txn *txn() const { return txn_.get(); }
  /** The rows it has written and deleted. */
  TransactionCounts &counts() { return counts_; }

  /** The statement, or with `all` the transaction, ends. */
  int commit(MYSQL_THD thd, bool all);
  int rollback(MYSQL_THD thd, bool all);

  /** A wait for a lock ends at once; from any thread. */
  void cancel() { frondb_txn_cancel(txn_.get()); }

  int set_savepoint(uint64_t *savepoint);
  int roll_back_to(uint64_t savepoint);
  int release(uint64_t savepoint);

 private:
  int begin(MYSQL_THD thd);
  void end();

  Txn txn_;
  TransactionCounts counts_;
  /** What others can see of this. */
  Session session_;
  /** Undoes the statement under way; 0 if none wrote. */
  uint64_t statement_ = 0;
  bool in_statement_ = false;
};

/** The functions of the handlerton that are about transactions. */
void set_transaction_hooks(handlerton *hton);

}  // namespace fron

#endif
