/* SPDX-License-Identifier: GPL-2.0-only

   The registry of connections and their transactions, for status pages and the information schema. A connection
   publishes the number of its transaction under a lock of its own; readers of many connections take the lock of the
   registry. */

#ifndef FRONDB_TXN_SESSION_H
#define FRONDB_TXN_SESSION_H

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "engine/api.h"

#include <my_global.h>
#include <mysql/plugin.h>

namespace fron {

/** A connection's entry in the registry. Must be destroyed before the THD. */
class Session {
 public:
  explicit Session(MYSQL_THD thd);
  ~Session();
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  /** Publishes the connection's transaction; null for none. Called by the connection's thread. Waits until no visitor
      uses the former transaction; no visitor gets it after the call. */
  void has(frondb_txn *txn);

  /** Records that the connection's transaction begins to wait for a lock, and the waiting statement: another thread may
      find the deadlock, and read the registry after this statement has ended. Called by the connection's thread. */
  void waits();

  MYSQL_THD thd() const { return thd_; }
  uint64_t transaction() const { return transaction_.load(std::memory_order_relaxed); }

  /** Calls `visit` if this connection has the transaction, which does not end during the call. */
  void visit_owner_of(uint64_t number, void (*visit)(MYSQL_THD owner)) const;

 private:
  MYSQL_THD thd_;
  /** LOCK: taken alone or under the registry's lock. Held while a visitor acts on the transaction: otherwise the
      server could mistake a report about an ended transaction for one about the next transaction of the same
      connection. */
  mutable std::mutex visits_;
  std::atomic<uint64_t> transaction_{0};
  /** The transaction and the statement of the last wait; guarded by the registry's lock. */
  uint64_t waited_ = 0;
  std::string waited_query_;

  friend std::map<uint64_t, struct Owner> waiters();
};

/** The connection that owns a transaction, and its current statement. */
struct Owner {
  uint64_t thread = 0;
  /** The beginning of the statement; empty between statements, and while the server changes it. */
  std::string query;
};

/** Calls `visit` with each connection that owns one of these transactions. Neither the connection nor its transaction
    can end during the call, so `visit` must be short. */
void for_each_owner(const uint64_t *transactions, size_t count, void (*visit)(MYSQL_THD owner));

/** Returns the owners by the numbers of their transactions. */
std::map<uint64_t, Owner> owners();

/** Returns the last wait of each connection, by the number of its transaction, with the statement that waited. */
std::map<uint64_t, Owner> waiters();

}  // namespace fron

#endif
