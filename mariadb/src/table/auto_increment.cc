/* SPDX-License-Identifier: GPL-2.0-only

   See table/share.h. Here: the table's AUTO_INCREMENT counter. It is kept in the dictionary before a number is used, so
   that no number is assigned twice after a crash. */

#include "table/auto_increment.h"

#include <sql_class.h>
#include <key.h>

#include <algorithm>

#include "codec/row.h"
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

SystemVariables auto_increment_variables() { return {MYSQL_SYSVAR(autoinc_lock_mode)}; }

bool numbers_are_consecutive() { return lock_mode == CONSECUTIVE; }

bool may_lower_counter(const TABLE *table, const Share &share, uint64_t wanted) {
  if (wanted >= share.auto_increment) return false;
  const KEY *key = &table->key_info[table->s->next_number_index];
  const Field *number = table->found_next_number_field;
  // If the column is a later part of the key, the server counts it without the counter.
  if (!number || table->s->next_number_keypart) return true;
  const Index &index = share.indexes[tree_of(table, table->s->next_number_index)];
  Wanted only;
  only.fields.assign(table->s->fields, 0);
  only.fields[number->field_index] = 1;
  KeyCodec::Targets targets = index.codec.targets(table, key, only);
  if (targets.empty() || !targets[0]) return true;
  Cursor cursor;
  frondb_rows last;
  if (Error error = cursor.open(index.tree.get(), {}, nullptr)) return true;
  bool is_descending = key->key_part[0].key_part_flag & HA_REVERSE_SORT;
  if (Error error = is_descending ? cursor.read(1, 1, &last) : cursor.read_back(1, 1, &last)) return true;
  if (last.count == 0) return share.auto_increment > 1;
  my_ptrdiff_t offset = table->record[1] - table->record[0];
  if (!index.codec.decode(targets, view(last.entries[0].key), offset)) return true;
  Field *field = targets[0];
  AtRecord moved(field, offset);
  longlong value = field->val_int();
  uint64_t largest = value < 0 && !(field->flags & UNSIGNED_FLAG) ? 0 : uint64_t(value);
  return largest < share.auto_increment - 1;
}

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

int Share::reserve_auto_increment(uint64_t offset, uint64_t increment, uint64_t wanted, uint64_t max, bool is_alone,
                                  uint64_t *first, uint64_t *after) {
  std::lock_guard<std::mutex> guard(counting);
  if (!is_alone && counter_lock->users) return COUNTER_IS_LOCKED;
  uint64_t next = auto_increment;
  if (next == ~0ULL) return HA_ERR_AUTOINC_READ_FAILED;
  bool is_over = false;
  if (increment > 1) {
    // As the server documents, an offset larger than the increment is ignored.
    offset = offset > increment ? 0 : offset;
    uint64_t past = next > offset ? next - offset : 0;
    uint64_t steps = past / increment + (past % increment != 0);
    is_over = steps > (~0ULL - offset) / increment;
    if (!is_over) next = offset + steps * increment;
  }
  if (is_over || next > max) {
    // The server computes the same number, and refuses it with its own error. The counter must not advance with each
    // such statement.
    *first = auto_increment;
    *after = 0;
    return 0;
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
  // Return nothing if other statements have reserved later numbers.
  if (auto_increment != after || unused >= after) return 0;
  if (Error error = dictionary().keep_counter(record.number, Dictionary::AUTO_INCREMENT, unused))
    return ha_error(error);
  auto_increment = unused;
  return 0;
}

}  // namespace fron
