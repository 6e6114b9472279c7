/* SPDX-License-Identifier: GPL-2.0-only

   See inspect/transactions.h. */

#include "inspect/transactions.h"

#include "engine/db.h"
#include "txn/xid.h"

namespace fron {
namespace {

const char *isolation_name(frondb_isolation isolation) {
  switch (isolation) {
    case FRONDB_READ_UNCOMMITTED: return "READ UNCOMMITTED";
    case FRONDB_READ_COMMITTED: return "READ COMMITTED";
    case FRONDB_REPEATABLE_READ: return "REPEATABLE READ";
    case FRONDB_SERIALIZABLE: return "SERIALIZABLE";
    default: return "UNKNOWN";
  }
}

}  // namespace

Error transactions(std::vector<TransactionRow> *rows) {
  Transactions list;
  if (Error error = frondb_db_transactions(db(), list.out())) return error;
  std::vector<frondb_transaction_info> infos;
  if (Error error = list.read(&infos)) return error;
  for (const frondb_transaction_info &info : infos) {
    TransactionRow row;
    row.transaction = info.transaction;
    bool is_prepared = info.xid.data != nullptr;
    row.state = is_prepared ? "PREPARED" : info.waits ? "LOCK WAIT" : "ACTIVE";
    row.isolation = isolation_name(info.isolation);
    row.age_seconds = double(info.age_nanos) / 1e9;
    row.messages = info.messages;
    row.locks = info.locks;
    row.waits = info.waits;
    row.waited_seconds = double(info.waited_nanos) / 1e9;
    if (is_prepared) row.xid = xid_text(info.xid);
    rows->push_back(std::move(row));
  }
  return {};
}

}  // namespace fron
