/* SPDX-License-Identifier: GPL-2.0-only

   Prepared transactions by name: the server finds those that a crash or a disconnect has left, and commits or rolls
   them back. Independent of connections.

   A decision that the engine could not carry out, for example on a full disk, is owed: it is retried, and no
   checkpoint of commits is confirmed before it succeeds. So the binary log keeps the events that a recovery needs to
   repeat the decision. */

#ifndef FRONDB_TXN_XA_H
#define FRONDB_TXN_XA_H

#include "txn/xid.h"

struct handlerton;

namespace fron {

/** Records a decision that has failed, to be retried by pay(). */
void owe(const XidName &xid, bool is_commit);

/** Retries the decisions that are owed. Costs nothing if there are none. */
void pay();

/** Sets the functions of the handlerton that are about prepared transactions and checkpoints. */
void set_xa_hooks(handlerton *hton);

}  // namespace fron

#endif
