/* SPDX-License-Identifier: GPL-2.0-only

   Whether the indexes of a table agree with its rows, without a search for each: entries that rows ask
   for and entries that are there are added up as numbers, whatever their order, and must come to the
   same. One pass over each tree, at one snapshot. Includes no header of the server. */

#ifndef FRONDB_CODEC_ENTRY_SUM_H
#define FRONDB_CODEC_ENTRY_SUM_H

#include <cstdint>
#include <string_view>

namespace fron {

/** A sum of entries. Two of different entries are equal once in 2^64. */
struct EntrySum {
  uint64_t count = 0;
  uint64_t sum = 0;

  void add(std::string_view key, std::string_view value);
  bool operator==(const EntrySum &other) const { return count == other.count && sum == other.sum; }
  bool operator!=(const EntrySum &other) const { return !(*this == other); }
};

}  // namespace fron

#endif
