/* SPDX-License-Identifier: GPL-2.0-only

   See codec/row.h. */

#include "codec/row.h"

#include <algorithm>
#include <cstring>

#include <sql_class.h>
#include <field.h>
#include <key.h>
#include <table.h>

namespace fron {
namespace {

/** Upper limit of the bytes of a packed field beyond its data, for lengths and bits. */
constexpr size_t FIELD_SLACK = 16;

size_t packed_bytes_max(const Field *field) {
  if (!(field->flags & BLOB_FLAG)) return field->pack_length() + FIELD_SLACK;
  auto blob = static_cast<const Field_blob *>(field);
  return size_t(blob->get_length()) + FIELD_SLACK;
}

void append_varint(uint value, std::string *to) {
  for (; value >= 0x80; value >>= 7) to->push_back(char(value | 0x80));
  to->push_back(char(value));
}

bool read_varint(const uchar **at, const uchar *end, uint *value) {
  *value = 0;
  for (uint shift = 0; *at < end && shift < 28; shift += 7) {
    uchar byte = *(*at)++;
    *value |= uint(byte & 0x7F) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

/** Returns the end of a slot's bytes in a row with this many slots; null if the bytes are damaged. */
const uchar *pass(const Slot &slot, size_t slots, const uchar *at, const uchar *end) {
  size_t prefix = slots <= slot.short_until ? 1 : slot.prefix;
  if (size_t(end - at) < prefix) return nullptr;
  size_t bytes = prefix ? 0 : slot.bytes;
  for (size_t i = 0; i < prefix; i++) bytes |= size_t(at[i]) << 8 * i;
  at += prefix;
  return size_t(end - at) < bytes ? nullptr : at + bytes;
}

/** Number of a slot's field. */
class FieldOf {
 public:
  explicit FieldOf(const Layout &layout) : layout_(layout) {}
  uint operator()(size_t i) const { return layout_.empty() ? uint(i) : layout_[i].field; }

 private:
  const Layout &layout_;
};

size_t slots_of(const TABLE *table, const Layout &layout) {
  return layout.empty() ? table->s->fields : layout.size();
}

}  // namespace

bool is_layout_of(const Layout &layout, size_t fields) {
  std::vector<bool> used(fields);
  size_t found = 0;
  for (const Slot &slot : layout) {
    if (slot.field == Slot::GONE) continue;
    if (slot.field >= fields || used[slot.field]) return false;
    used[slot.field] = true;
    found++;
  }
  return layout.empty() || found == fields;
}

void describe_bytes(const Field *field, Slot *slot) {
  slot->prefix = slot->bytes = 0;
  if (!field->stored_in_db()) return;
  if (field->flags & BLOB_FLAG)
    slot->prefix = static_cast<const Field_blob *>(field)->pack_length_no_ptr();
  // INET6, INET4 and UUID are packed as CHAR is.
  else if (field->real_type() == MYSQL_TYPE_VARCHAR || field->real_type() == MYSQL_TYPE_STRING)
    slot->prefix = field->field_length > SHORT_VARCHAR ? 2 : 1;
  else
    slot->bytes = field->pack_length();
}

AtRecord::AtRecord(Field *field, my_ptrdiff_t offset) : field_(field), offset_(offset) {
  if (offset_) field_->move_field_offset(offset_);
}

AtRecord::~AtRecord() {
  if (offset_) field_->move_field_offset(-offset_);
}

void copy_key(TABLE *table, uint index, const uchar *record, uint length, uchar *image) {
  copy_columns(table, &table->key_info[index], record, length, image);
}

void copy_columns(TABLE *table, KEY *key, const uchar *record, uint length, uchar *image) {
  key_copy(image, record, key, length, true);
  my_ptrdiff_t offset = record - table->record[0];
  if (offset == 0) return;
  for (uint i = 0; i < key->user_defined_key_parts; i++) {
    const KEY_PART_INFO &part = key->key_part[i];
    bool is_null = part.null_bit && *image;
    if (part.field->type() == MYSQL_TYPE_BIT && !is_null) {
      AtRecord moved(part.field, offset);
      part.field->get_key_image(image + (part.null_bit ? 1 : 0), part.length, part.field->ptr, Field::itRAW);
    }
    image += part.store_length;
  }
}

/** Appends a VARCHAR whose length is escaped; see pack_fields(). */
static void pack_escaped(const Field *field, std::string *to) {
  size_t length = uint2korr(field->ptr);
  if (length <= ESCAPED_VARCHAR) {
    to->push_back(char(length));
  } else {
    to->push_back(char(SHORT_VARCHAR));
    to->append(reinterpret_cast<const char *>(field->ptr), 2);
  }
  to->append(reinterpret_cast<const char *>(field->ptr) + 2, length);
}

static const uchar *unpack_escaped(const Field *field, const uchar *at, const uchar *end) {
  if (at == end) return nullptr;
  size_t length = *at++;
  if (length > ESCAPED_VARCHAR) {
    if (end - at < 2) return nullptr;
    length = uint2korr(at);
    at += 2;
  }
  if (size_t(end - at) < length || length > field->field_length) return nullptr;
  int2store(field->ptr, length);
  memcpy(field->ptr + 2, at, length);
  return at + length;
}

/** Packs fields and their NULL bits. Rows lack virtual fields; index entries have them, for index-only reads. */
template <typename NumberOf>
static void pack(const TABLE *table, size_t count, NumberOf number_of, bool is_row, const Wanted &wanted,
          const std::vector<bool> &widened, const uchar *record, std::string *to) {
  my_ptrdiff_t offset = record - table->record[0];
  size_t bits = to->size();
  to->append((count + 7) / 8, 0);
  for (size_t i = 0; i < count; i++) {
    uint number = number_of(i);
    if (number == Slot::GONE || !wanted.has(number)) {
      (*to)[bits + i / 8] |= char(1 << i % 8);
      continue;
    }
    Field *field = table->field[number];
    if (is_row && !field->stored_in_db()) continue;
    AtRecord moved(field, offset);
    if (field->is_real_null()) {
      (*to)[bits + i / 8] |= char(1 << i % 8);
      continue;
    }
    if (!widened.empty() && widened[i]) {
      pack_escaped(field, to);
      continue;
    }
    size_t at = to->size();
    to->resize(at + packed_bytes_max(field));
    uchar *begin = reinterpret_cast<uchar *>(to->data());
    to->resize(size_t(field->pack(begin + at, field->ptr, UINT_MAX32) - begin));
  }
}

/** Unpacks fields and their NULL bits. Returns the end of the bytes, or null if the bytes are damaged; does not read
    the last slots if they are not wanted. `layout` describes slots; null for a list of fields. */
template <typename NumberOf>
static const uchar *unpack(const TABLE *table, size_t count, NumberOf number_of, const Layout *layout, const Wanted &wanted,
                    bool passes_odd_null, const std::vector<bool> &widened, const uchar *at, const uchar *end,
                    uchar *record) {
  my_ptrdiff_t offset = record - table->record[0];
  if (size_t(end - at) < (count + 7) / 8) return nullptr;
  const uchar *bits = at;
  at += (count + 7) / 8;
  size_t read = std::min(count, wanted.slots);
  for (size_t i = 0; i < read && at; i++) {
    uint number = number_of(i);
    bool is_null = bits[i / 8] >> i % 8 & 1;
    if (number == Slot::GONE) {
      if (!is_null) at = pass((*layout)[i], count, at, end);
      continue;
    }
    if (!wanted.has(number)) {
      if (!is_null) at = pass(wanted.others[number], count, at, end);
      continue;
    }
    Field *field = table->field[number];
    if (layout && !field->stored_in_db()) continue;
    AtRecord moved(field, offset);
    if (is_null) {
      if (!field->real_maybe_null()) {
        if (!passes_odd_null) return nullptr;
        continue;
      }
      field->set_null();
      field->reset();
      continue;
    }
    field->set_notnull();
    if (!widened.empty() && widened[i]) {
      at = unpack_escaped(field, at, end);
      continue;
    }
    // A VARCHAR of at most SHORT_VARCHAR bytes has one length byte; 0 means the field's own length.
    bool is_short = layout && !layout->empty() && count <= (*layout)[i].short_until;
    at = field->unpack(field->ptr, at, end, is_short ? SHORT_VARCHAR : 0);
  }
  return at && read < count ? end : at;
}

void pass_others(const TABLE *table, const Layout &layout, Wanted *wanted) {
  wanted->others.clear();
  for (uint i = 0; i < table->s->fields; i++) {
    Slot bytes{i};
    describe_bytes(table->field[i], &bytes);
    wanted->others.push_back(bytes);
  }
  for (const Slot &slot : layout)
    if (slot.field != Slot::GONE) wanted->others[slot.field].short_until = slot.short_until;
  FieldOf number_of(layout);
  auto is_other = [&](uint number) { return number == Slot::GONE || !wanted->has(number); };
  wanted->slots = slots_of(table, layout);
  while (wanted->slots > 0 && is_other(number_of(wanted->slots - 1))) wanted->slots--;
}

void pack_row(const TABLE *table, const Layout &layout, const uchar *record, std::string *to, const Wanted &wanted) {
  size_t slots = slots_of(table, layout);
  append_varint(uint(slots), to);
  pack(table, slots, FieldOf(layout), true, wanted, {}, record, to);
}

bool is_null_in(const RowForm &form, std::string_view row, size_t slot) {
  auto at = reinterpret_cast<const uchar *>(row.data());
  const uchar *end = at + row.size();
  uint slots;
  if (!read_varint(&at, end, &slots)) return false;
  if (slot >= slots) return !form.defaults.empty() && row.data() != form.defaults.data() && is_null_in(form, form.defaults, slot);
  return size_t(end - at) > slot / 8 && at[slot / 8] >> slot % 8 & 1;
}

/** Unpacks the fields that a row has, and sets `slots` to their number. */
static bool unpack_some(const TABLE *table, const Layout &layout, std::string_view row, uchar *record,
                        const Wanted &wanted, bool passes_odd_null, uint *slots) {
  auto at = reinterpret_cast<const uchar *>(row.data());
  const uchar *end = at + row.size();
  if (!read_varint(&at, end, slots) || *slots > slots_of(table, layout)) return false;
  return unpack(table, *slots, FieldOf(layout), &layout, wanted, passes_odd_null, {}, at, end, record) == end;
}

bool unpack_row(const TABLE *table, const RowForm &form, std::string_view row, uchar *record, const Wanted &wanted) {
  auto at = reinterpret_cast<const uchar *>(row.data());
  uint slots;
  size_t all = slots_of(table, form.layout);
  if (!read_varint(&at, at + row.size(), &slots)) return false;
  // A column that became NOT NULL may be NULL in the defaults. Then every row has a value of its own for the column, or
  // an ALTER is still checking the rows.
  if (slots < all)
    if (!unpack_some(table, form.layout, form.defaults, record, wanted, true, &slots) || slots < all) return false;
  return unpack_some(table, form.layout, row, record, wanted, wanted.passes_odd_null, &slots);
}

bool pack_defaults(TABLE *table, const std::vector<Field *> &added, RowForm *form) {
  uint slots;
  memcpy(table->record[0], table->s->default_values, table->s->reclength);
  if (!form->defaults.empty() && !unpack_some(table, form->layout, form->defaults, table->record[0], {}, true, &slots))
    return false;
  // Evaluate the default expression now. has_one_default() has checked that its value fits the field.
  for (Field *field : added)
    if (field->default_value && field->stored_in_db()) field->set_default();
  // Blobs of the record point into the old defaults, so replace the defaults only after the row is packed.
  std::string made;
  pack_row(table, form->layout, table->record[0], &made);
  form->defaults.swap(made);
  return true;
}

bool is_same_row(const TABLE *table, const uchar *before, const uchar *after) {
  // cmp_binary_offset() takes an unsigned distance, from a field of record[0] to the other record.
  if (after != table->record[0] || before < after) return false;
  my_ptrdiff_t offset = before - after;
  for (Field **at = table->field; *at; at++) {
    Field *field = *at;
    if (!field->stored_in_db()) continue;
    if (field->is_real_null() != field->is_real_null(offset)) return false;
    if (!field->is_real_null() && field->cmp_binary_offset(uint(offset))) return false;
  }
  return true;
}

void pack_fields(const TABLE *table, const Fields &fields, const std::vector<bool> &widened, const uchar *record,
                 std::string *to) {
  pack(table, fields.size(), [&](size_t i) { return fields[i]; }, false, {}, widened, record, to);
}

bool unpack_fields(const TABLE *table, const Fields &fields, const std::vector<bool> &widened, std::string_view bytes,
                   uchar *record) {
  auto at = reinterpret_cast<const uchar *>(bytes.data());
  const uchar *end = at + bytes.size();
  return unpack(table, fields.size(), [&](size_t i) { return fields[i]; }, nullptr, {}, false, widened, at, end, record) == end;
}

}  // namespace fron
