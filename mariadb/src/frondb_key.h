/* SPDX-License-Identifier: GPL-2.0-only

   Keys of the server as keys of the engine: byte strings whose order (memcmp) is the server's order.
   Pure functions over the server's key image (what key_copy() makes and index reads are given), so
   one encoder serves rows and searches.

   A part becomes
     NULL or not   0x00 | 0x01, for parts that can be NULL
     fixed width   what Field::sort_string() makes: numbers, dates, decimals, UUIDs ...
     PAD SPACE     weights without trailing spaces, in groups of 8 (9) bytes; behind each group
                   a byte says how what follows compares to spaces: 1 below, 2 nothing follows, 3 above.
                   (MyRocks has the same; so 'a' < 'a ' is false and 'a\t' < 'a' true.)
     NO PAD        weights or bytes, 0x00 as 0x00 0xFF, ended by 0x00 0x00
   and a part that descends is inverted bit by bit. No encoding is a prefix of another of its part. */

#ifndef FRONDB_KEY_H
#define FRONDB_KEY_H

#include <my_global.h>
#include <m_ctype.h>

#include <string>
#include <string_view>
#include <vector>

class Field;
typedef struct st_key KEY;

namespace fron {

/** Appends a string in the order of its collation. Columns of it have up to `chars_max` characters:
    collations of several levels take room for all of them. */
void append_string(CHARSET_INFO *cs, std::string_view text, uint chars_max, std::string *to);

/** How the keys of one index are encoded. Immutable once made; any thread may use it, with a
    record's fields of its own. */
class KeyCodec {
 public:
  KeyCodec() = default;
  explicit KeyCodec(const KEY *key);

  /** Appends the encoding of the first `length` bytes of a key image. `key` is that of the
      caller's TABLE: its fields are moved over the image and back. */
  void encode(const KEY *key, const uchar *image, uint length, std::string *to) const;

  /** Whether any of the parts in the image is NULL: such keys are never duplicates. */
  static bool has_null(const KEY *key, const uchar *image, uint length);

 private:
  enum class Kind { Fixed, Image, Text };
  struct Part {
    Kind kind;
    /** Bytes of its data in the image, without those for NULL and length. */
    uint length;
    /** Whether two bytes of length come before the data. */
    bool has_length;
    bool can_be_null;
    bool descends;
  };
  void encode_part(const Part &part, Field *field, const uchar *data, std::string *to) const;

  std::vector<Part> parts_;
};

}  // namespace fron

#endif
