//! glibc's allocator, set so that RocksDB lives within the memory it is given.
//!
//! RocksDB allocates in one thread and frees in another. With glibc's defaults (an arena for each
//! thread, freed megabytes kept in the heap) its memory grows 100 MiB and more beyond its cache and
//! buffers, and under `mixed` the cgroup kills it. Users of RocksDB link jemalloc for the same
//! reason; a limit on the arenas does here.

use std::ffi::c_int;

/// `M_ARENA_MAX` of `malloc.h`.
const ARENA_MAX: c_int = -8;
/// `M_MMAP_THRESHOLD` of `malloc.h`.
const MMAP_THRESHOLD: c_int = -3;

/// A lock on an arena is rarely waited for with two.
const ARENAS: c_int = 2;
/// Blocks of memtables, 1 MiB, go back to the system when they are freed. That it is set at all
/// stops glibc from raising it.
const MMAP_BYTES: c_int = 256 << 10;

unsafe extern "C" {
    fn mallopt(parameter: c_int, value: c_int) -> c_int;
}

/// Sets it for the process. A value that glibc refuses leaves its default.
pub(super) fn limit() {
    // SAFETY: two integers; mallopt locks what it changes.
    unsafe {
        mallopt(ARENA_MAX, ARENAS);
        mallopt(MMAP_THRESHOLD, MMAP_BYTES);
    }
}
