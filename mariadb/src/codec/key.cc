/* SPDX-License-Identifier: GPL-2.0-only

   See codec/key.h. */

#include "codec/key.h"

#include <algorithm>
#include <cstring>

#include <sql_class.h>
#include <field.h>
#include <structs.h>

namespace fron {
namespace {

/** The number of the collation "binary". */
constexpr uint BINARY_CHARSET = 63;

/** The mark after a group of weights: how the remaining weights compare to spaces. */
constexpr char BELOW_SPACES = 1, NOTHING = 2, ABOVE_SPACES = 3;

/** Returns whether strnxfrm() orders texts differently from the server's comparison. The server compares letters of
    big5 by their codes, but strnxfrm() weighs them by their strokes, and all letters without strokes, such as Greek
    and Cyrillic ones, have the same weight. */
bool is_weighed_otherwise(CHARSET_INFO *cs) {
  return !(cs->state & MY_CS_BINSORT) && strcmp(cs->cs_name.str, "big5") == 0;
}

/** Appends the weights by which the server compares texts of big5. The first byte of a two-byte code is at least
    0xA1, greater than every letter of one byte, so bytes compare as the server's weights do. */
void append_big5_weights(CHARSET_INFO *cs, std::string_view text, std::string *to) {
  const char *end = text.data() + text.size();
  for (const char *at = text.data(); at < end;) {
    if (my_ismbchar(cs, at, end)) {
      to->append(at, 2);
      at += 2;
    } else {
      to->push_back(char(cs->sort_order[uchar(*at++)]));
    }
  }
}

/** Appends all weights of a text at the levels in `flags`; at all levels if `flags` is 0. */
void append_weights(CHARSET_INFO *cs, std::string_view text, uint flags, std::string *to) {
  if (is_weighed_otherwise(cs)) {
    append_big5_weights(cs, text, to);
    return;
  }
  constexpr uint ALL_WEIGHTS = UINT_MAX32;
  constexpr size_t WEIGHT_BYTES_MAX = 4;
  size_t at = to->size();
  // A letter can have more weights than the server's own estimate allows for. If the buffer is full, try a larger one.
  for (size_t room = cs->strnxfrmlen(text.size()) + WEIGHT_BYTES_MAX;; room *= 2) {
    to->resize(at + room);
    size_t n = cs->strnxfrm(reinterpret_cast<uchar *>(to->data()) + at, room, ALL_WEIGHTS,
                            reinterpret_cast<const uchar *>(text.data()), text.size(), flags);
    to->resize(at + n);
    if (n + WEIGHT_BYTES_MAX <= room) return;
  }
}

/** Returns the weights of one space: up to 4 bytes, none if spaces have no weight. */
std::string space_weights(CHARSET_INFO *cs, uint flags = 0) {
  // Holds a space in the encoding of the character set.
  uchar space[8];
  int bytes = cs->cset->wc_mb(cs, ' ', space, space + sizeof space);
  std::string weights;
  append_weights(cs, {reinterpret_cast<char *>(space), size_t(bytes > 0 ? bytes : 1)}, flags, &weights);
  return weights;
}

/** Appends bytes with each 0 followed by 0xFF, and 0 0 at the end; for values that are compared byte by byte. */
void append_escaped(std::string_view bytes, std::string *to) {
  for (char byte : bytes) {
    to->push_back(byte);
    if (byte == 0) to->push_back(char(0xFF));
  }
  to->append(2, 0);
}

/** Returns how `rest` compares to an infinite sequence of spaces: -1, 0 or 1. */
int compare_to_spaces(std::string_view rest, std::string_view space) {
  for (size_t i = 0; i < rest.size(); i++) {
    uchar a = uchar(rest[i]), b = uchar(space[i % space.size()]);
    if (a != b) return a < b ? -1 : 1;
  }
  return 0;
}

size_t group_of(size_t space) { return space ? std::max(space, 8 / space * space) : 0; }

/** Appends weights so that they compare as if an infinite sequence of spaces followed. */
void append_padded(std::string_view weights, std::string_view space, std::string *to) {
  size_t group = group_of(space.size());
  for (size_t at = 0;; at += group) {
    std::string_view head = weights.substr(std::min(at, weights.size()), group);
    std::string_view rest = weights.substr(std::min(at + group, weights.size()));
    to->append(head);
    for (size_t i = head.size(); i < group; i++) to->push_back(space[i % space.size()]);
    int order = compare_to_spaces(rest, space);
    if (order == 0) {
      to->push_back(NOTHING);
      return;
    }
    to->push_back(order < 0 ? BELOW_SPACES : ABOVE_SPACES);
  }
}

/** Appends the weights of one level. With `pads` they compare as if spaces followed. */
void append_level(CHARSET_INFO *cs, std::string_view text, uint flags, bool pads, std::string *to) {
  thread_local std::string weights;
  weights.clear();
  append_weights(cs, text, flags, &weights);
  std::string space = pads ? space_weights(cs, flags) : std::string();
  // If spaces have no weight, there is no padding.
  if (space.empty())
    append_escaped(weights, to);
  else
    append_padded(weights, space, to);
}

/** Appends the result of strnxfrm() with space for `chars` weights per level: at most one weight per character, none
    for some characters. */
void append_full_length(CHARSET_INFO *cs, std::string_view text, uint chars, std::string *to) {
  thread_local std::string weights;
  weights.resize(cs->strnxfrmlen(std::max<size_t>(text.size(), size_t(chars) * cs->mbmaxlen)));
  size_t n = cs->strnxfrm(reinterpret_cast<uchar *>(weights.data()), weights.size(), chars,
                          reinterpret_cast<const uchar *>(text.data()), text.size(), MY_STRXFRM_PAD_WITH_SPACE);
  append_escaped({weights.data(), n}, to);
}

}  // namespace

void append_string(CHARSET_INFO *cs, std::string_view text, uint chars_max, bool is_char, std::string *to) {
  if (cs->number == BINARY_CHARSET) {
    append_escaped(text, to);
    return;
  }
  bool pads = !(cs->state & MY_CS_NOPAD);
  if (pads) text = text.substr(0, cs->lengthsp(text.data(), text.size()));
  if (cs->levels_for_order <= 1) {
    append_level(cs, text, 0, pads, to);
  } else if (cs->uca) {
    // The server compares texts level by level, so the weights of each level get an end of their own; the collation says
    // which levels it has. PAD SPACE collations pad every level. NO PAD collations do not pad the first level, and no
    // level of a CHAR. For other types they pad the later levels: there a letter with an accent has one more weight than
    // the letter without it, and without padding the two would differ even if the collation ignores accents.
    for (uint level = 0; cs->levels_for_order >> level; level++)
      if (cs->levels_for_order >> level & 1) append_level(cs, text, MY_STRXFRM_LEVEL1 << level, pads || (level > 0 && !is_char), to);
  } else {
    append_full_length(cs, text, chars_max, to);
  }
}

bool is_whole_field(const KEY_PART_INFO &part) {
  return part.length == part.field->key_length() && !(part.key_part_flag & HA_PART_KEY_SEG);
}

size_t group_bytes(CHARSET_INFO *cs) { return group_of(space_weights(cs).size()); }

KeyCodec::Part KeyCodec::part_of(const KEY_PART_INFO &info) {
  bool has_length = info.key_part_flag & (HA_BLOB_PART | HA_VAR_LENGTH_PART);
  Kind kind = Kind::Fixed;
  switch (info.field->real_type()) {
    case MYSQL_TYPE_BIT:
      // The key image is big-endian, and some bits of the field are stored elsewhere in the record than at the field's
      // pointer.
      kind = Kind::Image;
      break;
    case MYSQL_TYPE_STRING:
      // UUIDs and network addresses have the type of strings, but their own sort_string().
      kind = info.field->type_handler()->is_scalar_type() && dynamic_cast<Field_string *>(info.field)
                 ? Kind::Text
                 : Kind::Fixed;
      break;
    default:
      if (has_length) kind = Kind::Text;
  }
  Part part;
  part.kind = kind;
  part.length = info.length;
  part.has_length = has_length;
  part.can_be_null = info.null_bit != 0;
  part.descends = (info.key_part_flag & HA_REVERSE_SORT) != 0;
  return part;
}

KeyCodec::KeyCodec(const KEY *key) {
  bool end_is_known = true;
  for (uint i = 0; i < key->user_defined_key_parts; i++) {
    parts_.push_back(part_of(key->key_part[i]));
    Part &part = parts_.back();
    set_inverse(key, i, &part);
    if (end_is_known && part.inverse != Inverse::None) decodable_.push_back(key->key_part[i].fieldnr - 1);
    end_is_known = end_is_known && part.end != End::Unknown;
  }
  std::sort(decodable_.begin(), decodable_.end());
}

void KeyCodec::extend(const KEY *key, const KEY *primary) {
  // An entry of a unique index has the primary key in its value, and the server does not extend the key of such an
  // index.
  if (key->flags & HA_NOSAME) return;
  for (uint i = 0; i < primary->user_defined_key_parts; i++) {
    const KEY_PART_INFO &wanted = primary->key_part[i];
    uint number = 0, offset = 0;
    for (; number < key->ext_key_parts; offset += key->key_part[number++].store_length) {
      const KEY_PART_INFO &has = key->key_part[number];
      if (has.fieldnr == wanted.fieldnr && has.length == wanted.length) break;
    }
    if (number == key->ext_key_parts) return;
    behind_.push_back({part_of(wanted), number, offset});
  }
}

void KeyCodec::encode(const KEY *key, const uchar *image, uint length, std::string *to) const {
  uint at = 0;
  for (size_t i = 0; i < parts_.size() && at < length; i++) {
    encode_nullable(parts_[i], key->key_part[i].field, image + at, to);
    at += key->key_part[i].store_length;
  }
  if (at >= length) return;
  for (const Behind &behind : behind_) {
    if (behind.offset >= length) return;
    encode_nullable(behind.part, key->key_part[behind.number].field, image + behind.offset, to);
  }
}

void KeyCodec::encode_nullable(const Part &part, Field *field, const uchar *image, std::string *to) const {
  size_t begin = to->size();
  bool is_null = part.can_be_null && *image != 0;
  if (part.can_be_null) {
    to->push_back(is_null ? 0 : 1);
    image++;
  }
  if (!is_null) encode_part(part, field, image, to);
  if (part.descends)
    for (size_t at = begin; at < to->size(); at++) (*to)[at] = char(~(*to)[at]);
}

void KeyCodec::encode_part(const Part &part, Field *field, const uchar *data,
                           std::string *to) const {
  auto chars = reinterpret_cast<const char *>(data);
  switch (part.kind) {
    case Kind::Image:
      to->append(chars, part.length);
      return;
    case Kind::Fixed: {
      size_t at = to->size(), bytes = field->sort_length();
      to->resize(at + bytes);
      uchar *row = field->ptr;
      field->ptr = const_cast<uchar *>(data);
      field->sort_string(reinterpret_cast<uchar *>(to->data()) + at, uint(bytes));
      field->ptr = row;
      return;
    }
    case Kind::Text:
      append_text(part, field->charset(), text_of(part, field->charset(), data), to);
      return;
  }
}

std::string_view KeyCodec::text_of(const Part &part, CHARSET_INFO *cs, const uchar *data) {
  auto chars = reinterpret_cast<const char *>(data);
  if (part.has_length) return {chars + HA_KEY_BLOB_LENGTH, uint2korr(data)};
  std::string_view text(chars, part.length);
  // CHAR(n) has n characters, but its image has space for n of the longest ones, filled with spaces. Where trailing
  // spaces count, the spaces beyond n characters must be removed.
  if (cs->state & MY_CS_NOPAD) text = text.substr(0, cs->charpos(chars, chars + text.size(), part.length / cs->mbmaxlen));
  return text;
}

void KeyCodec::append_text(const Part &part, CHARSET_INFO *cs, std::string_view text, std::string *to) {
  if (!part.has_length && cs->number == BINARY_CHARSET)
    to->append(text);  // BINARY(n): all values have the same length, and zeros count.
  else
    append_string(cs, text, part.length / cs->mbmaxlen, !part.has_length, to);
}

// --- Keys of another index ---

PartShape shape_of(const KEY_PART_INFO &info) {
  KeyCodec::Part part = KeyCodec::part_of(info);
  PartShape shape;
  shape.kind = uint8_t(part.kind);
  if (part.kind == KeyCodec::Kind::Text)
    shape.charset = info.field->charset()->number;
  else
    shape.type = std::string(info.field->type_handler()->name().ptr()) + "," + std::to_string(info.field->decimals());
  shape.length = part.length;
  shape.has_length = part.has_length;
  shape.can_be_null = part.can_be_null;
  shape.descends = part.descends;
  return shape;
}

bool PartShape::matches(const PartShape &other) const {
  // A text may be longer in one of the tables, or a CHAR there and a VARCHAR here.
  return kind == other.kind && charset == other.charset && type == other.type && (charset || length == other.length);
}

/** Fills a text with spaces up to a CHAR of `chars` characters, for a collation in which trailing spaces count: the
    value of a CHAR has no trailing spaces, but its key has. Returns false if no such CHAR has the value. */
static bool fill_char(CHARSET_INFO *cs, std::string_view text, size_t chars, std::string *filled) {
  size_t used = cs->numchars(text.data(), text.data() + text.size());
  if (used > chars || cs->lengthsp(text.data(), text.size()) != text.size()) return false;
  *filled = text;
  filled->resize(text.size() + (chars - used) * cs->mbminlen);
  cs->fill(filled->data() + text.size(), filled->size() - text.size(), ' ');
  return true;
}

bool KeyCodec::encode_as(const KEY *key, const uchar *image, const std::vector<PartShape> &shapes,
                         std::string *to) const {
  for (size_t i = 0; i < shapes.size(); i++) {
    const Part &own = parts_[i];
    const PartShape &shape = shapes[i];
    Field *field = key->key_part[i].field;
    const uchar *data = image + (own.can_be_null ? 1 : 0);
    if (own.can_be_null && *image) return false;
    image += key->key_part[i].store_length;
    size_t begin = to->size();
    if (shape.can_be_null) to->push_back(1);
    if (own.kind == Kind::Text) {
      CHARSET_INFO *cs = field->charset();
      std::string_view text = text_of(own, cs, data);
      Part other = own;
      other.length = shape.length;
      other.has_length = shape.has_length;
      bool is_fixed = !other.has_length && cs->number == BINARY_CHARSET;
      if (is_fixed && text.size() != other.length) return false;
      std::string filled;
      if (cs->number != BINARY_CHARSET && cs->state & MY_CS_NOPAD) {
        if (!own.has_length) text = text.substr(0, cs->lengthsp(text.data(), text.size()));
        if (!other.has_length) {
          if (!fill_char(cs, text, other.length / cs->mbmaxlen, &filled)) return false;
          text = filled;
        }
      }
      append_text(other, cs, text, to);
    } else {
      encode_part(own, field, data, to);
    }
    if (shape.descends)
      for (size_t at = begin; at < to->size(); at++) (*to)[at] = char(~(*to)[at]);
  }
  return true;
}

bool KeyCodec::has_null(const KEY *key, const uchar *image, uint length) {
  const uchar *end = image + length;
  for (uint i = 0; i < key->user_defined_key_parts && image < end; i++) {
    const KEY_PART_INFO &info = key->key_part[i];
    if (info.null_bit && *image) return true;
    image += info.store_length;
  }
  return false;
}

}  // namespace fron
