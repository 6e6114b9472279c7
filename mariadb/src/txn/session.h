/* SPDX-License-Identifier: GPL-2.0-only

   Which connection has which transaction of the engine: for status pages and the information schema. A
   connection tells its number with one store; who looks takes the registry's lock. */

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

/** A connection in the registry, for as long as this lives: it must end before its THD does. */
class Session {
 public:
  explicit Session(MYSQL_THD thd);
  ~Session();
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  /** The connection has this transaction now; null for none. By the connection's thread. */
  void has(frondb_txn *txn);

  /** The connection's transaction begins to wait for a lock: what for is kept, for a deadlock is found by another,
      and when that one looks this statement may be over. By the connection's thread. */
  void waits();

  MYSQL_THD thd() const { return thd_; }
  uint64_t transaction() const { return transaction_.load(std::memory_order_relaxed); }

 private:
  MYSQL_THD thd_;
  std::atomic<uint64_t> transaction_{0};
  /** Of the last wait: guarded by the registry's lock. */
  uint64_t waited_ = 0;
  std::string waited_query_;

  friend std::map<uint64_t, struct Owner> waiters();
};

/** Who has a transaction, and what the connection does just now. */
struct Owner {
  uint64_t thread = 0;
  /** The beginning of the statement; empty between statements, and where the server is about to change it. */
  std::string query;
};

/** Calls `tell` with each connection that has one of these transactions, and keeps it from going meanwhile. */
void for_each_owner(const uint64_t *transactions, size_t count, void (*tell)(MYSQL_THD owner));

/** The owners by the numbers of their transactions. */
std::map<uint64_t, Owner> owners();

/** By the numbers of their transactions: who waited, of each connection the last time, and with which statement. */
std::map<uint64_t, Owner> waiters();

}  // namespace fron

#endif
