/* SPDX-License-Identifier: GPL-2.0-only

   What transactions that a user has prepared (XA) have counted. Such a one may be decided by another connection, or after
   a restart, when nobody who counted is left; so its counts are kept in the dictionary from its prepare to its end. Counts
   of tables have its rows as soon as they are written (statistics/row_counts.h): a rollback takes them out again, of the open table
   or of what is kept of it.

   They are figures: that a crash between the decision and this may leave one behind, or lose it, does no harm. */

#ifndef FRONDB_TXN_PREPARED_COUNTS_H
#define FRONDB_TXN_PREPARED_COUNTS_H

#include <memory>

#include "statistics/row_counts.h"
#include "txn/xid.h"

namespace fron {

/** A table is open: its count, by the number of the table. */
void note_open_count(uint64_t table, const std::shared_ptr<RowCount> &count);

/** A transaction is about to be prepared under a name of the user's. */
void keep_prepared_counts(const XidName &name, const TransactionCounts &counts);

/** It has ended by its own connection, which has settled its counts itself. */
void forget_prepared_counts(const XidName &name);

/** It was decided by its name. */
void settle_prepared_counts(const XidName &name, bool is_commit);

}  // namespace fron

#endif
