/* SPDX-License-Identifier: GPL-2.0-only

   Written from the source of the library by `cargo xtask pages`: do not edit. Ranges, defaults and texts of the database's
   options that plugin/variables.cc sets and of the tree options that are numbers or flags, under the names that
   frondb_options_set() and frondb_tree_options_set() take, and the levels of the codecs. */

#ifndef FRONDB_ENGINE_OPTION_ROWS_H
#define FRONDB_ENGINE_OPTION_ROWS_H

namespace fron {

struct OptionRow {
  unsigned long long min, max;
  /** The default; 0 if the library computes it. Times are in milliseconds. */
  unsigned long long initial;
  /** Whether the option is fixed when a tree is created. */
  bool is_fixed;
  const char *text;
};

struct CodecLevels {
  const char *codec;
  int first, last;
};

namespace database_rows {
inline constexpr OptionRow memory_bytes = {16777216, ~0ULL, 0, false, "The memory budget, bytes: cache, memtables, filters, indexes and work buffers. 0 means a quarter of the machine's memory. The process also needs the memory of an empty process and 32 KiB for each reading thread."};
inline constexpr OptionRow sync = {1, 86400000, 0, false, "When a commit with Durability::Sync becomes durable: Always, before it returns; EveryMillis(n), at most n ms and one sync later; Never, at the next sync for another reason."};
inline constexpr OptionRow log_segment_bytes = {65536, 1073741824, 0, false, "Size of a log file, bytes; 0 means a quarter of the write buffer, at least 64 KiB and at most 100 MiB. A larger size means fewer files, and disk space is freed in larger pieces."};
inline constexpr OptionRow log_compression = {0, 1, 0, false, "Whether log records are compressed with lz4 where that saves at least a tenth. On a fast device, compression takes more time than it saves."};
inline constexpr OptionRow verify_fast_codecs = {0, 1, 0, false, "Whether blocks and log records of lz4 and of zstd up to level 3 are decoded and compared before they are written, as those of other codecs always are. A block that does not decode is written uncompressed and counted (miscoded_blocks). Adds a seventh to the CPU time of a load."};
inline constexpr OptionRow background_threads = {0, 256, 0, false, "Number of threads that flush and merge. With 0, this work happens inside the calls that need it, for deterministic tests. The default, half of the cores, is at least 2."};
inline constexpr OptionRow direct_io = {0, 1, 1, false, "Whether data files bypass the operating system's page cache if the file system supports it, so that the memory budget covers all caching."};
inline constexpr OptionRow reserve_bytes = {0, 268435456, 25165824, false, "Disk space reserved for deletes and one merge on a full disk, bytes."};
inline constexpr OptionRow checkpoint_period = {0, 31536000000, 0, false, "About the longest time between a commit and the flush of its messages from the memtable, so that recovery replays little. 0 means no limit on the time, only the log's limit of twice the write buffer."};
inline constexpr OptionRow background_bytes_per_second = {0, ~0ULL, 0, false, "The most bytes per second that flushes and merges write; if they fall behind, writers are slowed down. 0 means no limit."};
}  // namespace database_rows

namespace tree_rows {
inline constexpr OptionRow base_block_bytes = {256, 4194304, 16384, false, "Key and value bytes of a base block."};
inline constexpr OptionRow run_block_bytes = {256, 4194304, 32768, false, "Key and value bytes of a run block."};
inline constexpr OptionRow fanout = {2, 1024, 16, true, "Target number of children of an inner node below the root; a node may have up to twice as many."};
inline constexpr OptionRow leaf_bytes_min = {4096, 4294967296, 8388608, false, "Smallest size that a leaf should have (its target), key and value bytes; at most leaf_bytes_max."};
inline constexpr OptionRow leaf_bytes_max = {4096, 4294967296, 268435456, false, "Largest size that a leaf should have, key and value bytes."};
inline constexpr OptionRow slice_bytes_min = {256, 67108864, 262144, true, "Size that the slices of a flush should at least have, key and value bytes. If they would be smaller, leaves get larger, or the tree gets a level of inner nodes."};
inline constexpr OptionRow writes_before_base = {1, 4, 2, true, "Most writes of a message before it reaches the base; each level of inner nodes below the root adds one."};
inline constexpr OptionRow growth_percent = {10, 1000, 100, true, "A leaf is rewritten when its runs above the base have grown to this percentage of the base's size."};
inline constexpr OptionRow garbage_percent = {5, 95, 35, true, "A leaf is rewritten when more than this percentage of its messages is estimated to be garbage."};
inline constexpr OptionRow block_bytes = {256, 4194304, 16384, false, "Key and value bytes of a base block."};
}  // namespace tree_rows

inline constexpr CodecLevels CODEC_LEVELS[] = {
    {"zstd", 1, 19},
    {"zlib", 1, 9},
    {"lzma", 0, 9},
    {"zstd-dictionary", 1, 19},
};

}  // namespace fron

#endif
