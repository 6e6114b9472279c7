/* SPDX-License-Identifier: GPL-2.0-only

   See handler/ha_frondb.h. Here: AUTO_INCREMENT. The counter is kept in the dictionary before a number is
   used, so that no crash gives one out again; a later part of a key counts by its index. */

#include "handler/ha_frondb.h"

#include <key.h>

#include <algorithm>

#include "engine/errors.h"
#include "plugin/hton.h"

using namespace fron;

int Share::raise_auto_increment(uint64_t next) {
  if (next <= auto_increment.load(std::memory_order_relaxed)) return 0;
  std::lock_guard<std::mutex> guard(counting);
  if (next <= auto_increment) return 0;
  if (Error error = dictionary().keep_counter(record.number, Dictionary::AUTO_INCREMENT, next))
    return ha_error(error);
  auto_increment = next;
  return 0;
}

int Share::reserve_auto_increment(uint64_t offset, uint64_t increment, uint64_t wanted, uint64_t *first,
                                  uint64_t *after) {
  std::lock_guard<std::mutex> guard(counting);
  uint64_t next = auto_increment;
  if (increment > 1) {
    // As the server's documentation says: an offset above the increment counts for nothing.
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
  // Others have taken some behind them.
  if (auto_increment != after || unused >= after) return 0;
  if (Error error = dictionary().keep_counter(record.number, Dictionary::AUTO_INCREMENT, unused))
    return ha_error(error);
  auto_increment = unused;
  return 0;
}

uint64_t ha_frondb::auto_increment_of(const uchar *record) {
  Field *field = table->found_next_number_field;
  AtRecord moved(field, record - table->record[0]);
  longlong value = field->val_int();
  return value < 0 && !(field->flags & UNSIGNED_FLAG) ? 0 : uint64_t(value);
}

int ha_frondb::keep_auto_increment_of(const uchar *record) {
  if (!table->found_next_number_field || table->s->next_number_keypart) return 0;
  uint64_t value = auto_increment_of(record);
  return share_->raise_auto_increment(value == ~0ULL ? value : value + 1);
}

void ha_frondb::get_auto_increment(ulonglong offset, ulonglong increment, ulonglong wanted, ulonglong *first,
                                   ulonglong *reserved) {
  reserve_error_ = 0;
  if (table->s->next_number_keypart) {
    // One behind the largest of its group, which the statement's locking read keeps until it commits.
    handler::get_auto_increment(offset, increment, wanted, first, reserved);
    return;
  }
  uint64_t from, after;
  *first = ULONGLONG_MAX;
  reserve_error_ = share_->reserve_auto_increment(offset, increment, wanted, &from, &after);
  if (reserve_error_) return;
  reserved_after_ = after;
  *first = from;
  *reserved = (after - 1 - from) / increment + 1;
}

void ha_frondb::release_auto_increment() {
  if (reserved_after_ == 0) return;
  uint64_t after = std::exchange(reserved_after_, 0);
  // An error here loses numbers, not rows.
  if (next_insert_id) share_->give_back_auto_increment(after, next_insert_id);
}

void ha_frondb::update_create_info(HA_CREATE_INFO *create_info) {
  if (create_info->used_fields & HA_CREATE_USED_AUTO || !table->found_next_number_field) return;
  create_info->auto_increment_value = share_->auto_increment;
}
