/* SPDX-License-Identifier: GPL-2.0-only

   The registry of connections and their transactions, for status pages and the information schema. A connection
   publishes the number of its transaction with one atomic store; readers take the lock of the registry. */

#ifndef FRONDB_TXN_SESSION_H
#define FRONDB_TXN_SESSION_H

#include <atomic>
#include <cstdint>
#include <map>
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

  /** Publishes the connection's transaction; null for none. Called by the connection's thread. */
  void has(frondb_txn *txn);

  /** Records that the connection's transaction begins to wait for a lock, and the waiting statement: another thread may
      find the deadlock, and read the registry when this statement has ended. Called by the connection's thread. */
  void waits();

  MYSQL_THD thd() const { return thd_; }
  uint64_t transaction() const { return transaction_.load(std::memory_order_relaxed); }

 private:
  MYSQL_THD thd_;
  std::atomic<uint64_t> transaction_{0};
  /** The transaction and the statement of the last wait; guarded by the registry's lock. */
  uint64_t waited_ = 0;
  std::string waited_query_;

  friend std::map<uint64_t, struct Owner> waiters();
};

/** The connection that owns a transaction, and its present statement. */
struct Owner {
  uint64_t thread = 0;
  /** The beginning of the statement; empty between statements, and while the server changes it. */
  std::string query;
};

/** Calls `visit` with each connection that owns one of these transactions; no listed connection can end during the
    call. */
void for_each_owner(const uint64_t *transactions, size_t count, void (*visit)(MYSQL_THD owner));

/** The owners by the numbers of their transactions. */
std::map<uint64_t, Owner> owners();

/** The last wait of each connection, by the number of its transaction, with the statement that waited. */
std::map<uint64_t, Owner> waiters();

}  // namespace fron

#endif
