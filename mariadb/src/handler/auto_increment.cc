/* SPDX-License-Identifier: GPL-2.0-only

   See handler/ha_frondb.h. Here: AUTO_INCREMENT. table/auto_increment.cc has the counter; a column that is a later part
   of a key is counted by the server, with a read of the index. */

#include "handler/ha_frondb.h"

#include <key.h>

#include <algorithm>

#include "engine/errors.h"
#include "table/auto_increment.h"
#include "txn/connection.h"

using namespace fron;

namespace {

/** Returns whether the server does not know how many rows the statement inserts. */
bool is_bulk_insert(MYSQL_THD thd) {
  int command = thd_sql_command(thd);
  return command == SQLCOM_INSERT_SELECT || command == SQLCOM_REPLACE_SELECT || command == SQLCOM_LOAD;
}

}  // namespace

/** Returns true if concurrent statements may interleave their numbers: then the server logs statements that use such
    numbers in the format ROW. */
bool ha_frondb::autoinc_lock_mode_stmt_unsafe() const { return !numbers_are_consecutive(); }

/** Returns whether statements that insert into the table keep their numbers consecutive. The server itself assigns
    the numbers of a partitioned table, under a lock of its own; no other connection uses a temporary table. */
bool ha_frondb::locks_counter() const {
  return numbers_are_consecutive() && !table->part_info && table->s->tmp_table == NO_TMP_TABLE;
}

/** Calls `use` with whether the statement has exclusive use of the counter; a statement whose number of rows is unknown
    takes the counter's lock before. If `use` returns COUNTER_IS_LOCKED, takes the lock and calls `use` again. */
template <typename Use>
int ha_frondb::use_counter(Use use) {
  auto lock = [&] { return guarded([&] { return use_.connection->lock_counter(share_->counter_lock); }); };
  bool is_alone = !locks_counter() || use_.connection->has_counter(*share_->counter_lock);
  if (!is_alone && is_bulk_insert(ha_thd())) {
    if (int error = lock()) return error;
    is_alone = true;
  }
  int error = use(is_alone);
  if (error != Share::COUNTER_IS_LOCKED) return error;
  if ((error = lock())) return error;
  return use(true);
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
  uint64_t next = value == ~0ULL ? value : value + 1;
  if (next <= share_->auto_increment) return 0;
  return use_counter([&](bool is_alone) { return share_->raise_auto_increment(next, is_alone); });
}

void ha_frondb::get_auto_increment(ulonglong offset, ulonglong increment, ulonglong wanted, ulonglong *first,
                                   ulonglong *reserved) {
  reservation_.error = 0;
  if (table->s->next_number_keypart) {
    // The server takes one more than the largest number of the group; its locking read keeps that number locked.
    handler::get_auto_increment(offset, increment, wanted, first, reserved);
    return;
  }
  uint64_t from, after, max = table->next_number_field->get_max_int_value();
  *first = ULONGLONG_MAX;
  reservation_.error = use_counter([&](bool is_alone) {
    return share_->reserve_auto_increment(offset, increment, wanted, max, is_alone, &from, &after);
  });
  if (reservation_.error) return;
  reservation_.after = after;
  *first = from;
  *reserved = after ? (after - 1 - from) / increment + 1 : 0;
}

void ha_frondb::release_auto_increment() {
  if (reservation_.after == 0) return;
  uint64_t after = std::exchange(reservation_.after, 0);
  // Mode 1 behaves like InnoDB, which loses unused numbers. Ignore errors, which also lose only the unused numbers.
  if (next_insert_id && !numbers_are_consecutive()) share_->give_back_auto_increment(after, next_insert_id);
}

void ha_frondb::update_create_info(HA_CREATE_INFO *create_info) {
  if (create_info->used_fields & HA_CREATE_USED_AUTO || !table->found_next_number_field) return;
  create_info->auto_increment_value = share_->auto_increment;
}
