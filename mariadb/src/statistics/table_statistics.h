/* SPDX-License-Identifier: GPL-2.0-only

   What the optimizer is told of a table, without anybody asking for it: how many rows there are
   (statistics/row_counts.h), and how many share a value of the first parts of each index.

   The latter is measured by counting groups, stretches of entries that share a prefix, in intervals
   that hold about as many entries each. At the beginning of each a run of entries is read. Where the
   prefix changes often in it, that stands for the interval; where it changes seldom or never, a few
   groups are walked, and the engine estimates how large they are. Small indexes are read whole. It is
   measured when it is first needed, and again when half of the table has changed; ANALYZE looks closer.
   It is kept in the dictionary, so that plans survive a restart. */

#ifndef FRONDB_STATISTICS_TABLE_STATISTICS_H
#define FRONDB_STATISTICS_TABLE_STATISTICS_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api.h"

namespace fron {

class KeyCodec;

/** How closely an index is looked at: so many intervals, so many entries of a run, so many steps in an
    interval for a prefix that changes seldom. */
struct SampleSize {
  size_t intervals, entries, steps;
};
constexpr SampleSize SAMPLE_USUAL{24, 64, 4}, SAMPLE_ANALYZE{128, 256, 8};

/** Entries that share a value of the first parts, for one part, two parts and so on. */
using RowsPerKey = std::vector<double>;

/** Measures an index. `rest` is the codec of the primary key behind the entries' own, or null. */
Error measure_index(frondb_tree *tree, const KeyCodec &codec, const KeyCodec *rest, uint64_t rows,
                    SampleSize size, RowsPerKey *found);

/** How many entries a tree has: exactly if that is few, else as the engine estimates. */
Error count_entries(frondb_tree *tree, uint64_t *count, bool *is_exact);

/** What is kept of a table. */
struct TableStatistics {
  uint64_t rows = 0;
  /** Rows when the rest was measured. */
  uint64_t measured_rows = 0;
  /** By the place of the tree in the table; empty if nothing was measured. */
  std::vector<RowsPerKey> indexes;
  /** The numbers of those indexes: an ALTER may have put others in their places. */
  std::vector<uint64_t> numbers;

  std::string encode() const;
  bool decode(std::string_view bytes);
};

}  // namespace fron

#endif
