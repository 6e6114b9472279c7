//! Returning what malloc keeps.
//!
//! Codecs of C take their tables from malloc: tens of megabytes for an encoder with a dictionary. glibc
//! maps the first of these, but once such a mapping was freed it takes requests of that size from its
//! arenas, and keeps up to twice as much there.

/// Returns free pages of malloc's arenas to the kernel, where malloc is glibc's. For the end of work that
/// has freed megabytes: it takes up to some milliseconds, in which other threads wait for malloc.
pub fn trim_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    {
        use std::ffi::c_int;

        unsafe extern "C" {
            /// Of glibc, since version 2.8 for all arenas.
            fn malloc_trim(pad: usize) -> c_int;
        }
        // SAFETY: it takes a number, and locks what it changes. What it returns says whether there was
        // anything to return.
        let _ = unsafe { malloc_trim(0) };
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_in_use_stays() {
        let kept: Vec<Vec<u8>> = (0..200).map(|i| vec![i as u8; 10_000]).collect();
        drop((0..200).map(|i| vec![i as u8; 10_000]).collect::<Vec<_>>());
        super::trim_heap();
        assert!(
            kept.iter().enumerate().all(|(i, bytes)| bytes.iter().all(|&byte| byte == i as u8))
        );
    }
}
