/* SPDX-License-Identifier: GPL-2.0-only

   See handler/ha_frondb.h. Here: AUTO_INCREMENT. table/auto_increment.cc has the counter; a column that is a later part
   of a key is counted by the server, with a read of the index. */

#include "handler/ha_frondb.h"

#include <key.h>

#include <algorithm>

#include "engine/errors.h"

using namespace fron;

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
  reservation_.error = 0;
  if (table->s->next_number_keypart) {
    // One more than the largest number of the group, which the statement's locking read keeps locked.
    handler::get_auto_increment(offset, increment, wanted, first, reserved);
    return;
  }
  uint64_t from, after;
  *first = ULONGLONG_MAX;
  reservation_.error = share_->reserve_auto_increment(offset, increment, wanted, &from, &after);
  if (reservation_.error) return;
  reservation_.after = after;
  *first = from;
  *reserved = (after - 1 - from) / increment + 1;
}

void ha_frondb::release_auto_increment() {
  if (reservation_.after == 0) return;
  uint64_t after = std::exchange(reservation_.after, 0);
  // Ignore errors: they lose only the unused numbers.
  if (next_insert_id) share_->give_back_auto_increment(after, next_insert_id);
}

void ha_frondb::update_create_info(HA_CREATE_INFO *create_info) {
  if (create_info->used_fields & HA_CREATE_USED_AUTO || !table->found_next_number_field) return;
  create_info->auto_increment_value = share_->auto_increment;
}
