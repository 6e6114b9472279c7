/* SPDX-License-Identifier: GPL-2.0-only

   Places where a test lets the server die, as kill -9 would: the one that the environment variable
   FRONDB_CRASH_AT names when the server starts. Without it they cost a comparison. */

#ifndef FRONDB_ENGINE_CRASH_POINTS_H
#define FRONDB_ENGINE_CRASH_POINTS_H

namespace fron {

/** Ends the process if this is the place. */
void may_crash_at(const char *place);

}  // namespace fron

#endif
