//! The version of the running library. The header has the version that a program was compiled with.

use std::ffi::c_char;

/// Returns the version of the running library, for example "1.2.3". FRONDB_VERSION is the version
/// of the header.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
