/* SPDX-License-Identifier: GPL-2.0-only

   Progress of the engine's long calls as progress of a statement, which KILL can end. */

#ifndef FRONDB_ENGINE_PROGRESS_H
#define FRONDB_ENGINE_PROGRESS_H

#include <cstdint>

namespace fron {

/** A frondb_progress whose user data is the statement's THD: reports progress to the client, and ends the engine's call
    if the statement was killed. */
int32_t report_progress(void *thd, const char *tree, uint64_t done, uint64_t to_do);

}  // namespace fron

#endif
