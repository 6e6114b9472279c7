/* SPDX-License-Identifier: GPL-2.0-only

   Decodes keys (codec/key.h) into fields. Numbers, dates, decimals, bits and bytes are decoded exactly. Weights of a
   collation cannot be decoded, nor can FLOAT and DOUBLE, since 0 and -0 have the same encoding. Nothing is decoded
   after a part whose end cannot be found. */

#include "codec/key.h"

#include <algorithm>
#include <cstring>

#include <sql_class.h>
#include <field.h>
#include <structs.h>

#include "codec/row.h"

namespace fron {
namespace {

constexpr uint BINARY_CHARSET = 63;
/** The mark after the last group of weights. */
constexpr char NOTHING = 2;

bool is_unsigned(const Field *field) { return field->flags & UNSIGNED_FLAG; }

}  // namespace

void KeyCodec::set_inverse(const KEY *key, uint at, Part *part) {
  const KEY_PART_INFO &info = key->key_part[at];
  const Field *field = info.field;
  CHARSET_INFO *cs = field->charset();
  if (part->kind != Kind::Text) {
    part->end = End::Length;
    part->step = part->kind == Kind::Image ? part->length : field->sort_length();
  } else if (!part->has_length && cs->number == BINARY_CHARSET) {
    part->end = End::Length;
    part->step = part->length;
  } else if (cs->number == BINARY_CHARSET) {
    part->end = End::Escape;
  } else if (cs->levels_for_order <= 1) {
    size_t group = cs->state & MY_CS_NOPAD ? 0 : group_bytes(cs);
    part->end = group ? End::Groups : End::Escape;
    part->step = group + 1;
  }
  if (!is_whole_field(info)) return;
  switch (field->real_type()) {
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_LONGLONG:
      part->inverse = is_unsigned(field) ? Inverse::Reversed : Inverse::ReversedSigned;
      break;
    case MYSQL_TYPE_YEAR:
    case MYSQL_TYPE_NEWDATE:
    case MYSQL_TYPE_ENUM:
    case MYSQL_TYPE_SET: part->inverse = Inverse::Reversed; break;
    case MYSQL_TYPE_NEWDECIMAL:
    case MYSQL_TYPE_TIME2:
    case MYSQL_TYPE_DATETIME2:
    case MYSQL_TYPE_TIMESTAMP2: part->inverse = Inverse::Copied; break;
    case MYSQL_TYPE_BIT: part->inverse = Inverse::KeyImage; break;
    case MYSQL_TYPE_STRING:
      if (part->kind == Kind::Text && part->end == End::Length) part->inverse = Inverse::Copied;
      break;
    case MYSQL_TYPE_VARCHAR:
      if (cs->number == BINARY_CHARSET) part->inverse = Inverse::Unescaped;
      break;
    default: break;
  }
}

size_t KeyCodec::prefix_bytes() const {
  // Most queries have an equality condition on each column but the last, and often a range condition on the last one.
  // Queries with conditions on more than two columns are rare, and an index that covers queries has columns without any
  // condition.
  constexpr size_t COLUMNS_MAX = 2;
  // Different texts mostly differ within this many bytes. Searches for texts with a shorter encoding use no filters.
  constexpr size_t TEXT_BYTES = 16;
  size_t columns = std::min(COLUMNS_MAX, std::max<size_t>(parts_.size(), 2) - 1), bytes = 0;
  for (size_t i = 0; i < columns; i++) {
    const Part &part = parts_[i];
    if (part.end != End::Length) return i == 0 ? TEXT_BYTES : bytes;
    bytes += part.step + (part.can_be_null ? 1 : 0);
  }
  return bytes;
}

bool KeyCodec::find_end(const Part &part, std::string_view bytes, size_t *end) {
  switch (part.end) {
    case End::Length: *end = part.step; return bytes.size() >= part.step;
    case End::Escape:
      for (size_t at = 0; at + 1 < bytes.size(); at++) {
        if (bytes[at] != 0) continue;
        *end = at + 2;
        if (bytes[at + 1] == 0) return true;
        at++;
      }
      return false;
    case End::Groups:
      for (*end = part.step; *end <= bytes.size(); *end += part.step)
        if (bytes[*end - 1] == NOTHING) return true;
      return false;
    default: return false;
  }
}

/** Removes the next part from `bytes`; returns false if its end cannot be found. `body` is the part's encoding without
    the NULL byte; `own` is the buffer for the inverted bytes of a descending part. */
bool KeyCodec::next(const Part &part, std::string_view *bytes, std::string *own, std::string_view *body,
                    bool *is_null) {
  std::string_view rest = *bytes;
  if (part.descends) {
    own->assign(rest);
    for (char &byte : *own) byte = char(~byte);
    rest = *own;
  }
  size_t head = part.can_be_null ? 1 : 0, end = 0;
  if (rest.size() < head) return false;
  *is_null = head && rest[0] == 0;
  rest.remove_prefix(head);
  if (!*is_null && !find_end(part, rest, &end)) return false;
  *body = rest.substr(0, end);
  bytes->remove_prefix(head + end);
  return true;
}

bool KeyCodec::cut(std::string_view bytes, std::vector<size_t> *ends) const {
  size_t all = bytes.size();
  std::string own;
  for (const Part &part : parts_) {
    std::string_view body;
    bool is_null;
    if (!next(part, &bytes, &own, &body, &is_null)) return false;
    ends->push_back(all - bytes.size());
  }
  return true;
}

/** Produces the field's bytes as a record has them. Not for Inverse::KeyImage and Inverse::Unescaped. */
void KeyCodec::image_of(const Part &part, std::string_view body, uchar *image) {
  if (part.inverse == Inverse::Copied) {
    memcpy(image, body.data(), body.size());
    return;
  }
  for (size_t i = 0; i < body.size(); i++) image[i] = uchar(body[body.size() - 1 - i]);
  if (part.inverse == Inverse::ReversedSigned) image[body.size() - 1] ^= 0x80;
}

namespace {

std::string unescaped(std::string_view body) {
  std::string text;
  // Two zeros end the text; a zero within it is followed by 0xFF.
  for (size_t at = 0; at + 2 < body.size(); at++) {
    text.push_back(body[at]);
    if (body[at] == 0) at++;
  }
  return text;
}

}  // namespace

void KeyCodec::put(const Part &part, Field *field, std::string_view body, my_ptrdiff_t offset) {
  AtRecord moved(field, offset);
  switch (part.inverse) {
    case Inverse::KeyImage:
      field->set_key_image(reinterpret_cast<const uchar *>(body.data()), uint(body.size()));
      return;
    case Inverse::Unescaped: {
      std::string text = unescaped(body);
      auto string = static_cast<Field_varstring *>(field);
      size_t length = std::min<size_t>(text.size(), field->field_length);
      if (string->length_bytes == 1)
        *field->ptr = uchar(length);
      else
        int2store(field->ptr, uint16(length));
      memcpy(field->ptr + string->length_bytes, text.data(), length);
      return;
    }
    default: image_of(part, body, field->ptr);
  }
}

KeyCodec::Targets KeyCodec::targets(const TABLE *table, const KEY *key, const Wanted &wanted) const {
  Targets found(parts_.size());
  size_t used = 0;
  for (size_t i = 0, left = decodable_.size(); left > 0; i++) {
    if (parts_[i].inverse == Inverse::None) continue;
    left--;
    uint number = key->key_part[i].fieldnr - 1;
    if (!wanted.has(number)) continue;
    found[i] = table->field[number];
    used = i + 1;
  }
  found.resize(used);
  return found;
}

/** Returns whether the part is an ascending integer, as most key parts are. */
bool KeyCodec::is_simple(const Part &part) {
  bool is_integer = part.inverse == Inverse::Reversed || part.inverse == Inverse::ReversedSigned;
  return is_integer && !part.descends && part.end == End::Length;
}

void KeyCodec::put_simple(const Part &part, const char *body, uchar *image) {
  size_t length = part.step;
  // If the length is known at compile time, this is one load, swap and store.
  auto reverse = [&](auto whole) {
    memcpy(&whole, body, sizeof whole);
    if constexpr (sizeof whole == 8) whole = __builtin_bswap64(whole);
    else whole = __builtin_bswap32(whole);
    memcpy(image, &whole, sizeof whole);
  };
  if (length == 4) reverse(uint32_t());
  else if (length == 8) reverse(uint64_t());
  else for (size_t i = 0; i < length; i++) image[i] = uchar(body[length - 1 - i]);
  if (part.inverse == Inverse::ReversedSigned) image[length - 1] ^= 0x80;
}

bool KeyCodec::decode(const Targets &targets, std::string_view bytes, my_ptrdiff_t offset) const {
  std::string own;
  for (size_t i = 0; i < targets.size(); i++) {
    const Part &part = parts_[i];
    Field *field = targets[i];
    std::string_view body;
    bool is_null = false;
    if (is_simple(part)) {
      size_t head = part.can_be_null ? 1 : 0;
      if (bytes.size() < head) return false;
      is_null = head && bytes[0] == 0;
      size_t end = is_null ? head : head + part.step;
      if (bytes.size() < end) return false;
      if (field && !is_null) {
        field->set_notnull(offset);
        put_simple(part, bytes.data() + head, field->ptr + offset);
      }
      bytes.remove_prefix(end);
      if (!is_null) continue;
    } else if (!next(part, &bytes, &own, &body, &is_null)) {
      return false;
    }
    if (!field) continue;
    if (!is_null) {
      field->set_notnull(offset);
      put(part, field, body, offset);
      continue;
    }
    AtRecord moved(field, offset);
    field->set_null();
    field->reset();
  }
  return true;
}

std::vector<KeyCodec::Piece> KeyCodec::split(std::string_view bytes, size_t *used) const {
  std::vector<Piece> pieces;
  size_t all = bytes.size();
  std::string own;
  for (const Part &part : parts_) {
    std::string_view body;
    Piece piece;
    if (!next(part, &bytes, &own, &body, &piece.is_null)) break;
    piece.encoded = body;
    piece.has_image = !piece.is_null && part.inverse != Inverse::None;
    if (piece.has_image) {
      switch (part.inverse) {
        case Inverse::KeyImage: piece.image = body; break;
        case Inverse::Unescaped: piece.image = unescaped(body); break;
        default:
          piece.image.resize(body.size());
          image_of(part, body, reinterpret_cast<uchar *>(piece.image.data()));
      }
    }
    pieces.push_back(std::move(piece));
  }
  *used = all - bytes.size();
  return pieces;
}

}  // namespace fron
