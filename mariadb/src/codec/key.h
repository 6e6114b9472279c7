/* SPDX-License-Identifier: GPL-2.0-only

   Encodes keys of the server as keys of the engine: byte strings whose order by memcmp() is the server's order. The
   input is the server's key image, which key_copy() makes from a row and which index reads receive, so one encoder
   serves rows and searches.

   A key part is encoded as
     NULL or not   0x00 | 0x01, for parts that can be NULL
     fixed width   the result of Field::sort_string(): numbers, dates, decimals, UUIDs ...; BIT and BINARY unchanged
     PAD SPACE     weights without trailing spaces, in groups of at most 8 bytes; a byte after each group
                   says how the rest compares to spaces: 1 below, 2 nothing follows, 3 above.
                   (As in MyRocks; so 'a' < 'a ' is false and 'a\t' < 'a' is true.)
     NO PAD        weights or bytes, 0x00 as 0x00 0xFF, ended by 0x00 0x00
     several levels  (accents, case) the encodings of the levels, one after the other
   A descending part is inverted bit by bit. No encoding of a part is a prefix of another encoding of it. */

#ifndef FRONDB_CODEC_KEY_H
#define FRONDB_CODEC_KEY_H

#include <my_global.h>
#include <m_ctype.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

class Field;
struct TABLE;
typedef struct st_key_part_info KEY_PART_INFO;
typedef struct st_key KEY;

namespace fron {

struct Wanted;

/** Appends a string so that the bytes sort in the order of its collation. The column has up to `chars_max`
    characters; for the old collations with several levels, each level takes the space of `chars_max` characters.
    `is_char`: the column is a CHAR. */
void append_string(CHARSET_INFO *cs, std::string_view text, uint chars_max, bool is_char, std::string *to);

/** The encoding of one part of an index's keys, so that values of another table can be encoded in the same way. The
    dictionary stores shapes with foreign keys. */
struct PartShape {
  /** The server's name of the field's type, with its decimals; empty for texts. */
  std::string type;
  /** For a text: the number of its collation. */
  uint32_t charset = 0;
  /** Bytes of the data in the key image. */
  uint32_t length = 0;
  uint8_t kind = 0;
  bool has_length = false;
  bool can_be_null = false;
  bool descends = false;

  /** Returns whether encode_as() can encode values of one part with the shape of the other. */
  bool matches(const PartShape &other) const;
};

PartShape shape_of(const KEY_PART_INFO &part);

/** Encodes and decodes the keys of one index. Immutable; any thread may use it with its own TABLE's fields. */
class KeyCodec {
 public:
  KeyCodec() = default;
  explicit KeyCodec(const KEY *key);

  /** Adds the parts of the primary key that follow the index's own parts in an entry. A search may contain them too
      ("extended keys"), except parts that the index itself has. */
  void extend(const KEY *key, const KEY *primary);

  /** Appends the encoding of the first `length` bytes of a key image. `key` belongs to the caller's TABLE, whose fields
      point into the image during the call. */
  void encode(const KEY *key, const uchar *image, uint length, std::string *to) const;

  /** Appends the values of a key image as encoded by an index whose first parts have these shapes. Returns false if a
      value is NULL or cannot be in such an index. */
  bool encode_as(const KEY *key, const uchar *image, const std::vector<PartShape> &shapes, std::string *to) const;

  /** Returns the number of first key bytes that filters for short scans hash (table/options.cc): the bytes of the first
      column, or of the first two if the key has three or more, up to a column whose encoding has no fixed length. If
      the first column is such a column: 16. */
  size_t prefix_bytes() const;

  /** Returns whether any part in the image is NULL; such keys are never duplicates. */
  static bool has_null(const KEY *key, const uchar *image, uint length);

  // Decoding: codec/key_decode.cc.

  /** Returns the numbers of the fields that decode() can fill, so that the value of an index entry need not contain
      them. */
  const std::vector<uint> &decodable() const { return decodable_; }

  /** For each key part, up to the last one that decode() fills: the part's field, or null if decode() skips the part.
      targets() selects the decodable fields that are wanted. */
  using Targets = std::vector<Field *>;
  Targets targets(const TABLE *table, const KEY *key, const Wanted &wanted) const;

  /** Fills fields of a record, at `offset` bytes from the table's first record, from a complete key; more bytes may
      follow the key in `bytes`. False if the key is damaged. */
  bool decode(const Targets &targets, std::string_view bytes, my_ptrdiff_t offset) const;

  /** Appends the offset in `bytes` at which each key part ends. False if the end of a part cannot be found. */
  bool cut(std::string_view bytes, std::vector<size_t> *ends) const;

  /** A part of a key, for display. */
  struct Piece {
    bool is_null = false;
    /** Whether the field can be decoded, and then its bytes as a record has them, except that a BIT has its key image
        and a VARBINARY lacks its length. */
    bool has_image = false;
    std::string image;
    /** The encoding without the NULL byte. The bytes of a descending part are inverted, as if it were ascending. */
    std::string encoded;
  };
  /** Splits a key, or the first bytes of one, into its complete parts, up to a part whose end cannot be found. `used`
      is the number of bytes of these parts. */
  std::vector<Piece> split(std::string_view bytes, size_t *used) const;

 private:
  enum class Kind { Fixed, Image, Text };
  /** How to find the end of a part's encoding. */
  enum class End { Length, Escape, Groups, Unknown };
  /** How to decode the field's image. */
  enum class Inverse { None, Copied, Reversed, ReversedSigned, KeyImage, Unescaped };
  struct Part {
    Kind kind;
    /** Bytes of the data in the image, without NULL and length bytes. */
    uint length;
    /** Whether the data is preceded by two length bytes. */
    bool has_length;
    bool can_be_null;
    bool descends;
    End end = End::Unknown;
    /** Bytes of the encoding, or of a group of weights with its mark. */
    size_t step = 0;
    Inverse inverse = Inverse::None;
  };
  /** A part of the primary key that follows the parts of the index: its number in the extended key, and its offset in a
      key image. */
  struct Behind {
    Part part;
    uint number;
    uint offset;
  };
  friend PartShape shape_of(const KEY_PART_INFO &part);
  static Part part_of(const KEY_PART_INFO &info);
  static std::string_view text_of(const Part &part, CHARSET_INFO *cs, const uchar *data);
  static void append_text(const Part &part, CHARSET_INFO *cs, std::string_view text, std::string *to);
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

/** Returns whether a key part holds a whole field, not only its first bytes. */
bool is_whole_field(const KEY_PART_INFO &part);

/** Returns the bytes of a group of weights of a padding collation, without its mark; 0 if spaces have no weight, so
    that nothing is padded. */
size_t group_bytes(CHARSET_INFO *cs);

}  // namespace fron

#endif
