/* SPDX-License-Identifier: GPL-2.0-only

   See engine/progress.h. */

#include "engine/progress.h"

#include <my_global.h>
#include <sql_class.h>
#include <mysql/service_progress_report.h>

namespace fron {

int32_t report_progress(void *thd, const char *, uint64_t done, uint64_t to_do) {
  thd_progress_report(static_cast<THD *>(thd), done, to_do);
  return thd_killed(static_cast<THD *>(thd));
}

}  // namespace fron
