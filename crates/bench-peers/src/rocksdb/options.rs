//! The settings of RocksDB; `docs/benchmark-method.md` gives the reasons.
//!
//! | share of memory | for                                                                      |
//! |-----------------|--------------------------------------------------------------------------|
//! | a half          | block cache; index and filter partitions are charged to it               |
//! | 4 x an eighth   | write buffers                                                            |
//!
//! Indexes and filters are partitioned. Whole indexes and filters of 64 MiB files would thrash a
//! cache of this size: each lookup would read 4 MB. The top level of each is pinned.

use std::ffi::c_int;

use frondb_bench::engine::EngineOptions;

use super::compression::{Compression, STRATEGY, TRAIN_BYTES, WINDOW_BITS};
use super::ffi::*;

const WRITE_BUFFERS: c_int = 4;
const BACKGROUND_JOBS: c_int = 3;
const BLOOM_BITS: f64 = 10.0;

/// The options of the database, destroyed on drop.
pub(super) struct Options(*mut rocksdb_options_t);

impl Options {
    pub(super) fn new(options: &EngineOptions) -> Self {
        let (cache_bytes, buffer_bytes) = shares(options.memory_bytes);
        // SAFETY: created here and destroyed in `drop`; the setters read plain values. The table
        // options are copied by `set_block_based_table_factory`, so they may be destroyed at once.
        unsafe {
            let raw = rocksdb_options_create();
            rocksdb_options_set_create_if_missing(raw, 1);
            rocksdb_options_set_write_buffer_size(raw, buffer_bytes);
            rocksdb_options_set_max_write_buffer_number(raw, WRITE_BUFFERS);
            rocksdb_options_set_level_compaction_dynamic_level_bytes(raw, 1);
            rocksdb_options_set_use_direct_reads(raw, 1);
            rocksdb_options_set_use_direct_io_for_flush_and_compaction(raw, 1);
            rocksdb_options_set_max_background_jobs(raw, BACKGROUND_JOBS);
            let compression = Compression::of(options.codec);
            if let Some((upper, bottom)) = compression.algorithms {
                rocksdb_options_set_compression(raw, upper);
                rocksdb_options_set_bottommost_compression(raw, bottom);
            }
            if let Some(level) = compression.level {
                rocksdb_options_set_bottommost_compression_options(
                    raw,
                    WINDOW_BITS,
                    level,
                    STRATEGY,
                    compression.dictionary_bytes,
                    1,
                );
            }
            if compression.dictionary_bytes > 0 {
                rocksdb_options_set_bottommost_compression_options_zstd_max_train_bytes(
                    raw,
                    TRAIN_BYTES,
                    1,
                );
                rocksdb_options_set_bottommost_compression_options_max_dict_buffer_bytes(
                    raw,
                    TRAIN_BYTES as u64,
                    1,
                );
            }
            let table = table_options(&compression, cache_bytes);
            rocksdb_options_set_block_based_table_factory(raw, table);
            rocksdb_block_based_options_destroy(table);
            Self(raw)
        }
    }

    pub(super) fn as_ptr(&self) -> *const rocksdb_options_t {
        self.0
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: created in `new`, destroyed once.
        unsafe { rocksdb_options_destroy(self.0) }
    }
}

/// Describes the settings in words.
pub(super) fn describe(options: &EngineOptions) -> String {
    let (cache_bytes, buffer_bytes) = shares(options.memory_bytes);
    let codec = Compression::of(options.codec);
    format!(
        "rocksdb 7.8.3: leveled, dynamic level bytes, {codec}, block cache {} MiB with partitioned \
         indexes and filters in it, {WRITE_BUFFERS} buffers of {} MiB, Bloom {BLOOM_BITS} bits, \
         direct I/O, {BACKGROUND_JOBS} background jobs, one column family, 2 malloc arenas",
        cache_bytes >> 20,
        buffer_bytes >> 20
    )
}

/// Returns the bytes of the block cache and of one write buffer.
fn shares(memory_bytes: u64) -> (usize, usize) {
    let memory = usize::try_from(memory_bytes).unwrap_or(usize::MAX);
    (memory / 2, memory / 8)
}

/// Creates table options, which the caller destroys.
fn table_options(
    compression: &Compression,
    cache_bytes: usize,
) -> *mut rocksdb_block_based_table_options_t {
    // SAFETY: all objects are created here. The table options keep their own reference to the
    // cache, so the reference of this function is released. They take ownership of the filter
    // policy.
    unsafe {
        let table = rocksdb_block_based_options_create();
        let cache = rocksdb_cache_create_lru(cache_bytes);
        rocksdb_block_based_options_set_block_cache(table, cache);
        rocksdb_cache_destroy(cache);
        if let Some(block_bytes) = compression.block_bytes {
            rocksdb_block_based_options_set_block_size(table, block_bytes);
        }
        let bloom = rocksdb_filterpolicy_create_bloom_full(BLOOM_BITS);
        rocksdb_block_based_options_set_filter_policy(table, bloom);
        rocksdb_block_based_options_set_index_type(table, TWO_LEVEL_INDEX);
        rocksdb_block_based_options_set_partition_filters(table, 1);
        rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1);
        rocksdb_block_based_options_set_pin_top_level_index_and_filter(table, 1);
        table
    }
}
