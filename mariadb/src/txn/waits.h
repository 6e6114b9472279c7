/* SPDX-License-Identifier: GPL-2.0-only

   Reports to the server which transaction waits for a lock of which other transaction. A replica that applies
   transactions in parallel commits them in the order of the primary. If a transaction waits for a lock of a later one,
   which in turn waits for the first to commit, the server must know of the wait to roll the later transaction back. */

#ifndef FRONDB_TXN_WAITS_H
#define FRONDB_TXN_WAITS_H

#include "engine/api.h"

namespace fron {

/** Makes the engine report its waits from now on. */
Error report_waits(frondb_db *db);

}  // namespace fron

#endif
