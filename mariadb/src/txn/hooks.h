/* SPDX-License-Identifier: GPL-2.0-only

   The functions that the server calls for the transaction of a connection: commit, rollback, savepoints, KILL. */

#ifndef FRONDB_TXN_HOOKS_H
#define FRONDB_TXN_HOOKS_H

struct handlerton;

namespace fron {

/** Sets the transaction functions of the handlerton. */
void set_transaction_hooks(handlerton *hton);

}  // namespace fron

#endif
