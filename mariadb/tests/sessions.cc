/* SPDX-License-Identifier: GPL-2.0-only

   Tests the registry of connections, without a server: a visitor of a transaction's owner never meets one whose
   transaction has ended. On a replica such a visit would roll back the connection's next transaction, without the mark by
   which the server knows that it must be tried again, and stop the replica. */

#include <my_global.h>
#include <sql_class.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "txn/session.h"

namespace {

constexpr int VISITS = 20000;

/** Whether the owner is in a transaction, as its own thread sees it. */
std::atomic<bool> is_in_transaction;
std::atomic<int> visits, late_visits;

void visit(MYSQL_THD) {
  visits++;
  if (!is_in_transaction) late_visits++;
  // Lets the owner run, which must wait for this visit.
  std::this_thread::yield();
  if (!is_in_transaction) late_visits++;
}

/** Stops the program if the engine's function failed. */
void must(fron::Error error) {
  if (!error) return;
  fprintf(stderr, "%s\n", error.message());
  exit(EXIT_FAILURE);
}

/** Begins and ends transactions with the same number, while another thread visits their owner. */
bool visits_end_before_transactions(frondb_txn *txn, MYSQL_THD thd) {
  uint64_t number;
  must(frondb_txn_id(txn, &number));
  std::atomic<bool> is_done{false};
  fron::Session session(thd);
  std::thread visitor([&] {
    while (!is_done) fron::for_each_owner(&number, 1, visit);
  });
  // The scheduler decides how often the threads meet, so continue until there were enough visits.
  while (visits < VISITS) {
    is_in_transaction = true;
    session.has(txn);
    session.has(nullptr);
    is_in_transaction = false;
  }
  is_done = true;
  visitor.join();
  printf("%d visits, %d of ended transactions\n", visits.load(), late_visits.load());
  return late_visits == 0;
}

}  // namespace

int main() {
  char folder[] = "/tmp/frondb-sessions-XXXXXX";
  if (!mkdtemp(folder)) return EXIT_FAILURE;
  fron::Db db;
  must(frondb_db_open(folder, nullptr, db.out()));
  fron::Txn txn;
  must(frondb_db_begin(db.get(), nullptr, txn.out()));
  // The registry only passes this pointer to the visitor, which does not use it.
  int connection;
  bool is_good = visits_end_before_transactions(txn.get(), reinterpret_cast<MYSQL_THD>(&connection));
  txn.reset();
  must(frondb_db_close(db.get()));
  std::string remove = std::string("rm -r ") + folder;
  return system(remove.c_str()) == 0 && is_good ? EXIT_SUCCESS : EXIT_FAILURE;
}
