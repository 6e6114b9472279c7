/* SPDX-License-Identifier: GPL-2.0-only

   Prepared transactions by name: the server finds those that a crash or a disconnect has left, and
   decides them. Sits between the handlerton and the engine; knows no connection.

   A decision that the engine could not carry out (a full disk) is owed: it is tried again, and until
   it is done no checkpoint of commits is confirmed, so that the binary log keeps what a recovery
   needs to repeat it. */

#ifndef FRONDB_TXN_XA_H
#define FRONDB_TXN_XA_H

#include "txn/xid.h"

struct handlerton;

namespace fron {

/** Carries a decision out later, which failed now. */
void owe(const XidName &xid, bool is_commit);

/** Carries out what is owed, if anything is. Costs nothing if not. */
void pay();

/** The functions of the handlerton that are about prepared transactions and checkpoints. */
void set_xa_hooks(handlerton *hton);

}  // namespace fron

#endif
