/* SPDX-License-Identifier: GPL-2.0-only

   Row counts of transactions that a user has prepared (XA). Another connection may commit or roll back such a
   transaction, even after a restart, so its counts are kept in the dictionary from its prepare to its end. The count of
   a table includes rows as soon as they are written (statistics/row_counts.h); a rollback subtracts them from the open
   table, or from the count that the dictionary keeps of it.

   The counts are estimates for the optimizer: a crash between a decision and its settlement may leave a count behind or
   lose one, which does no harm. */

#ifndef FRONDB_TXN_PREPARED_COUNTS_H
#define FRONDB_TXN_PREPARED_COUNTS_H

#include <memory>

#include "engine/errors.h"
#include "statistics/row_counts.h"
#include "txn/xid.h"

namespace fron {

/** Registers the count of an open table under the number of the table. If FLUSH TABLES has closed the table while a
    transaction still counts in it, replaces `count` by the count that this transaction uses, and returns true. */
bool join_open_count(uint64_t table, std::shared_ptr<RowCount> *count);

/** Sums the rows that prepared transactions have inserted into a table, minus the rows that they have deleted. No
    tree has these rows yet. */
Error prepared_rows(uint64_t table, int64_t *rows);

/** Keeps the counts of a transaction that is about to be prepared under a name chosen by the user. */
void keep_prepared_counts(const XidName &name, const TransactionCounts &counts);

/** Drops the counts of a transaction that its own connection has ended and settled. */
void forget_prepared_counts(const XidName &name);

/** Settles the counts of a transaction that was committed or rolled back by name. */
void settle_prepared_counts(const XidName &name, bool is_commit);

}  // namespace fron

#endif
