//! Settings of glibc's allocator that keep RocksDB within its memory.
//!
//! RocksDB allocates memory in one thread and frees it in another. With glibc's defaults (an arena
//! for each thread, and freed megabytes stay in the heap) the memory of the process grows 100 MiB
//! and more beyond cache and buffers, and under `mixed` the cgroup kills it. Users of RocksDB link
//! jemalloc for the same reason; here a limit on the number of arenas suffices.

use std::ffi::c_int;

/// `M_ARENA_MAX` of `malloc.h`.
const ARENA_MAX: c_int = -8;
/// `M_MMAP_THRESHOLD` of `malloc.h`.
const MMAP_THRESHOLD: c_int = -3;

/// The number of arenas: with two, a thread rarely waits for the lock of an arena.
const ARENAS: c_int = 2;
/// Allocations of this size and larger are mapped, so the 1 MiB blocks of memtables return to the
/// system when they are freed. Setting the value also stops glibc from raising it.
const MMAP_BYTES: c_int = 256 << 10;

unsafe extern "C" {
    fn mallopt(parameter: c_int, value: c_int) -> c_int;
}

/// Applies the settings to the process. If glibc refuses a value, its default stays.
pub(super) fn limit() {
    // SAFETY: two integers; mallopt locks what it changes.
    unsafe {
        mallopt(ARENA_MAX, ARENAS);
        mallopt(MMAP_THRESHOLD, MMAP_BYTES);
    }
}
