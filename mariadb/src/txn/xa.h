/* SPDX-License-Identifier: GPL-2.0-only

   Prepared transactions by name: the server finds the transactions that a crash or a disconnect left behind, and
   commits or rolls them back. Independent of connections.

   A commit or rollback that the engine could not carry out, for example on a full disk, is retried, and no checkpoint
   of commits is confirmed before it succeeds. So the binary log keeps the events that a recovery needs to repeat the
   commit. */

#ifndef FRONDB_TXN_XA_H
#define FRONDB_TXN_XA_H

#include "txn/xid.h"

struct handlerton;

namespace fron {

/** Records a failed commit or rollback, to be retried by run_retries(). */
void retry_later(const XidName &xid, bool is_commit);

/** Retries failed commits and rollbacks. Costs one comparison if there are none. */
void run_retries();

/** Sets the functions of the handlerton for prepared transactions and checkpoints. */
void set_xa_hooks(handlerton *hton);

}  // namespace fron

#endif
