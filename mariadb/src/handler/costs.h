/* SPDX-License-Identifier: GPL-2.0-only

   What the optimizer is told about the costs of reading. Costs follow the rows before compression, as in an engine
   whose blocks are not compressed: the optimizer's constants are tuned for such an engine, and the server estimates the
   blocks of an index in the same way. */

#ifndef FRONDB_HANDLER_COSTS_H
#define FRONDB_HANDLER_COSTS_H

#include "engine/server.h"

namespace fron {

/** The unit of the server's costs. */
inline constexpr uint BLOCK_BYTES = 16 << 10;

/** Overhead of a row or an entry in InnoDB, in bytes. */
inline constexpr uint ROW_OVERHEAD = 20;

/** Tells the server the engine's constants, where a server asks for them. */
void set_cost_hook(handlerton *ht);

}  // namespace fron

#endif
