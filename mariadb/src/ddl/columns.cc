/* SPDX-License-Identifier: GPL-2.0-only

   See ddl/columns.h. */

#include "ddl/columns.h"

#include <sql_alter.h>

#include "codec/row.h"

namespace fron {
namespace {

/** The length of a VARCHAR takes one byte in a row if the longest value has at most this many bytes, otherwise two. */
constexpr uint SHORT_MAX = 255;

bool is_short(uint length) { return length <= SHORT_MAX; }

/** For each column of the new definition its number in the old one, Slot::GONE for new columns. False if this is
    unknown. Names are not enough: a statement may give the name of one column to another. */
bool old_numbers(const TABLE *table, const TABLE *altered, const Alter_inplace_info *info, std::vector<uint> *numbers) {
  List_iterator_fast<Create_field> columns(info->alter_info->create_list);
  std::vector<bool> used(table->s->fields);
  numbers->clear();
  while (const Create_field *column = columns++) {
    if (!column->field) {
      numbers->push_back(Slot::GONE);
      continue;
    }
    uint number = column->field->field_index;
    if (number >= table->s->fields || table->field[number] != column->field || used[number]) return false;
    used[number] = true;
    numbers->push_back(number);
  }
  return numbers->size() == altered->s->fields;
}

/** Whether both fields have the same bytes in rows. */
bool same_bytes(const Field *x, const Field *y) {
  if (x->real_type() != y->real_type() || x->charset() != y->charset() || x->stored_in_db() != y->stored_in_db() ||
      x->real_maybe_null() != y->real_maybe_null())
    return false;
  if (x->real_type() != MYSQL_TYPE_VARCHAR) return x->pack_length() == y->pack_length();
  return x->field_length <= y->field_length && is_short(x->field_length) == is_short(y->field_length);
}

/** An expression that depends on nothing but the statement's time has the same value in all existing rows. */
constexpr uint OF_STATEMENT = VCOL_TIME_FUNC;

/** Whether a default that is an expression fits its field. If its conversion fails or warns, a copy must report that
    for each row. */
bool can_evaluate(Field *added) {
  int result = added->set_default();
  constexpr int TIME_CUT_TO_FIT = 3;
  return result == 0 || result == TIME_CUT_TO_FIT;
}

/** Whether all existing rows get the same value; not for AUTO_INCREMENT or an expression that differs in each row. */
bool has_one_default(Field *added) {
  if (!added->stored_in_db()) return true;
  if (added->unireg_check == Field::NEXT_NUMBER) return false;
  return !added->default_value || (!(added->default_value->flags & ~OF_STATEMENT) && can_evaluate(added));
}

/** Whether the table has a hidden column of the server, for a long unique key. */
bool has_hash_column(const TABLE *table) {
  for (uint i = 0; i < table->s->fields; i++)
    if (table->field[i]->flags & LONG_UNIQUE_HASH_FIELD) return true;
  return false;
}

bool is_in_order(const Layout &layout) {
  for (size_t i = 0; i < layout.size(); i++)
    if (layout[i].field != i) return false;
  return true;
}

}  // namespace

bool keeps_rows(const TABLE *table, const TABLE *altered, const Alter_inplace_info *info, const Layout &layout) {
  std::vector<uint> numbers;
  if (has_hash_column(table) || has_hash_column(altered) || !old_numbers(table, altered, info, &numbers)) return false;
  size_t slots = layout.empty() ? table->s->fields : layout.size();
  for (uint i = 0; i < altered->s->fields; i++) {
    Field *field = altered->field[i];
    if (numbers[i] != Slot::GONE) {
      if (!same_bytes(table->field[numbers[i]], field)) return false;
      continue;
    }
    if (!has_one_default(field)) return false;
    slots++;
  }
  // Each slot takes a bit in each row, forever.
  return slots <= MAX_FIELDS;
}

bool change_form(const TABLE *table, TABLE *altered, const Alter_inplace_info *info, RowForm *form) {
  std::vector<uint> numbers;
  if (!old_numbers(table, altered, info, &numbers)) return false;
  Layout &layout = form->layout;
  if (layout.empty())
    for (uint i = 0; i < table->s->fields; i++) layout.push_back({i, 0, 0});
  std::vector<uint32_t> new_numbers(table->s->fields, Slot::GONE);
  std::vector<Field *> added;
  for (uint i = 0; i < numbers.size(); i++) {
    if (numbers[i] != Slot::GONE) new_numbers[numbers[i]] = i;
    else added.push_back(altered->field[i]);
  }
  for (Slot &slot : layout) {
    if (slot.field == Slot::GONE) continue;
    const Field *old = table->field[slot.field];
    slot.field = new_numbers[slot.field];
    if (slot.field == Slot::GONE) describe_bytes(old, &slot);
  }
  for (uint i = 0; i < numbers.size(); i++)
    if (numbers[i] == Slot::GONE) layout.push_back({i, 0, 0});
  if (is_in_order(layout)) layout.clear();
  // Slots keep their positions, so the old defaults can be read with the new layout.
  return added.empty() || pack_defaults(altered, added, form);
}

bool is_widened(const Field &field, const Column_definition &wanted) {
  if (field.real_type() != MYSQL_TYPE_VARCHAR || wanted.type_handler() != field.type_handler()) return false;
  if (field.compression_method() || wanted.compression_method()) return false;
  if (wanted.charset != field.charset()) return false;
  if (wanted.length < field.field_length || is_short(uint(wanted.length)) != is_short(field.field_length)) return false;
  // Not for a column of an index: the old collations with several levels reserve space in keys for the longest value.
  const TABLE *table = field.table;
  for (uint k = 0; k < table->s->keys; k++)
    for (uint i = 0; i < table->key_info[k].user_defined_key_parts; i++)
      if (table->key_info[k].key_part[i].fieldnr == field.field_index + 1u) return false;
  return true;
}

}  // namespace fron
