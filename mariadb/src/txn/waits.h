/* SPDX-License-Identifier: GPL-2.0-only

   Tells the server who waits for whose locks. A replica that applies transactions in parallel commits
   them in the order of the primary: it must know when one waits for a lock of a later one, which in
   turn waits for its commit, and then ends the later one. */

#ifndef FRONDB_TXN_WAITS_H
#define FRONDB_TXN_WAITS_H

#include "engine/api.h"

namespace fron {

/** Has the engine report its waits from now on. */
Error report_waits(frondb_db *db);

}  // namespace fron

#endif
