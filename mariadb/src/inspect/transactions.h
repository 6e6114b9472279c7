/* SPDX-License-Identifier: GPL-2.0-only

   The engine's transactions in the words of users: for status pages and the information schema. */

#ifndef FRONDB_INSPECT_TRANSACTIONS_H
#define FRONDB_INSPECT_TRANSACTIONS_H

#include <string>
#include <vector>

#include "engine/api.h"

namespace fron {

/** A transaction that has not ended. */
struct TransactionRow {
  uint64_t transaction = 0;
  const char *state = "", *isolation = "";
  double age_seconds = 0;
  uint64_t messages = 0, locks = 0;
  /** Of one that waits for a lock. */
  bool waits = false;
  double waited_seconds = 0;
  /** Of one that is prepared: as text if it can be shown so. */
  std::string xid;
};

Error transactions(std::vector<TransactionRow> *rows);

}  // namespace fron

#endif
