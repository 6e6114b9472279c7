/* SPDX-License-Identifier: GPL-2.0-only

   The lock of a table's AUTO_INCREMENT counter, for frondb_autoinc_lock_mode = 1. In the format STATEMENT the binary
   log has only the first number that a statement used, so the other numbers must follow it without a gap.

     INSERT .. SELECT   users + 1, lock | numbers ... numbers | end of the statement: unlock, users - 1
     INSERT .. VALUES   mutex of the counter { users = 0: all numbers of the statement }, otherwise as above

   The lock is a row lock of the engine in the dictionary's tree of counters. So the engine finds deadlocks between this
   lock and row locks, KILL and the lock timeout end a wait, and a replica is notified of the wait. */

#ifndef FRONDB_TXN_COUNTER_LOCK_H
#define FRONDB_TXN_COUNTER_LOCK_H

#include <atomic>
#include <cstdint>

namespace fron {

/** Shared by the table and the connections that use the lock. */
struct CounterLock {
  explicit CounterLock(uint64_t number) : table(number) {}
  /** The dictionary's number of the table. */
  const uint64_t table;
  /** Number of statements that hold the lock or wait for it. */
  std::atomic<uint32_t> users{0};
};

}  // namespace fron

#endif
