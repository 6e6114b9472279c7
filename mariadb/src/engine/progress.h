/* SPDX-License-Identifier: GPL-2.0-only

   Reports the progress of the engine's long calls as progress of a statement, and lets KILL end such a call. */

#ifndef FRONDB_ENGINE_PROGRESS_H
#define FRONDB_ENGINE_PROGRESS_H

#include <cstdint>

class THD;

namespace fron {

/** Reports progress to the client, and ends the engine's call if the statement was killed. This is a frondb_progress
    whose user data is the statement's THD. */
int32_t report_progress(void *thd, const char *tree, uint64_t done, uint64_t to_do);

/** Shows a text in PROCESSLIST, which reads it without a lock, perhaps after the statement's end; therefore texts are
    never freed. Use few different texts. */
void show_in_processlist(THD *thd, const char *text);

}  // namespace fron

#endif
