/* SPDX-License-Identifier: GPL-2.0-only

   Keys of the engine as text for people: `device=3, taken='2026-11-22 12:00:00.000'`. What cannot be turned
   back, weights of a collation, is shown as what can be read of it behind a `~`, or in hexadecimal. Needs
   nothing of a table once it is made. */

#ifndef FRONDB_CODEC_KEY_TEXT_H
#define FRONDB_CODEC_KEY_TEXT_H

#include <my_global.h>
#include <m_ctype.h>
#include <field.h>

#include <string>
#include <string_view>
#include <vector>

#include "codec/key.h"

namespace fron {

/** Reads the keys of one index. Immutable; for any thread. */
class KeyReader {
 public:
  /** For a tree whose keys nothing is known of. */
  KeyReader() = default;
  /** For the keys of an index, behind which those of `primary` stand, if it is not null. */
  KeyReader(const KeyCodec &codec, const KEY *key, const KeyReader *primary);
  /** For a hidden key. */
  static KeyReader hidden();

  /** A key, or the beginning of one. */
  std::string text(std::string_view bytes) const;

 private:
  struct Part {
    std::string name;
    enum_field_types type;
    bool is_unsigned;
    uint length, precision, decimals;
    CHARSET_INFO *cs;
  };

  /** As many parts as are there whole: their text, the bytes they take, whether all are there. */
  std::string parts_text(std::string_view bytes, size_t *used, bool *is_whole) const;
  static std::string show(const Part &part, const KeyCodec::Piece &piece);
  static std::string show_image(const Part &part, const std::string &image);

  bool is_hidden_ = false;
  KeyCodec codec_;
  std::vector<Part> parts_;
  /** Those of the primary key, behind an entry's own. */
  std::vector<KeyReader> primary_;
};

/** Bytes in hexadecimal, cut if they are many. */
std::string hexadecimal(std::string_view bytes);

/** The text whose weights these are, as far as it can be told; `exact` says whether it is the very text.
    False if little of it can be told. */
bool text_of_weights(CHARSET_INFO *cs, std::string_view weights, std::string *text, bool *exact);

}  // namespace fron

#endif
