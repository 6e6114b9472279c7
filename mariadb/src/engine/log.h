/* SPDX-License-Identifier: GPL-2.0-only

   What the engine says by itself, in the server's error log: damage, a full disk, how far a recovery is. */

#ifndef FRONDB_ENGINE_LOG_H
#define FRONDB_ENGINE_LOG_H

#include "engine/api.h"

namespace fron {

/** The engine's messages go to the server's error log from now on. */
Error listen_to_engine();

/** While this lives the server starts: each message keeps a service manager from giving it up. */
class Starting {
 public:
  Starting();
  ~Starting();
  Starting(const Starting &) = delete;
  Starting &operator=(const Starting &) = delete;
};

}  // namespace fron

#endif
