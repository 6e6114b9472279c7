//! Bytes and texts between Rust and RocksDB's C functions.

use std::ffi::{CStr, c_char};

use frondb_bench::{Error, Result};

use super::ffi::rocksdb_free;

/// Writes a key of this database to `out`: the number of the tree and the key of the workload.
pub(super) fn prefixed(out: &mut Vec<u8>, tree: usize, key: &[u8]) {
    out.clear();
    out.push(tree as u8);
    out.extend_from_slice(key);
}

/// Returns the address of the bytes, as an argument of a C function.
pub(super) fn chars(bytes: &[u8]) -> *const c_char {
    bytes.as_ptr().cast()
}

/// Returns the bytes that a C function has returned.
///
/// # Safety
/// `start` points to `length` bytes that stay valid and unchanged for `'a`.
pub(super) unsafe fn bytes<'a>(start: *const c_char, length: usize) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    // SAFETY: promised by the caller.
    unsafe { std::slice::from_raw_parts(start.cast(), length) }
}

/// Returns the error of a call. Frees its text.
pub(super) fn check(error: *mut c_char) -> Result<()> {
    take_text(error).map_or(Ok(()), |text| Err(Error::Engine(text)))
}

/// Copies a text that RocksDB has allocated, and frees it; `None` if the pointer is null.
pub(super) fn take_text(text: *mut c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: RocksDB returns a text that ends in zero and is the caller's to free, once.
    unsafe {
        let owned = CStr::from_ptr(text).to_string_lossy().into_owned();
        rocksdb_free(text.cast());
        Some(owned)
    }
}
