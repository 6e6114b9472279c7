/* SPDX-License-Identifier: GPL-2.0-only

   See ddl/columns.h. */

#include "ddl/columns.h"

#include <sql_alter.h>

#include <algorithm>

#include "codec/row.h"

namespace fron {
namespace {

bool is_short(uint length) { return length <= SHORT_VARCHAR; }

/** Returns whether the length of a VARCHAR takes two bytes where it took one. */
bool gets_long(const Field *before, const Field *after) {
  return after->real_type() == MYSQL_TYPE_VARCHAR && is_short(before->field_length) && !is_short(after->field_length);
}

/** Returns whether the bytes of a text have the same meaning in another character set or collation. */
bool keeps_text(const Field *before, CHARSET_INFO *after) {
  CHARSET_INFO *cs = before->charset();
  return cs == after || (before->has_charset() && Charset(cs).encoding_allows_reinterpret_as(after));
}

/** An expression that depends on nothing but the statement's time has the same value in all existing rows. */
constexpr uint OF_STATEMENT = VCOL_TIME_FUNC;

/** Returns whether a default that is an expression fits its field. If its conversion fails or warns, the rows must
    be copied, because a copy reports that for each row. */
bool can_evaluate(Field *added) {
  int result = added->set_default();
  constexpr int TIME_CUT_TO_FIT = 3;
  return result == 0 || result == TIME_CUT_TO_FIT;
}

/** Returns whether the layout is the default: the slots are the columns in their order. */
bool is_plain(const Layout &layout) {
  for (size_t i = 0; i < layout.size(); i++)
    if (layout[i].field != i || layout[i].short_until) return false;
  return true;
}

/** Returns whether the layout needs a slot without a column: a VARCHAR gets a two-byte length, and only a larger number
    of slots tells the new rows from existing ones. An added column makes the number larger anyway. */
bool needs_mark(const TABLE *table, const TABLE *altered, const OldNumbers &old) {
  for (uint i = 0; i < old.size(); i++) {
    if (old[i] == Slot::GONE) return false;
    if (gets_long(table->field[old[i]], altered->field[i])) return true;
  }
  return false;
}

}  // namespace

bool match_columns(const TABLE *table, const TABLE *altered, const Alter_inplace_info *info, OldNumbers *old) {
  old->clear();
  if (has_hash_column(table) || has_hash_column(altered)) {
    // The statement's list of columns lacks the server's hidden column of a long unique key, so do not use the list.
    for (uint i = 0; i < altered->s->fields; i++) old->push_back(i);
    return !(info->handler_flags & OF_COLUMNS) && altered->s->fields == table->s->fields;
  }
  // Do not find a column by its name: a statement may give the name of one column to another.
  List_iterator_fast<Create_field> columns(info->alter_info->create_list);
  std::vector<bool> used(table->s->fields);
  while (const Create_field *column = columns++) {
    if (!column->field) {
      old->push_back(Slot::GONE);
      continue;
    }
    uint number = column->field->field_index;
    if (number >= table->s->fields || table->field[number] != column->field || used[number]) return false;
    used[number] = true;
    old->push_back(number);
  }
  return old->size() == altered->s->fields;
}

bool keeps_bytes(const Field *before, const Field *after) {
  if (before->real_type() != after->real_type() || before->stored_in_db() != after->stored_in_db() ||
      !keeps_text(before, after->charset()))
    return false;
  if (before->real_type() != MYSQL_TYPE_VARCHAR) return before->pack_length() == after->pack_length();
  return before->field_length <= after->field_length;
}

bool has_one_default(Field *added) {
  if (!added->stored_in_db()) return true;
  if (added->unireg_check == Field::NEXT_NUMBER) return false;
  return !added->default_value || (!(added->default_value->flags & ~OF_STATEMENT) && can_evaluate(added));
}

bool has_hash_column(const TABLE *table) {
  for (uint i = 0; i < table->s->fields; i++)
    if (table->field[i]->flags & LONG_UNIQUE_HASH_FIELD) return true;
  return false;
}

bool has_too_many_slots(const TABLE *table, const TABLE *altered, const OldNumbers &old, const Layout &layout) {
  size_t slots = layout.empty() ? table->s->fields : layout.size();
  slots += size_t(std::count(old.begin(), old.end(), Slot::GONE));
  if (needs_mark(table, altered, old)) slots++;
  return slots > MAX_FIELDS;
}

bool change_form(const TABLE *table, TABLE *altered, const OldNumbers &old, RowForm *form) {
  Layout &layout = form->layout;
  if (layout.empty())
    for (uint i = 0; i < table->s->fields; i++) layout.push_back({i});
  size_t slots = layout.size();
  std::vector<uint32_t> new_numbers(table->s->fields, Slot::GONE);
  for (uint i = 0; i < old.size(); i++)
    if (old[i] != Slot::GONE) new_numbers[old[i]] = i;
  for (Slot &slot : layout) {
    if (slot.field == Slot::GONE) continue;
    const Field *before = table->field[slot.field];
    slot.field = new_numbers[slot.field];
    if (slot.field == Slot::GONE) describe_bytes(before, &slot);
    else if (gets_long(before, altered->field[slot.field])) slot.short_until = uint32_t(slots);
  }
  std::vector<Field *> added;
  for (uint i = 0; i < old.size(); i++) {
    if (old[i] != Slot::GONE) continue;
    layout.push_back({i});
    added.push_back(altered->field[i]);
  }
  // A slot without a column, which marks rows with the new lengths.
  if (needs_mark(table, altered, old)) layout.push_back({Slot::GONE});
  bool has_grown = layout.size() > slots;
  if (is_plain(layout)) layout.clear();
  // Slots keep their positions, so the old defaults can be read with the new layout.
  return !has_grown || pack_defaults(altered, added, form);
}

bool changes_entries(const Field *before, const Field *after) {
  if (before->real_maybe_null() != after->real_maybe_null() || before->charset() != after->charset()) return true;
  if (before->field_length == after->field_length) return false;
  // A length of 255 in an entry would be read as an escaped length.
  if (gets_long(before, after) && before->field_length > ESCAPED_VARCHAR) return true;
  // Old collations with several levels reserve space in keys for the longest value.
  return after->charset()->levels_for_order > 1 && !after->charset()->uca;
}

bool is_read_as(const Field &field, const Column_definition &wanted) {
  if (wanted.type_handler() != field.type_handler() || field.compression_method() || wanted.compression_method()) return false;
  if (!keeps_text(&field, wanted.charset)) return false;
  if (field.real_type() == MYSQL_TYPE_VARCHAR) return wanted.length >= field.field_length;
  if (wanted.charset == field.charset()) return false;
  // Rows contain a TEXT unchanged, and a CHAR without trailing spaces, so their bytes can be read with the new
  // definition.
  if (field.flags & BLOB_FLAG) return true;
  return dynamic_cast<const Field_string *>(&field) && wanted.char_length == field.char_length() &&
         wanted.charset->mbmaxlen == field.charset()->mbmaxlen;
}

}  // namespace fron
