/* SPDX-License-Identifier: GPL-2.0-only

   See table/share.h. Here: the table's AUTO_INCREMENT counter. It is kept in the dictionary before a number is used, so
   that no number is assigned twice after a crash. */

#include "table/auto_increment.h"

#include <algorithm>

#include "dictionary/dictionary.h"
#include "engine/errors.h"
#include "table/share.h"

namespace fron {
namespace {

constexpr unsigned long CONSECUTIVE = 1, INTERLEAVED = 2;

unsigned long lock_mode;

MYSQL_SYSVAR_ULONG(autoinc_lock_mode, lock_mode, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                   "How concurrent statements share an AUTO_INCREMENT counter. 1 (consecutive): a statement whose "
                   "number of rows is unknown locks the counter until it ends, so that it may be logged in the format "
                   "STATEMENT. 2 (interleaved): statements never wait for numbers, and are logged as rows.",
                   nullptr, nullptr, INTERLEAVED, CONSECUTIVE, INTERLEAVED, 0);

}  // namespace

struct st_mysql_sys_var *const autoinc_lock_mode_variable = MYSQL_SYSVAR(autoinc_lock_mode);

bool numbers_are_consecutive() { return lock_mode == CONSECUTIVE; }

int Share::raise_auto_increment(uint64_t next, bool is_alone) {
  if (next <= auto_increment.load(std::memory_order_relaxed)) return 0;
  std::lock_guard<std::mutex> guard(counting);
  if (next <= auto_increment) return 0;
  if (!is_alone && counter_lock->users) return COUNTER_IS_LOCKED;
  if (Error error = dictionary().keep_counter(record.number, Dictionary::AUTO_INCREMENT, next))
    return ha_error(error);
  auto_increment = next;
  return 0;
}

int Share::reserve_auto_increment(uint64_t offset, uint64_t increment, uint64_t wanted, bool is_alone,
                                  uint64_t *first, uint64_t *after) {
  std::lock_guard<std::mutex> guard(counting);
  if (!is_alone && counter_lock->users) return COUNTER_IS_LOCKED;
  uint64_t next = auto_increment;
  if (increment > 1) {
    // As the server documents: an offset larger than the increment is ignored.
    offset = offset > increment ? 0 : offset;
    uint64_t past = next > offset ? next - offset : 0;
    uint64_t steps = past / increment + (past % increment != 0);
    if (steps > (~0ULL - offset) / increment) return HA_ERR_AUTOINC_READ_FAILED;
    next = offset + steps * increment;
  }
  uint64_t more = wanted > 1 ? wanted - 1 : 0;
  if (next == ~0ULL || more >= (~0ULL - next) / increment) more = 0;
  if (next == ~0ULL) return HA_ERR_AUTOINC_READ_FAILED;
  *first = next;
  *after = next + more * increment + 1;
  if (Error error = dictionary().keep_counter(record.number, Dictionary::AUTO_INCREMENT, *after))
    return ha_error(error);
  auto_increment = *after;
  return 0;
}

int Share::give_back_auto_increment(uint64_t after, uint64_t unused) {
  std::lock_guard<std::mutex> guard(counting);
  // Other statements have reserved later numbers.
  if (auto_increment != after || unused >= after) return 0;
  if (Error error = dictionary().keep_counter(record.number, Dictionary::AUTO_INCREMENT, unused))
    return ha_error(error);
  auto_increment = unused;
  return 0;
}

}  // namespace fron
