/* SPDX-License-Identifier: GPL-2.0-only

   See frondb_error.h. */

#include "frondb_error.h"

#include <my_global.h>
#include <my_base.h>
#include <sql_string.h>

namespace fron {
namespace {

/** The sentence of the thread's last error that the server has no number for. */
thread_local std::string last_sentence;

/** Above HA_ERR_LAST: the server asks get_error_message() for these. */
constexpr int HA_ERR_FRONDB = 210;

int with_sentence(const char *sentence) {
  last_sentence = sentence;
  return HA_ERR_FRONDB;
}

}  // namespace

int ha_error(const Error &error) {
  if (!error) return 0;
  switch (error.kind()) {
    case FRONDB_DEADLOCK: return HA_ERR_LOCK_DEADLOCK;
    case FRONDB_LOCK_TIMEOUT: return HA_ERR_LOCK_WAIT_TIMEOUT;
    case FRONDB_CONFLICT: return HA_ERR_RECORD_CHANGED;
    case FRONDB_BUSY: return HA_ERR_LOCK_WAIT_TIMEOUT;
    case FRONDB_NO_SPACE: return HA_ERR_DISK_FULL;
    case FRONDB_CANCELLED: return HA_ERR_ABORTED_BY_USER;
    case FRONDB_EXISTS: return HA_ERR_FOUND_DUPP_KEY;
    default: return with_sentence(error.message());
  }
}

int ha_internal(const char *sentence) { return with_sentence(sentence); }

bool message(int number, String *to) {
  if (number != HA_ERR_FRONDB) return false;
  to->append(last_sentence.data(), last_sentence.size());
  return true;
}

}  // namespace fron
