/* SPDX-License-Identifier: GPL-2.0-only

   Keys of the engine as readable text: `device=3, taken='2026-11-22 12:00:00.000'`. Weights of a collation cannot be
   decoded; they are shown as a text with the same weights after a `~`, or in hexadecimal. A KeyReader uses the table
   only in its constructor. */

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

/** Shows the keys of one index. Immutable; any thread may use it. */
class KeyReader {
 public:
  /** Creates a reader for a tree whose keys are unknown: shows bytes. */
  KeyReader() = default;
  /** Creates a reader for the keys of an index, which end with a key of `primary` if that is not null. */
  KeyReader(const KeyCodec &codec, const KEY *key, const KeyReader *primary);
  /** Creates a reader for hidden keys. */
  static KeyReader hidden();

  /** Returns the text of a key, or of its beginning. */
  std::string text(std::string_view bytes) const;

 private:
  struct Part {
    std::string name;
    enum_field_types type;
    bool is_unsigned;
    uint length, precision, decimals;
    CHARSET_INFO *cs;
  };

  /** Returns the text of the complete parts, the number of their bytes, and whether the key is complete. */
  std::string parts_text(std::string_view bytes, size_t *used, bool *is_whole) const;
  static std::string show(const Part &part, const KeyCodec::Piece &piece);
  static std::string show_image(const Part &part, const std::string &image);

  bool is_hidden_ = false;
  KeyCodec codec_;
  std::vector<Part> parts_;
  /** The reader of the primary key, which follows the index's own parts; empty if no primary key follows. */
  std::vector<KeyReader> primary_;
};

/** Returns the bytes in hexadecimal; truncated if there are many. */
std::string hexadecimal(std::string_view bytes);

/** Finds a text with these weights, with '?' in place of unknown characters; `exact` says whether it is the original
    text. Returns false if more than half of the characters are unknown, or if weights cannot be split into
    characters. */
bool text_of_weights(CHARSET_INFO *cs, std::string_view weights, std::string *text, bool *exact);

}  // namespace fron

#endif
