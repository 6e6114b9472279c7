/* SPDX-License-Identifier: GPL-2.0-only

   Checks that the indexes of a table agree with its rows, without a search for each row: the hashes of the expected
   entries and of the stored entries are added up in any order, and both sums must be equal. Takes one pass over each
   tree, at one snapshot. Includes no header of the server. */

#ifndef FRONDB_CODEC_ENTRY_SUM_H
#define FRONDB_CODEC_ENTRY_SUM_H

#include <cstdint>
#include <string_view>

namespace fron {

/** A sum over entries. The sums of two different sets are equal with a probability of 2^-64. */
struct EntrySum {
  uint64_t count = 0;
  uint64_t sum = 0;

  void add(std::string_view key, std::string_view value);
  bool operator==(const EntrySum &other) const { return count == other.count && sum == other.sum; }
  bool operator!=(const EntrySum &other) const { return !(*this == other); }
};

}  // namespace fron

#endif
