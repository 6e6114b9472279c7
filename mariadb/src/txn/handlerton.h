/* SPDX-License-Identifier: GPL-2.0-only

   The server's handle of this engine: transactions register with it, and the server stores a connection's data under
   it. */

#ifndef FRONDB_TXN_HANDLERTON_H
#define FRONDB_TXN_HANDLERTON_H

struct handlerton;

namespace fron {

/** Returns the handle. It is set before any other function of the plugin runs. */
handlerton *hton();

void set_hton(handlerton *hton);

}  // namespace fron

#endif
