/* SPDX-License-Identifier: GPL-2.0-only

   Places where a test can kill the server, as kill -9 would. The environment variable FRONDB_CRASH_AT names one of them
   when the server starts. Without the variable each place costs one comparison. */

#ifndef FRONDB_ENGINE_CRASH_POINTS_H
#define FRONDB_ENGINE_CRASH_POINTS_H

namespace fron {

/** Kills the process if FRONDB_CRASH_AT names this place. */
void may_crash_at(const char *place);

}  // namespace fron

#endif
