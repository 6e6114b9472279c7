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
     several levels  (accents, case) one of these after the other
   and a part that descends is inverted bit by bit. No encoding is a prefix of another of its part. */

#ifndef FRONDB_CODEC_KEY_H
#define FRONDB_CODEC_KEY_H

#include <my_global.h>
#include <m_ctype.h>

#include <string>
#include <string_view>
#include <vector>

class Field;
struct TABLE;
typedef struct st_key_part_info KEY_PART_INFO;
typedef struct st_key KEY;

namespace fron {

struct Wanted;

/** Appends a string in the order of its collation. Columns of it have up to `chars_max` characters:
    the old collations of several levels take room for all of them. `is_char`: it is a CHAR's. */
void append_string(CHARSET_INFO *cs, std::string_view text, uint chars_max, bool is_char, std::string *to);

/** How the keys of one index are encoded. Immutable once made; any thread may use it, with a
    record's fields of its own. */
class KeyCodec {
 public:
  KeyCodec() = default;
  explicit KeyCodec(const KEY *key);

  /** Takes in the parts of the primary key that stand behind this one's in an entry: a search may
      give them, too ("extended keys"), with those left out that this key has itself. */
  void extend(const KEY *key, const KEY *primary);

  /** Appends the encoding of the first `length` bytes of a key image. `key` is that of the
      caller's TABLE: its fields are moved over the image and back. */
  void encode(const KEY *key, const uchar *image, uint length, std::string *to) const;

  /** Whether any of the parts in the image is NULL: such keys are never duplicates. */
  static bool has_null(const KEY *key, const uchar *image, uint length);

  // The way back: codec/key_decode.cc.

  /** Numbers of the fields that decode() fills in: what an entry of the index need not hold. */
  const std::vector<uint> &decodable() const { return decodable_; }

  /** Of each part the field that decode() fills in, null where it passes over the part; none behind the last
      that it fills. Of the decodable fields those that are wanted. */
  using Targets = std::vector<Field *>;
  Targets targets(const TABLE *table, const KEY *key, const Wanted &wanted) const;

  /** Fills fields of a record, which lies `offset` bytes behind the table's first, from a key of all parts;
      `bytes` may go on behind it. False if it is damaged. */
  bool decode(const Targets &targets, std::string_view bytes, my_ptrdiff_t offset) const;

  /** Appends where each part of `bytes` ends; false from a part on whose end cannot be found. */
  bool cut(std::string_view bytes, std::vector<size_t> *ends) const;

  /** A part of a key for people to read. */
  struct Piece {
    bool is_null = false;
    /** The field as a record has it, if that can be told. */
    bool has_image = false;
    std::string image;
    /** As it was encoded, and not descending. */
    std::string encoded;
  };
  /** Takes a key apart, or the first bytes of one: as many parts as are there whole, up to one whose end
      cannot be found. `used` are the bytes they take. */
  std::vector<Piece> split(std::string_view bytes, size_t *used) const;

 private:
  enum class Kind { Fixed, Image, Text };
  /** Where the encoding of a part ends. */
  enum class End { Length, Escape, Groups, Unknown };
  /** How the field's image comes back from it. */
  enum class Inverse { None, Copied, Reversed, ReversedSigned, KeyImage, Unescaped };
  struct Part {
    Kind kind;
    /** Bytes of its data in the image, without those for NULL and length. */
    uint length;
    /** Whether two bytes of length come before the data. */
    bool has_length;
    bool can_be_null;
    bool descends;
    End end = End::Unknown;
    /** Bytes of its encoding, or of a group of it with its mark. */
    size_t step = 0;
    Inverse inverse = Inverse::None;
  };
  /** A part of the primary key: which of the extended key's it is, and where it stands in an image. */
  struct Behind {
    Part part;
    uint number;
    uint offset;
  };
  static Part part_of(const KEY_PART_INFO &info);
  static void set_inverse(const KEY *key, uint at, Part *part);
  static bool next(const Part &part, std::string_view *bytes, std::string *own, std::string_view *body,
                   bool *is_null);
  static bool find_end(const Part &part, std::string_view bytes, size_t *end);
  static void image_of(const Part &part, std::string_view body, uchar *image);
  static void put(const Part &part, Field *field, std::string_view body, my_ptrdiff_t offset);
  static bool is_simple(const Part &part);
  static void put_simple(const Part &part, const char *body, uchar *image);
  void encode_nullable(const Part &part, Field *field, const uchar *image, std::string *to) const;
  void encode_part(const Part &part, Field *field, const uchar *data, std::string *to) const;

  std::vector<Part> parts_;
  std::vector<Behind> behind_;
  std::vector<uint> decodable_;
};

/** Whether a key part holds a whole field, not only its first bytes. */
bool is_whole_field(const KEY_PART_INFO &part);

/** Bytes of a group of weights of a collation that pads, without its mark; 0 if spaces weigh nothing in it, and
    nothing is padded. */
size_t group_bytes(CHARSET_INFO *cs);

}  // namespace fron

#endif
