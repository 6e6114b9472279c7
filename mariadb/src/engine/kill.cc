/* SPDX-License-Identifier: GPL-2.0-only

   See engine/kill.h. */

#include "engine/kill.h"

#include <my_global.h>
#include <sql_class.h>

namespace fron {

bool is_killed(THD *thd) {
  if (thd_kill_level(thd) == THD_IS_NOT_KILLED) return false;
  killed_state state = killed_mask_hard(thd->killed);
  // For ABORT_QUERY and KILL_BAD_DATA the server's send_kill_message() sends no error.
  return state != ABORT_QUERY && state != KILL_BAD_DATA;
}

}  // namespace fron
