/* SPDX-License-Identifier: GPL-2.0-only

   See txn/session.h. */

#include "txn/session.h"

#include <mutex>
#include <set>

#include <sql_class.h>

namespace fron {
namespace {

/** Maximum bytes of a statement that are shown. */
constexpr size_t QUERY_BYTES = 1024;

/** Guards registry(). LOCK: taken while no other lock of the plugin is held. The server's lock of a statement is tried
    under it. */
std::mutex registry_lock;

std::set<const Session *> &registry() {
  static std::set<const Session *> sessions;
  return sessions;
}

}  // namespace

Session::Session(MYSQL_THD thd) : thd_(thd) {
  std::lock_guard<std::mutex> guard(registry_lock);
  registry().insert(this);
}

Session::~Session() {
  std::lock_guard<std::mutex> guard(registry_lock);
  registry().erase(this);
}

void Session::has(frondb_txn *txn) {
  uint64_t number = 0;
  // After an error the registry has no transaction of this connection.
  if (txn && Error(frondb_txn_id(txn, &number))) number = 0;
  std::lock_guard<std::mutex> guard(visits_);
  transaction_.store(number, std::memory_order_relaxed);
}

void Session::waits() {
  char query[QUERY_BYTES];
  size_t bytes = thd_query_safe(thd_, query, sizeof query);
  std::lock_guard<std::mutex> guard(registry_lock);
  waited_ = transaction();
  waited_query_.assign(query, bytes);
}

void Session::visit_owner_of(uint64_t number, void (*visit)(MYSQL_THD owner)) const {
  if (transaction() != number) return;
  std::lock_guard<std::mutex> guard(visits_);
  // The transaction may have ended before the lock was taken.
  if (transaction() == number) visit(thd_);
}

void for_each_owner(const uint64_t *transactions, size_t count, void (*visit)(MYSQL_THD owner)) {
  std::lock_guard<std::mutex> guard(registry_lock);
  for (const Session *session : registry())
    for (size_t i = 0; i < count; i++) session->visit_owner_of(transactions[i], visit);
}

std::map<uint64_t, Owner> owners() {
  std::map<uint64_t, Owner> found;
  // While the lock is held, the THD of every listed connection exists.
  std::lock_guard<std::mutex> guard(registry_lock);
  for (const Session *session : registry()) {
    uint64_t transaction = session->transaction();
    if (transaction == 0) continue;
    char query[QUERY_BYTES];
    size_t bytes = thd_query_safe(session->thd(), query, sizeof query);
    found[transaction] = {thd_get_thread_id(session->thd()), std::string(query, bytes)};
  }
  return found;
}

std::map<uint64_t, Owner> waiters() {
  std::map<uint64_t, Owner> found;
  std::lock_guard<std::mutex> guard(registry_lock);
  for (const Session *session : registry())
    if (session->waited_) found[session->waited_] = {thd_get_thread_id(session->thd()), session->waited_query_};
  return found;
}

}  // namespace fron
