/* SPDX-License-Identifier: GPL-2.0-only

   The engine's transactions as status pages and the information schema show them. */

#ifndef FRONDB_INSPECT_TRANSACTIONS_H
#define FRONDB_INSPECT_TRANSACTIONS_H

#include <string>
#include <vector>

#include "engine/api.h"

namespace fron {

/** A transaction that has not ended, active or prepared. */
struct TransactionRow {
  uint64_t transaction = 0;
  const char *state = "", *isolation = "";
  double age_seconds = 0;
  uint64_t messages = 0, locks = 0;
  /** Whether the transaction waits for a lock, and for how long. */
  bool waits = false;
  double waited_seconds = 0;
  /** The XID of a prepared transaction as text. */
  std::string xid;
};

Error transactions(std::vector<TransactionRow> *rows);

}  // namespace fron

#endif
