/* SPDX-License-Identifier: GPL-2.0-only

   See engine/log.h. */

#include "engine/log.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdio>

#include <my_global.h>
#include <mysqld.h>
#include <log.h>

namespace fron {
namespace {

/** After each message the service manager allows the start at least this long; the engine writes one every few
    seconds. */
constexpr unsigned EXTENSION_SECONDS = 60;

std::atomic<bool> is_starting{false};

/** Tells the service manager, if there is one, that the start makes progress. */
void extend_start(const char *message) {
  using Notify = int (*)(int, const char *);
  static const auto notify = reinterpret_cast<Notify>(dlsym(RTLD_DEFAULT, "sd_notify"));
  if (!notify) return;
  char text[512];
  snprintf(text, sizeof text, "STATUS=FronDB: %.400s\nEXTEND_TIMEOUT_USEC=%u000000\n", message, EXTENSION_SECONDS);
  notify(0, text);  // Does nothing without a service manager.
}

void write_to_server_log(void *, frondb_log_level level, const char *message) {
  switch (level) {
    case FRONDB_LOG_ERROR: sql_print_error("FronDB: %s", message); break;
    case FRONDB_LOG_WARNING: sql_print_warning("FronDB: %s", message); break;
    default: sql_print_information("FronDB: %s", message);
  }
  if (is_starting.load(std::memory_order_relaxed)) extend_start(message);
}

}  // namespace

Error listen_to_engine() { return frondb_set_log(write_to_server_log, nullptr, nullptr); }

Starting::Starting() { is_starting.store(true, std::memory_order_relaxed); }
Starting::~Starting() { is_starting.store(false, std::memory_order_relaxed); }

}  // namespace fron
