/* SPDX-License-Identifier: GPL-2.0-only

   See columns.h. */

#include "columns.h"

#include <my_decimal.h>
#include <my_sys.h>
#include <sql_type_geom.h>

#include <cmath>
#include <cstring>

#include "engine/server.h"

namespace {

constexpr uint CHARS = 7;
constexpr uint DECIMAL_DIGITS = 12, DECIMAL_SCALE = 4;
constexpr uint BITS = 13;
constexpr uint VARCHAR_LONG = 260;
constexpr uint COLUMNS_MAX = 8;
/** Longest key part of a geometry: longer than a point, shorter than a line. */
constexpr uint GEOMETRY_BYTES = 40;
constexpr uint COLLATION_NUMBER_END = 4096;

/** Letters that are difficult to order: case, accents, ligatures, contractions, controls, spaces, other scripts. */
constexpr my_wc_t LETTERS[] = {'a', 'A', 'b', 'c', 'h', 'd', 'z', 'Z', 's', 'e', 'l', 'n', 'o', ' ', ' ', ' ', '\t', 1, '0', '9',
                               '-', '_', 0xDF, 0xE4, 0xE6, 0xE9, 0xF1, 0xF6, 0x142, 0x17E, 0x301, 0x3B1, 0x416, 0x5D0,
                               0xE01, 0xE40, 0x1112, 0x3042, 0x30FC, 0x4E2D, 0xFFFD, 0x1F600};

const char *ENUM_NAMES[] = {"b", "a", "c d", "", nullptr};
unsigned ENUM_LENGTHS[] = {1, 1, 3, 0, 0};
TYPELIB ENUM_VALUES = [] {
  TYPELIB values = fron::type_library(4, "", ENUM_NAMES);
  values.type_lengths = ENUM_LENGTHS;
  return values;
}();

template <size_t N>
my_wc_t pick(Random &random, const my_wc_t (&of)[N]) {
  return of[random.below(N)];
}

}  // namespace

const std::vector<CHARSET_INFO *> &all_collations() {
  static const std::vector<CHARSET_INFO *> all = [] {
    std::vector<CHARSET_INFO *> found;
    for (uint number = 1; number < COLLATION_NUMBER_END; number++) {
      CHARSET_INFO *cs = get_charset(number, MYF(0));
      // The collation of file names is not for columns.
      if (cs && !(cs->state & MY_CS_HIDDEN) && strncmp(cs->coll_name.str, "filename", 8)) found.push_back(cs);
    }
    return found;
  }();
  return all;
}

Columns::Columns(Random &random) : random_(random) {
  init_alloc_root(PSI_NOT_INSTRUMENTED, &root_, 4096, 0, MYF(0));
  uint count = 3 + uint(random.below(COLUMNS_MAX - 2));
  constexpr uint NULL_BYTES = 1 + COLUMNS_MAX, ROOM = 64 * CHARS;
  share_.null_bytes = NULL_BYTES;
  share_.reclength = share_.rec_buff_length = NULL_BYTES + count * ROOM;
  // The records follow each other in memory, since the server computes distances between records as unsigned numbers.
  records_.assign(size_t(share_.reclength) * 2, 0);
  for (uint i : {0, 1}) table_.record[i] = records_.data() + i * share_.reclength;
  table_.s = &share_;
  uchar *at = table_.record[0] + NULL_BYTES;
  for (uint i = 0; i < count; i++) {
    Type type = Type(random.below(uint64_t(Type::Count)));
    bool can_be_null = random.chance(1, 2);
    uchar *null_byte = can_be_null ? table_.record[0] + i / 8 : nullptr;
    Field *field = make(type, at, null_byte, can_be_null ? uchar(1 << i % 8) : 0);
    field->init(&table_);
    field->field_index = field_index_t(i);
    types_.push_back(type);
    fields_.push_back(field);
    at += ROOM;
  }
  share_.fields = count;
  fields_.push_back(nullptr);
  table_.field = share_.field = fields_.data();
  share_.default_values = table_.record[0];
  table_.key_info = share_.key_info = &key_;
}

Columns::~Columns() { free_root(&root_, MYF(0)); }

Field *Columns::make(Type type, uchar *at, uchar *null_byte, uchar null_bit) {
  constexpr Field::utype NONE = Field::NONE;
  bool is_unsigned = random_.chance(1, 2);
  uint decimals = uint(random_.below(7));
  const auto &collations = all_collations();
  CHARSET_INFO *cs = collations[random_.below(collations.size())];
  DTCollation collation(cs, DERIVATION_IMPLICIT);
  uint bytes = CHARS * cs->mbmaxlen;
  MEM_ROOT *root = &root_;
  switch (type) {
    case Type::Tiny: return new (root) Field_tiny(at, 4, null_byte, null_bit, NONE, &name_, false, is_unsigned);
    case Type::Short: return new (root) Field_short(at, 6, null_byte, null_bit, NONE, &name_, false, is_unsigned);
    case Type::Medium: return new (root) Field_medium(at, 9, null_byte, null_bit, NONE, &name_, false, is_unsigned);
    case Type::Long: return new (root) Field_long(at, 11, null_byte, null_bit, NONE, &name_, false, is_unsigned);
    case Type::Longlong: return new (root) Field_longlong(at, 20, null_byte, null_bit, NONE, &name_, false, is_unsigned);
    case Type::Float: return new (root) Field_float(at, 12, null_byte, null_bit, NONE, &name_, 31, false, false);
    case Type::Double: return new (root) Field_double(at, 22, null_byte, null_bit, NONE, &name_, 31, false, false);
    case Type::Decimal:
      return new (root) Field_new_decimal(at, DECIMAL_DIGITS + 2, null_byte, null_bit, NONE, &name_, DECIMAL_SCALE, false, false);
    case Type::Year: return new (root) Field_year(at, 4, null_byte, null_bit, NONE, &name_);
    case Type::Date: return new (root) Field_newdate(at, null_byte, null_bit, NONE, &name_);
    case Type::Time: return new (root) Field_timef(at, null_byte, null_bit, NONE, &name_, decimals);
    case Type::DateTime: return new (root) Field_datetimef(at, null_byte, null_bit, NONE, &name_, decimals);
    case Type::Timestamp: return new (root) Field_timestampf(at, null_byte, null_bit, NONE, &name_, &share_, decimals);
    case Type::Bit:
      // Bits that do not fill a byte are stored among the NULL bits.
      return new (root) Field_bit(at, BITS, null_byte, null_bit, table_.record[0] + 1 + fields_.size(), 0, NONE, &name_);
    case Type::Char: return new (root) Field_string(at, bytes, null_byte, null_bit, NONE, &name_, collation);
    case Type::Varchar:
      // A column of this length has a length prefix of two bytes.
      if (random_.chance(1, 3)) bytes = VARCHAR_LONG / cs->mbmaxlen * cs->mbmaxlen;
      return new (root) Field_varstring(at, bytes, bytes < 256 ? 1 : 2, null_byte, null_bit, NONE, &name_, &share_, collation);
    case Type::Blob:
      return new (root) Field_blob(at, null_byte, null_bit, NONE, &name_, &share_, 1 + uint(random_.below(4)), collation);
    case Type::Geometry:
      return new (root) Field_geom(at, null_byte, null_bit, NONE, &name_, &share_, 4, &type_handler_geometry, {});
    case Type::Enum: return new (root) Field_enum(at, 3, null_byte, null_bit, NONE, &name_, 1, &ENUM_VALUES, collation);
    default: return new (root) Field_set(at, 9, null_byte, null_bit, NONE, &name_, 1, &ENUM_VALUES, collation);
  }
}

KEY *Columns::make_key(uint parts_max) {
  std::vector<uint> order;
  for (uint i = 0; i < share_.fields; i++) order.insert(order.begin() + long(random_.below(i + 1)), i);
  uint count = std::min<uint>(1 + uint(random_.below(parts_max)), share_.fields);
  parts_.assign(count, KEY_PART_INFO());
  uint length = 0;
  for (uint i = 0; i < count; i++) {
    KEY_PART_INFO &part = parts_[i];
    Field *field = part.field = fields_[order[i]];
    Type type = types_[order[i]];
    part.fieldnr = uint16(order[i] + 1);
    part.offset = field->offset(table_.record[0]);
    part.null_bit = field->real_maybe_null() ? field->null_bit : 0;
    part.null_offset = field->real_maybe_null() ? field->null_offset() : 0;
    part.length = uint16(is_blob(type) ? CHARS * field->charset()->mbmaxlen : field->key_length());
    bool is_text = type == Type::Char || type == Type::Varchar || type == Type::Blob;
    if (is_text && random_.chance(1, 3)) part.length = uint16(part.length / CHARS * (1 + random_.below(CHARS - 1)));
    if (type == Type::Geometry) part.length = uint16(1 + random_.below(GEOMETRY_BYTES));
    if (is_blob(type) || part.length != field->key_length()) part.key_part_flag |= HA_PART_KEY_SEG;
    if (is_blob(type)) part.key_part_flag |= HA_BLOB_PART;
    if (type == Type::Varchar) part.key_part_flag |= HA_VAR_LENGTH_PART;
    if (random_.chance(1, 3)) part.key_part_flag |= HA_REVERSE_SORT;
    part.type = field->key_type();
    bool has_length = part.key_part_flag & (HA_BLOB_PART | HA_VAR_LENGTH_PART);
    part.store_length = uint16(part.length + (part.null_bit ? HA_KEY_NULL_LENGTH : 0) + (has_length ? HA_KEY_BLOB_LENGTH : 0));
    length += part.store_length;
  }
  key_.key_part = parts_.data();
  key_.user_defined_key_parts = key_.usable_key_parts = key_.ext_key_parts = count;
  key_.key_length = length;
  key_.table = &table_;
  share_.keys = table_.s->keys = 1;
  return &key_;
}

void Columns::fill(uchar *record) {
  memset(record, 0, share_.null_bytes);
  for (uint i = 0; i < share_.fields; i++) {
    Field *field = fields_[i];
    uchar *at = record + field->offset(table_.record[0]);
    if (field->real_maybe_null() && random_.chance(1, 6)) {
      field->set_null(record - table_.record[0]);
      memset(at, 0, field->pack_length());
    } else {
      fill_field(i, at, record);
    }
  }
}

/** Stores one of a few values, so that rows are often equal, or a limit of the type. */
void Columns::fill_field(uint i, uchar *at, uchar *record) {
  Field *field = fields_[i];
  CHARSET_INFO *cs = field->charset();
  switch (types_[i]) {
    case Type::Float: {
      float number = float((int(random_.below(9)) - 4) * std::pow(10.0, double(random_.below(9)) - 4));
      float4store(at, number);
      return;
    }
    case Type::Double: {
      double number = (int(random_.below(9)) - 4) * std::pow(10.0, double(random_.below(300)) - 150);
      float8store(at, number);
      return;
    }
    case Type::Decimal: {
      std::string text = std::to_string(int(random_.below(2001)) - 1000) + "." + std::to_string(random_.below(100));
      my_decimal number;
      char *end = text.data() + text.size();
      string2decimal(text.data(), &number, &end);
      decimal2bin(&number, at, DECIMAL_DIGITS, DECIMAL_SCALE);
      return;
    }
    case Type::Bit: {
      uint value = uint(random_.below(1 << BITS));
      my_ptrdiff_t offset = record - table_.record[0];
      field->move_field_offset(offset);
      uchar image[2] = {uchar(value >> 8), uchar(value)};
      field->set_key_image(image, sizeof image);
      field->move_field_offset(-offset);
      return;
    }
    case Type::Char: {
      std::string value = text(cs, CHARS, true);
      cs->fill(reinterpret_cast<char *>(at), field->field_length, ' ');
      memcpy(at, value.data(), value.size());
      return;
    }
    case Type::Varchar: {
      std::string value = text(cs, CHARS, false);
      uint length_bytes = static_cast<Field_varstring *>(field)->length_bytes;
      if (length_bytes == 1)
        *at = uchar(value.size());
      else
        int2store(at, uint16(value.size()));
      memcpy(at + length_bytes, value.data(), value.size());
      return;
    }
    case Type::Blob:
    case Type::Geometry: {
      blobs_.push_back(types_[i] == Type::Geometry ? geometry() : text(cs, CHARS * 2, false));
      auto blob = static_cast<Field_blob *>(field);
      my_ptrdiff_t offset = record - table_.record[0];
      blob->move_field_offset(offset);
      blob->set_ptr(uint32(blobs_.back().size()), reinterpret_cast<uchar *>(blobs_.back().data()));
      blob->move_field_offset(-offset);
      return;
    }
    case Type::Enum:
    case Type::Set: *at = uchar(random_.below(5)); return;
    default: {
      uint bytes = field->pack_length();
      for (uint byte = 0; byte < bytes; byte++) at[byte] = random_.chance(1, 2) ? uchar(random_.below(2) * 0xFF) : uchar(random_.next());
    }
  }
}

/** Whether texts with this letter compare in a CHAR as they do in other types. */
bool is_comparable(my_wc_t letter, bool is_char) {
  // CHAR(n) compares n characters. A letter without weight takes the place of a space there, which happens in no other
  // type and in no comparison of SQL.
  return !is_char || (letter >= ' ' && letter != 0x301);
}

std::string Columns::text(CHARSET_INFO *cs, uint chars, bool is_char) {
  std::string made;
  bool is_binary = cs->number == my_charset_bin.number;
  for (uint count = uint(random_.below(chars + 1)); count > 0; count--) {
    uchar bytes[16];
    my_wc_t letter = pick(random_, LETTERS);
    if (is_binary) {
      made.push_back(char(random_.chance(1, 2) ? letter : letter % 3 - 1));
      continue;
    }
    int length = is_comparable(letter, is_char) ? cs->cset->wc_mb(cs, letter, bytes, bytes + sizeof bytes) : 0;
    // Replace a letter that the character set does not have.
    if (length <= 0) length = cs->cset->wc_mb(cs, 'a' + letter % 3, bytes, bytes + sizeof bytes);
    made.append(reinterpret_cast<char *>(bytes), size_t(length));
  }
  return made;
}

/** A point, or a line of two or three points, as the server stores them; few, so that rows are often equal. */
std::string Columns::geometry() {
  constexpr uint32 POINT = 1, LINE = 2;
  constexpr uchar LITTLE_ENDIAN_BYTES = 1;
  uchar bytes[8];
  std::string made;
  auto append_number = [&](uint32 number) {
    int4store(bytes, number);
    made.append(reinterpret_cast<char *>(bytes), 4);
  };
  append_number(random_.chance(1, 4) ? 4326 : 0);
  made.push_back(LITTLE_ENDIAN_BYTES);
  uint32 points = uint32(1 + random_.below(3));
  append_number(points == 1 ? POINT : LINE);
  if (points > 1) append_number(points);
  for (uint32 i = 0; i < points * 2; i++) {
    double at = double(random_.below(5)) - 2;
    float8store(bytes, at);
    made.append(reinterpret_cast<char *>(bytes), 8);
  }
  return made;
}

std::string Columns::describe(uint i) const {
  static const char *const NAMES[] = {"TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "YEAR",
                                      "DATE", "TIME", "DATETIME", "TIMESTAMP", "BIT", "CHAR", "VARCHAR", "BLOB", "GEOMETRY",
                                      "ENUM", "SET"};
  const Field *field = fields_[i];
  std::string text = NAMES[size_t(types_[i])];
  if (field->flags & UNSIGNED_FLAG) text += " UNSIGNED";
  if (field->has_charset()) text += std::string(" ") + field->charset()->coll_name.str;
  if (field->real_maybe_null()) text += " NULL";
  return text;
}
