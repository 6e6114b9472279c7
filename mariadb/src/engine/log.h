/* SPDX-License-Identifier: GPL-2.0-only

   Messages of the engine in the server's error log: damage, a full disk, the progress of a recovery. */

#ifndef FRONDB_ENGINE_LOG_H
#define FRONDB_ENGINE_LOG_H

#include "engine/api.h"

namespace fron {

/** Writes the engine's messages to the server's error log from now on. */
Error listen_to_engine();

/** Exists while the server starts: each message of the engine then extends the time that a service manager allows for
    the start. */
class Starting {
 public:
  Starting();
  ~Starting();
  Starting(const Starting &) = delete;
  Starting &operator=(const Starting &) = delete;
};

}  // namespace fron

#endif
