/* SPDX-License-Identifier: GPL-2.0-only

   See codec/key_text.h. */

#include "codec/key_text.h"

#include <cfloat>
#include <cstring>
#include <ctime>
#include <unordered_map>

#include <sql_class.h>
#include <decimal.h>
#include <compat56.h>

#include "engine/server.h"

namespace fron {
namespace {

constexpr uint BINARY_CHARSET = 63;
/** Maximum bytes of a value shown in hexadecimal, and as text. */
constexpr size_t HEX_BYTES = 64, TEXT_BYTES = 256;
/** The first and the last character that known_weights() maps, besides a to z. */
constexpr my_wc_t FIRST_KNOWN = 0x20, LAST_KNOWN = 0x24F;

std::string number(const char *format, ...) __attribute__((format(printf, 1, 2)));

std::string number(const char *format, ...) {
  char text[64];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | uchar(bytes[i]);
  return value;
}

std::string integer(std::string_view image, bool is_unsigned) {
  uint64_t value = little_endian(image);
  if (is_unsigned) return std::to_string(value);
  size_t unused = 64 - 8 * image.size();
  return std::to_string(int64_t(value << unused) >> unused);
}

std::string quoted(std::string_view text) {
  std::string all = "'";
  for (char c : text.substr(0, TEXT_BYTES)) {
    if (uchar(c) < 0x20 || c == 0x7F)
      all += number("\\x%02X", uchar(c));
    else if (c == '\'' || c == '\\')
      (all += '\\') += c;
    else
      all += c;
  }
  return all + (text.size() > TEXT_BYTES ? "'..." : "'");
}

/** Returns the bytes as text if all of them are printable ASCII. */
std::string bytes_or_text(std::string_view bytes) {
  for (char c : bytes)
    if (c < 0x20 || c == 0x7F) return hexadecimal(bytes);
  return quoted(bytes);
}

std::string decimal(const std::string &image, uint precision, uint scale) {
  decimal_digit_t digits[DECIMAL_BUFF_LENGTH];
  decimal_t value;
  value.buf = digits;
  value.len = DECIMAL_BUFF_LENGTH;
  char text[DECIMAL_MAX_STR_LENGTH + 2];
  int length = sizeof text;
  if (bin2decimal(reinterpret_cast<const uchar *>(image.data()), &value, int(precision), int(scale)) != E_DEC_OK ||
      decimal2string(&value, text, &length, 0, 0, 0) != E_DEC_OK)
    return hexadecimal(image);
  return std::string(text, size_t(length));
}

std::string date(uint64_t value) {
  return number("'%04u-%02u-%02u'", uint(value >> 9), uint(value >> 5 & 15), uint(value & 31));
}

std::string temporal(const std::string &image, enum_field_types type, uint decimals) {
  auto data = reinterpret_cast<const uchar *>(image.data());
  MYSQL_TIME time;
  char text[MAX_DATE_STRING_REP_LENGTH + 1];
  int length;
  if (type == MYSQL_TYPE_TIME2) {
    TIME_from_longlong_time_packed(&time, my_time_packed_from_binary(data, decimals));
    length = my_time_to_str(&time, text, decimals);
  } else if (type == MYSQL_TYPE_DATETIME2) {
    TIME_from_longlong_datetime_packed(&time, my_datetime_packed_from_binary(data, decimals));
    length = my_datetime_to_str(&time, text, decimals);
  } else {
    Timestamp stamp;
    my_timestamp_from_binary(&stamp, data, decimals);
    time_t seconds = stamp.tv_sec;
    struct tm parts;
    if (!gmtime_r(&seconds, &parts)) return hexadecimal(image);
    std::string all(text, strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts));
    if (decimals) all += number(".%06lu", ulong(stamp.tv_usec)).substr(0, decimals + 1);
    return "'" + all + " UTC'";
  }
  return "'" + std::string(text, size_t(length)) + "'";
}

/** Inverts Field::sort_string() of FLOAT and DOUBLE, which sets the sign bit of a positive number and adds one to
    its exponent, and inverts all bits of a negative number. */
template <typename T, typename Bits, int ExponentBits>
T floating(std::string_view encoded) {
  Bits bits = 0;
  for (char byte : encoded) bits = Bits(bits << 8) | uchar(byte);
  constexpr int WIDTH = 8 * sizeof(Bits);
  constexpr Bits SIGN = Bits(1) << (WIDTH - 1);
  if (bits == SIGN) return 0;
  if (bits & SIGN)
    bits = (bits & ~SIGN) - (Bits(1) << (WIDTH - 1 - ExponentBits));
  else
    bits = ~bits;
  T value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/** Returns the weights of one character; empty if the character set does not have it. */
std::string weights_of(CHARSET_INFO *cs, my_wc_t character) {
  uchar bytes[8], weights[64];
  int length = cs->cset->wc_mb(cs, character, bytes, bytes + sizeof bytes);
  if (length <= 0) return {};
  size_t n = cs->strnxfrm(weights, sizeof weights, 1, bytes, size_t(length), 0);
  return std::string(reinterpret_cast<char *>(weights), n);
}

/** Maps weights to characters. Of several characters with the same weights, the map has the first one in a to z, or
    else the first one. */
std::unordered_map<std::string, my_wc_t> known_weights(CHARSET_INFO *cs) {
  std::unordered_map<std::string, my_wc_t> known;
  for (my_wc_t c = 'a'; c <= 'z'; c++) known.emplace(weights_of(cs, c), c);
  for (my_wc_t c = FIRST_KNOWN; c <= LAST_KNOWN; c++) known.emplace(weights_of(cs, c), c);
  known.erase("");
  return known;
}

void append_utf8(my_wc_t character, std::string *to) {
  uchar bytes[8];
  int length = my_charset_utf8mb4_bin.cset->wc_mb(&my_charset_utf8mb4_bin, character, bytes, bytes + sizeof bytes);
  if (length > 0) to->append(reinterpret_cast<char *>(bytes), size_t(length));
}

/** Returns the weights without the marks after groups or after zeros. */
std::string weights_in(CHARSET_INFO *cs, std::string_view encoded) {
  std::string weights;
  size_t group = cs->state & MY_CS_NOPAD ? 0 : group_bytes(cs);
  if (group == 0) {
    for (size_t at = 0; at + 2 < encoded.size(); at++) {
      weights.push_back(encoded[at]);
      if (encoded[at] == 0) at++;
    }
    return weights;
  }
  for (size_t at = 0; at + group < encoded.size(); at += group + 1) weights.append(encoded.substr(at, group));
  return weights;
}

}  // namespace

std::string hexadecimal(std::string_view bytes) {
  std::string all = "0x";
  for (char c : bytes.substr(0, HEX_BYTES)) all += number("%02X", uchar(c));
  return bytes.size() > HEX_BYTES ? all + "..." : all;
}

bool text_of_weights(CHARSET_INFO *cs, std::string_view weights, std::string *text, bool *exact) {
  size_t width = weights_of(cs, ' ').size(), unknown = 0, units = 0;
  if (width == 0 || weights.size() % width != 0) return false;
  auto known = known_weights(cs);
  for (size_t at = 0; at < weights.size(); at += width, units++) {
    std::string unit(weights.substr(at, width));
    auto found = known.find(unit);
    my_wc_t character = 0;
    for (char byte : unit) character = character << 8 | uchar(byte);
    if (found != known.end())
      append_utf8(found->second, text);
    else if (weights_of(cs, character) == unit)
      append_utf8(character, text);
    else {
      text->push_back('?');
      unknown++;
    }
  }
  if (!(cs->state & MY_CS_NOPAD)) text->erase(text->find_last_not_of(' ') + 1);
  *exact = (cs->state & MY_CS_BINSORT) && unknown == 0;
  return unknown * 2 <= units;
}

KeyReader::KeyReader(const KeyCodec &codec, const KEY *key, const KeyReader *primary) : codec_(codec) {
  for (uint i = 0; i < key->user_defined_key_parts; i++) {
    const Field *field = key->key_part[i].field;
    bool is_decimal = field->real_type() == MYSQL_TYPE_NEWDECIMAL;
    parts_.push_back({field->field_name.str, field->real_type(), (field->flags & UNSIGNED_FLAG) != 0,
                      key->key_part[i].length,
                      is_decimal ? uint(static_cast<const Field_new_decimal *>(field)->precision) : 0U,
                      field->decimals(), field->charset()});
  }
  if (primary) primary_.push_back(*primary);
}

KeyReader KeyReader::hidden() {
  KeyReader reader;
  reader.is_hidden_ = true;
  return reader;
}

std::string KeyReader::show_image(const Part &part, const std::string &image) {
  switch (part.type) {
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_LONGLONG: return integer(image, part.is_unsigned);
    case MYSQL_TYPE_ENUM:
    case MYSQL_TYPE_SET: return integer(image, true);
    case MYSQL_TYPE_YEAR: return image[0] ? std::to_string(1900 + uchar(image[0])) : "0000";
    case MYSQL_TYPE_NEWDATE: return date(little_endian(image));
    case MYSQL_TYPE_NEWDECIMAL: return decimal(image, part.precision, part.decimals);
    case MYSQL_TYPE_TIME2:
    case MYSQL_TYPE_DATETIME2:
    case MYSQL_TYPE_TIMESTAMP2: return temporal(image, part.type, part.decimals);
    case MYSQL_TYPE_BIT: return hexadecimal(image);
    default: return bytes_or_text(image);
  }
}

std::string KeyReader::show(const Part &part, const KeyCodec::Piece &piece) {
  if (piece.is_null) return part.name + "=NULL";
  if (piece.has_image) return part.name + "=" + show_image(part, piece.image);
  std::string_view encoded = piece.encoded;
  if (part.type == MYSQL_TYPE_FLOAT && encoded.size() == 4)
    return part.name + "=" + number("%.*g", FLT_DIG, double(floating<float, uint32_t, 8>(encoded)));
  if (part.type == MYSQL_TYPE_DOUBLE && encoded.size() == 8)
    return part.name + "=" + number("%.*g", DBL_DIG, floating<double, uint64_t, 11>(encoded));
  bool is_text = part.type == MYSQL_TYPE_STRING || part.type == MYSQL_TYPE_VARCHAR ||
                 part.type == MYSQL_TYPE_VAR_STRING || part.type == MYSQL_TYPE_BLOB;
  if (is_text && part.cs->number == BINARY_CHARSET) return part.name + "=" + bytes_or_text(encoded);
  std::string text;
  bool exact;
  if (is_text && text_of_weights(part.cs, weights_in(part.cs, encoded), &text, &exact))
    return part.name + (exact ? "=" : "~") + quoted(text);
  return part.name + "=" + hexadecimal(encoded);
}

std::string KeyReader::parts_text(std::string_view bytes, size_t *used, bool *is_whole) const {
  std::vector<KeyCodec::Piece> pieces = codec_.split(bytes, used);
  *is_whole = !parts_.empty() && pieces.size() == parts_.size();
  std::string all;
  for (size_t i = 0; i < pieces.size() && i < parts_.size(); i++)
    all += (i ? ", " : "") + show(parts_[i], pieces[i]);
  return all;
}

std::string KeyReader::text(std::string_view bytes) const {
  if (is_hidden_) {
    uint64_t row = 0;
    for (char byte : bytes.substr(0, 8)) row = row << 8 | uchar(byte);
    return bytes.size() < 8 ? hexadecimal(bytes) : "row " + std::to_string(row);
  }
  size_t used = 0;
  bool is_whole = false;
  std::string all = parts_text(bytes, &used, &is_whole);
  bytes.remove_prefix(used);
  // The smallest key above another key is that key followed by a zero byte.
  if (bytes.empty() || (bytes.size() == 1 && bytes[0] == 0 && !all.empty())) return all;
  if (is_whole && !primary_.empty()) return all + ", " + primary_.front().text(bytes);
  // The smallest key above all keys that begin with some parts: these parts with their last byte incremented.
  std::string before(bytes);
  before.back() = char(before.back() - 1);
  std::string last = bytes.back() ? parts_text(before, &used, &is_whole) : "";
  if (all.empty() && !last.empty() && used == before.size()) return "after " + last;
  return all + (all.empty() ? "" : ", ") + hexadecimal(bytes);
}

}  // namespace fron
