/* SPDX-License-Identifier: GPL-2.0-only

   The value of an index entry, which names its row, and the arithmetic of key bounds. Pure functions over bytes.

     | head (varint): twice the length of the primary key, plus one if the value contains it |
     | primary key, if in the value | covered fields |

   The value has the primary key in entries of a unique index, unless a part of the index's key is NULL; otherwise the
   entry's key ends with the primary key.
   Covered fields are the fields that an index-only read cannot decode from the keys (table/index.h). */

#ifndef FRONDB_CODEC_ENTRY_H
#define FRONDB_CODEC_ENTRY_H

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/api.h"

namespace fron {

void append_big_endian(uint64_t number, std::string *to);

/** Turns a prefix into the smallest key above all keys that begin with it. False if there is none. */
bool prefix_end(std::string *prefix);

/** The keys that begin with a prefix, as the bounds of a cursor or of a lock. The prefix must outlive the object. */
class PrefixRange {
 public:
  explicit PrefixRange(const std::string &prefix) : prefix_(prefix), end_(prefix), has_end_(prefix_end(&end_)), hi_(slice(end_)) {}
  PrefixRange(const PrefixRange &) = delete;
  PrefixRange &operator=(const PrefixRange &) = delete;

  frondb_slice from() const { return slice(prefix_); }
  /** Returns the end of the range, excluded; null if the range has no end. */
  const frondb_slice *to() const { return has_end_ ? &hi_ : nullptr; }

 private:
  const std::string &prefix_;
  std::string end_;
  bool has_end_;
  frondb_slice hi_;
};

/** Appends the head of an entry's value: the length of the primary key, and whether the value has it. */
void append_head(size_t length, bool in_value, std::string *to);

/** Splits an entry of an index into the primary key and the bytes of covered fields. False if the entry is damaged. */
bool split_entry(frondb_slice key, frondb_slice value, frondb_slice *primary,
                 std::string_view *covered);

}  // namespace fron

#endif
