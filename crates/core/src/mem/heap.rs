//! Returns to the kernel memory that malloc keeps.
//!
//! Libraries written in C take tables from malloc: zstd's trainer takes megabytes for a dictionary.
//! (zstd's encoders use [`Buf`](super::Buf).) glibc makes a separate mapping for the first such
//! table. After that mapping was freed, glibc takes tables of that size from its arenas, and keeps
//! up to twice their memory there.

/// Returns free pages of malloc's arenas to the kernel, if malloc is glibc's. For use after work
/// that has freed megabytes: the call takes up to some milliseconds, in which other threads wait
/// for malloc.
pub fn trim_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    {
        use std::ffi::c_int;

        unsafe extern "C" {
            /// A function of glibc; since version 2.8 it trims all arenas.
            fn malloc_trim(pad: usize) -> c_int;
        }
        // SAFETY: the function takes a number, and locks what it changes. The ignored result says
        // whether memory was returned.
        let _ = unsafe { malloc_trim(0) };
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn trimming_the_heap_keeps_memory_in_use() {
        let kept: Vec<Vec<u8>> = (0..200).map(|i| vec![i as u8; 10_000]).collect();
        drop((0..200).map(|i| vec![i as u8; 10_000]).collect::<Vec<_>>());
        super::trim_heap();
        assert!(
            kept.iter().enumerate().all(|(i, bytes)| bytes.iter().all(|&byte| byte == i as u8))
        );
    }
}
