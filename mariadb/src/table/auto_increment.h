/* SPDX-License-Identifier: GPL-2.0-only

   The system variable frondb_autoinc_lock_mode: how concurrent statements share a table's AUTO_INCREMENT counter; and
   whether an ALTER can lower a counter. */

#ifndef FRONDB_TABLE_AUTO_INCREMENT_H
#define FRONDB_TABLE_AUTO_INCREMENT_H

#include "engine/system_variables.h"

#include <my_global.h>
#include <mysql/plugin.h>

#include <cstdint>

struct TABLE;

namespace fron {

class Share;

SystemVariables auto_increment_variables();

/** Returns whether the numbers of a statement are consecutive (mode 1); otherwise numbers of concurrent statements
    interleave (mode 2). */
bool numbers_are_consecutive();

/** Returns whether AUTO_INCREMENT = `wanted` may lower the table's counter: not if the counter is at most `wanted`,
    or one more than the largest committed number. Uses record[1] of the table. */
bool may_lower_counter(const TABLE *table, const Share &share, uint64_t wanted);

}  // namespace fron

#endif
