/* SPDX-License-Identifier: GPL-2.0-only

   See handler/optimize_variables.h. */

#include "handler/optimize_variables.h"

#include <sql_class.h>

#include "engine/server.h"

namespace fron {
namespace {

/** Smallest accepted fraction: a part without any row would be no optimization. */
constexpr double FRACTION_MIN = 0.000001;

enum OptimizeMode : ulong { OPTIMIZE_HOT, OPTIMIZE_COPY };
const char *optimize_mode_names[] = {"hot", "copy", NullS};
TYPELIB optimize_modes = type_library(array_elements(optimize_mode_names) - 1, "", optimize_mode_names);

MYSQL_THDVAR_ENUM(optimize_mode, PLUGIN_VAR_RQCMDARG,
                  "How OPTIMIZE TABLE works: hot consolidates the table, copy writes it anew; others write "
                  "meanwhile.",
                  check_name_of<optimize_modes>, nullptr, OPTIMIZE_HOT, &optimize_modes);
MYSQL_THDVAR_ULONGLONG(optimize_throttle, PLUGIN_VAR_RQCMDARG,
                       "Leaves that OPTIMIZE TABLE rewrites a second, at most; 0 means no limit.", nullptr,
                       nullptr, 0, 0, ULONGLONG_MAX, 0);
MYSQL_THDVAR_STR(optimize_index_name, PLUGIN_VAR_OPCMDARG | PLUGIN_VAR_MEMALLOC,
                 "The only index that OPTIMIZE TABLE optimizes; empty for all.", check_text, nullptr, "");
MYSQL_THDVAR_DOUBLE(optimize_index_fraction, PLUGIN_VAR_RQCMDARG,
                    "The part of each index that OPTIMIZE TABLE optimizes, from its first key on: 0.000001 to 1.",
                    nullptr, nullptr, 1.0, FRACTION_MIN, 1.0, 0);

}  // namespace

SystemVariables optimize_variables() {
  return {MYSQL_SYSVAR(optimize_mode), MYSQL_SYSVAR(optimize_throttle), MYSQL_SYSVAR(optimize_index_name),
          MYSQL_SYSVAR(optimize_index_fraction)};
}

bool session_optimizes_by_copy(MYSQL_THD thd) { return THDVAR(thd, optimize_mode) == OPTIMIZE_COPY; }

uint64_t session_optimize_throttle(MYSQL_THD thd) { return THDVAR(thd, optimize_throttle); }

const char *session_optimize_index(MYSQL_THD thd) {
  const char *name = THDVAR(thd, optimize_index_name);
  return name ? name : "";
}

double session_optimize_fraction(MYSQL_THD thd) { return THDVAR(thd, optimize_index_fraction); }

}  // namespace fron
