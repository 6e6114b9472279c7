/* SPDX-License-Identifier: GPL-2.0-only

   Statistics for the optimizer, without ANALYZE: the number of rows (statistics/row_counts.h), and the number of rows
   that share a value of the first parts of each index.

   The second is measured by counting groups, that is neighbouring entries with the same prefix, in intervals of about
   equal size. A run of entries is read at the beginning of each interval. If the prefix changes often in the run, the
   run represents the interval; if it changes seldom or never, a few groups are walked, and the engine estimates their
   sizes. Small indexes are read completely. Statistics are measured when they are first needed, and again when half of
   the table has changed; ANALYZE takes larger samples. The dictionary keeps them, so that plans survive a restart. */

#ifndef FRONDB_STATISTICS_TABLE_STATISTICS_H
#define FRONDB_STATISTICS_TABLE_STATISTICS_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api.h"

namespace fron {

class KeyCodec;

/** The size of a sample: the number of intervals, the entries of a run, and, for a prefix that changes seldom, the
    steps from group to group for each interval. Up to intervals * steps groups are counted one by one. */
struct SampleSize {
  size_t intervals, entries, steps;
};
constexpr SampleSize SAMPLE_USUAL{24, 64, 8}, SAMPLE_ANALYZE{128, 256, 8};

/** Number of entries that share a value of the first part, of the first two parts and so on. */
using RowsPerKey = std::vector<double>;

/** Measures an index. `rest` is the codec of the primary key that follows the entries' own keys, or null. */
Error measure_index(frondb_tree *tree, const KeyCodec &codec, const KeyCodec *rest, uint64_t rows,
                    SampleSize size, RowsPerKey *found);

/** Counts the entries of a tree: exact if it has few and `reads_few` is set, otherwise the engine's estimate. */
Error count_entries(frondb_tree *tree, bool reads_few, uint64_t *count, bool *is_exact);

/** The statistics of a table as the dictionary keeps them. */
struct TableStatistics {
  uint64_t rows = 0;
  /** Number of rows at the time of the measurement. */
  uint64_t measured_rows = 0;
  /** The rows per key of each index, in the order of the table's trees; empty if nothing was measured. */
  std::vector<RowsPerKey> indexes;
  /** The numbers of these indexes in the dictionary, since an ALTER may have replaced some of them. */
  std::vector<uint64_t> numbers;
  /** The time of the last commit that changed the table, and the server start before it. After a later start it is
      unknown which changes a crash left unrecorded, so no time is given, as in InnoDB. */
  uint64_t commit_time = 0, server_start = 0;

  std::string encode() const;
  bool decode(std::string_view bytes);
};

}  // namespace fron

#endif
