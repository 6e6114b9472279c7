//! The part of `rocksdb/c.h` (7.8.3) that the adapter needs, declared by hand.
//!
//! RocksDB promises that its C interface is stable from release to release; each declaration was
//! checked against the header. The adapter relies on these conventions of the header:
//!
//! * `errptr` points to a null pointer before a call; after it, a non-null value is an error text
//!   that the caller frees with [`rocksdb_free`];
//! * key and value pointers are only read during the call, except `iterate_upper_bound`, which must
//!   outlive the read options;
//! * the caller destroys the objects that it creates, except a filter policy, which its table
//!   options own. Options may be destroyed as soon as they have been passed on.

#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_double, c_int, c_uchar, c_void};

macro_rules! opaque {
    ($($name:ident),*) => { $(
        #[repr(C)]
        pub(super) struct $name { _opaque: [u8; 0] }
    )* };
}

opaque!(
    rocksdb_t,
    rocksdb_options_t,
    rocksdb_block_based_table_options_t,
    rocksdb_cache_t,
    rocksdb_filterpolicy_t,
    rocksdb_readoptions_t,
    rocksdb_writeoptions_t,
    rocksdb_writebatch_t,
    rocksdb_iterator_t,
    rocksdb_pinnableslice_t,
    rocksdb_column_family_handle_t
);

/// `rocksdb_no_compression`
pub(super) const NO_COMPRESSION: c_int = 0;
/// `rocksdb_lz4_compression`
pub(super) const LZ4_COMPRESSION: c_int = 4;
/// `rocksdb_zstd_compression`
pub(super) const ZSTD_COMPRESSION: c_int = 7;
/// `rocksdb_block_based_table_index_type_two_level_index_search`
pub(super) const TWO_LEVEL_INDEX: c_int = 2;

#[link(name = "rocksdb")]
unsafe extern "C" {
    pub(super) fn rocksdb_open_column_families(
        options: *const rocksdb_options_t,
        name: *const c_char,
        num_column_families: c_int,
        column_family_names: *const *const c_char,
        column_family_options: *const *const rocksdb_options_t,
        column_family_handles: *mut *mut rocksdb_column_family_handle_t,
        errptr: *mut *mut c_char,
    ) -> *mut rocksdb_t;
    pub(super) fn rocksdb_column_family_handle_destroy(handle: *mut rocksdb_column_family_handle_t);
    pub(super) fn rocksdb_close(db: *mut rocksdb_t);
    pub(super) fn rocksdb_write(
        db: *mut rocksdb_t,
        options: *const rocksdb_writeoptions_t,
        batch: *mut rocksdb_writebatch_t,
        errptr: *mut *mut c_char,
    );
    pub(super) fn rocksdb_get_pinned(
        db: *mut rocksdb_t,
        options: *const rocksdb_readoptions_t,
        key: *const c_char,
        keylen: usize,
        errptr: *mut *mut c_char,
    ) -> *mut rocksdb_pinnableslice_t;
    /// Stores a slice or null in `values`, and an error text or null in `errs`, for each key.
    pub(super) fn rocksdb_batched_multi_get_cf(
        db: *mut rocksdb_t,
        options: *const rocksdb_readoptions_t,
        column_family: *mut rocksdb_column_family_handle_t,
        num_keys: usize,
        keys_list: *const *const c_char,
        keys_list_sizes: *const usize,
        values: *mut *mut rocksdb_pinnableslice_t,
        errs: *mut *mut c_char,
        sorted_input: bool,
    );
    pub(super) fn rocksdb_pinnableslice_value(
        slice: *const rocksdb_pinnableslice_t,
        vlen: *mut usize,
    ) -> *const c_char;
    pub(super) fn rocksdb_pinnableslice_destroy(slice: *mut rocksdb_pinnableslice_t);
    pub(super) fn rocksdb_property_value(
        db: *mut rocksdb_t,
        propname: *const c_char,
    ) -> *mut c_char;
    /// Returns 0 if the property exists.
    pub(super) fn rocksdb_property_int(
        db: *mut rocksdb_t,
        propname: *const c_char,
        out_val: *mut u64,
    ) -> c_int;
    pub(super) fn rocksdb_compact_range(
        db: *mut rocksdb_t,
        start_key: *const c_char,
        start_key_len: usize,
        limit_key: *const c_char,
        limit_key_len: usize,
    );
    pub(super) fn rocksdb_flush_wal(db: *mut rocksdb_t, sync: c_uchar, errptr: *mut *mut c_char);
    pub(super) fn rocksdb_free(ptr: *mut c_void);

    pub(super) fn rocksdb_create_iterator(
        db: *mut rocksdb_t,
        options: *const rocksdb_readoptions_t,
    ) -> *mut rocksdb_iterator_t;
    pub(super) fn rocksdb_iter_destroy(iter: *mut rocksdb_iterator_t);
    pub(super) fn rocksdb_iter_valid(iter: *const rocksdb_iterator_t) -> c_uchar;
    pub(super) fn rocksdb_iter_seek(iter: *mut rocksdb_iterator_t, k: *const c_char, klen: usize);
    pub(super) fn rocksdb_iter_seek_to_last(iter: *mut rocksdb_iterator_t);
    pub(super) fn rocksdb_iter_next(iter: *mut rocksdb_iterator_t);
    pub(super) fn rocksdb_iter_key(
        iter: *const rocksdb_iterator_t,
        klen: *mut usize,
    ) -> *const c_char;
    pub(super) fn rocksdb_iter_value(
        iter: *const rocksdb_iterator_t,
        vlen: *mut usize,
    ) -> *const c_char;
    pub(super) fn rocksdb_iter_get_error(iter: *const rocksdb_iterator_t, errptr: *mut *mut c_char);

    pub(super) fn rocksdb_writebatch_create() -> *mut rocksdb_writebatch_t;
    pub(super) fn rocksdb_writebatch_destroy(batch: *mut rocksdb_writebatch_t);
    pub(super) fn rocksdb_writebatch_clear(batch: *mut rocksdb_writebatch_t);
    pub(super) fn rocksdb_writebatch_put(
        batch: *mut rocksdb_writebatch_t,
        key: *const c_char,
        klen: usize,
        val: *const c_char,
        vlen: usize,
    );
    pub(super) fn rocksdb_writebatch_delete(
        batch: *mut rocksdb_writebatch_t,
        key: *const c_char,
        klen: usize,
    );

    pub(super) fn rocksdb_writeoptions_create() -> *mut rocksdb_writeoptions_t;
    pub(super) fn rocksdb_writeoptions_destroy(options: *mut rocksdb_writeoptions_t);
    pub(super) fn rocksdb_writeoptions_set_sync(options: *mut rocksdb_writeoptions_t, v: c_uchar);
    pub(super) fn rocksdb_readoptions_create() -> *mut rocksdb_readoptions_t;
    pub(super) fn rocksdb_readoptions_destroy(options: *mut rocksdb_readoptions_t);
    pub(super) fn rocksdb_readoptions_set_iterate_upper_bound(
        options: *mut rocksdb_readoptions_t,
        key: *const c_char,
        keylen: usize,
    );

    pub(super) fn rocksdb_cache_create_lru(capacity: usize) -> *mut rocksdb_cache_t;
    pub(super) fn rocksdb_cache_destroy(cache: *mut rocksdb_cache_t);
    pub(super) fn rocksdb_filterpolicy_create_bloom_full(
        bits_per_key: c_double,
    ) -> *mut rocksdb_filterpolicy_t;

    pub(super) fn rocksdb_block_based_options_create() -> *mut rocksdb_block_based_table_options_t;
    pub(super) fn rocksdb_block_based_options_destroy(
        options: *mut rocksdb_block_based_table_options_t,
    );
    pub(super) fn rocksdb_block_based_options_set_block_size(
        options: *mut rocksdb_block_based_table_options_t,
        block_size: usize,
    );
    pub(super) fn rocksdb_block_based_options_set_block_cache(
        options: *mut rocksdb_block_based_table_options_t,
        block_cache: *mut rocksdb_cache_t,
    );
    pub(super) fn rocksdb_block_based_options_set_filter_policy(
        options: *mut rocksdb_block_based_table_options_t,
        filter_policy: *mut rocksdb_filterpolicy_t,
    );
    pub(super) fn rocksdb_block_based_options_set_index_type(
        options: *mut rocksdb_block_based_table_options_t,
        index_type: c_int,
    );
    pub(super) fn rocksdb_block_based_options_set_partition_filters(
        options: *mut rocksdb_block_based_table_options_t,
        partition_filters: c_uchar,
    );
    pub(super) fn rocksdb_block_based_options_set_cache_index_and_filter_blocks(
        options: *mut rocksdb_block_based_table_options_t,
        v: c_uchar,
    );
    pub(super) fn rocksdb_block_based_options_set_pin_top_level_index_and_filter(
        options: *mut rocksdb_block_based_table_options_t,
        v: c_uchar,
    );

    pub(super) fn rocksdb_options_create() -> *mut rocksdb_options_t;
    pub(super) fn rocksdb_options_destroy(options: *mut rocksdb_options_t);
    pub(super) fn rocksdb_options_set_create_if_missing(
        options: *mut rocksdb_options_t,
        v: c_uchar,
    );
    pub(super) fn rocksdb_options_set_block_based_table_factory(
        options: *mut rocksdb_options_t,
        table_options: *mut rocksdb_block_based_table_options_t,
    );
    pub(super) fn rocksdb_options_set_write_buffer_size(options: *mut rocksdb_options_t, s: usize);
    pub(super) fn rocksdb_options_set_max_write_buffer_number(
        options: *mut rocksdb_options_t,
        n: c_int,
    );
    pub(super) fn rocksdb_options_set_level_compaction_dynamic_level_bytes(
        options: *mut rocksdb_options_t,
        v: c_uchar,
    );
    pub(super) fn rocksdb_options_set_compression(options: *mut rocksdb_options_t, t: c_int);
    pub(super) fn rocksdb_options_set_bottommost_compression(
        options: *mut rocksdb_options_t,
        t: c_int,
    );
    pub(super) fn rocksdb_options_set_bottommost_compression_options(
        options: *mut rocksdb_options_t,
        w_bits: c_int,
        level: c_int,
        strategy: c_int,
        max_dict_bytes: c_int,
        enabled: c_uchar,
    );
    pub(super) fn rocksdb_options_set_bottommost_compression_options_zstd_max_train_bytes(
        options: *mut rocksdb_options_t,
        zstd_max_train_bytes: c_int,
        enabled: c_uchar,
    );
    pub(super) fn rocksdb_options_set_bottommost_compression_options_max_dict_buffer_bytes(
        options: *mut rocksdb_options_t,
        max_dict_buffer_bytes: u64,
        enabled: c_uchar,
    );
    pub(super) fn rocksdb_options_set_use_direct_reads(options: *mut rocksdb_options_t, v: c_uchar);
    pub(super) fn rocksdb_options_set_use_direct_io_for_flush_and_compaction(
        options: *mut rocksdb_options_t,
        v: c_uchar,
    );
    pub(super) fn rocksdb_options_set_max_background_jobs(
        options: *mut rocksdb_options_t,
        n: c_int,
    );
}
