/* SPDX-License-Identifier: GPL-2.0-only

   See engine/progress.h. */

#include "engine/progress.h"

#include <my_global.h>
#include <sql_class.h>
#include <mysql/service_progress_report.h>

#include <mutex>
#include <new>
#include <set>
#include <string>

#include "engine/kill.h"

namespace fron {
namespace {

/** Returns a permanent copy of the text; null if there is no memory. */
const char *lasting_text(const char *text) {
  static std::mutex lock;
  static std::set<std::string> texts;
  std::lock_guard<std::mutex> guard(lock);
  try {
    return texts.insert(text).first->c_str();
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}

}  // namespace

void show_in_processlist(THD *thd, const char *text) {
  if (const char *lasting = lasting_text(text)) thd_proc_info(thd, lasting);
}

int32_t report_progress(void *thd, const char *, uint64_t done, uint64_t to_do) {
  thd_progress_report(static_cast<THD *>(thd), done, to_do);
  return is_killed(static_cast<THD *>(thd));
}

}  // namespace fron
