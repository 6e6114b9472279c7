//! [`Context`]: a context of zstd for compression, in memory of [`frondb_core::mem`].
//!
//! At high levels, and with a dictionary, a context has tables of megabytes. A job makes one
//! context, compresses some megabytes of rows and frees the context. Allocated with malloc, such
//! tables left 27 MB resident at the upper ends of the arenas of two threads: malloc returns such
//! memory only if it exceeds twice the size of the largest table that was ever freed, and
//! `malloc_trim` does not return it at all. A large [`Buf`] is a mapping of its own instead, which
//! is unmapped when the `Buf` is dropped.
//!
//! Threads: a context is used by one thread at a time.

use std::ffi::c_void;
use std::ptr::NonNull;

use frondb_core::mem::Buf;
use frondb_core::sync::Mutex;
use frondb_core::{Error, Result};
use zstd::zstd_safe::get_error_name;
use zstd::zstd_safe::zstd_sys::{self as sys, ZSTD_cParameter};

/// The memory that zstd has allocated for a context: addresses as zstd knows them, and buffers.
type Allocations = Mutex<Vec<(usize, Buf)>>;

/// A compression context for one level, with one dictionary or none.
pub(crate) struct Context {
    context: NonNull<sys::ZSTD_CCtx>,
    /// At a fixed address, which [`Context::new`] passes to zstd, and zstd to [`allocate`] and
    /// [`release`].
    allocations: NonNull<Allocations>,
}

// SAFETY: only this object refers to the context and to its allocations, and zstd's contexts may be
// used by any thread, one at a time.
unsafe impl Send for Context {}

/// Called when zstd needs `size` bytes.
unsafe extern "C" fn allocate(allocations: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: zstd passes the pointer that `Context::new` gave it, and `Context` frees it after the
    // context.
    let allocations = unsafe { &*allocations.cast::<Allocations>() };
    // Aligned to 16, as malloc's memory is; only I/O needs alignment to a page.
    let mut buf = Buf::packed(size);
    let start = buf.as_mut_ptr();
    allocations.lock().push((start.addr(), buf));
    start.cast()
}

/// Called when zstd no longer needs the memory that [`allocate`] returned.
unsafe extern "C" fn release(allocations: *mut c_void, start: *mut c_void) {
    // SAFETY: as in `allocate`.
    let mut allocations = unsafe { &*allocations.cast::<Allocations>() }.lock();
    if let Some(at) = allocations.iter().position(|(address, _)| *address == start.addr()) {
        drop(allocations.swap_remove(at));
    }
}

impl Context {
    /// Creates a context with these parameters and this dictionary; an empty dictionary means none.
    ///
    /// # Errors
    /// Internal if zstd refuses a parameter or the dictionary, or has no memory.
    pub(crate) fn new(parameters: &[(ZSTD_cParameter, u32)], dictionary: &[u8]) -> Result<Self> {
        let allocations = NonNull::from(Box::leak(Box::<Allocations>::default()));
        let memory = sys::ZSTD_customMem {
            customAlloc: Some(allocate),
            customFree: Some(release),
            opaque: allocations.as_ptr().cast(),
        };
        // SAFETY: the functions return memory of the given size, aligned as malloc's, that stays
        // until it is released; the pointer that zstd passes to them outlives the context.
        let context = NonNull::new(unsafe { sys::ZSTD_createCCtx_advanced(memory) });
        let Some(context) = context else {
            // SAFETY: the pointer comes from a box, and no context refers to it.
            drop(unsafe { Box::from_raw(allocations.as_ptr()) });
            return Err(Error::internal("zstd has no memory for an encoder"));
        };
        let made = Self { context, allocations };
        for &(parameter, value) in parameters {
            // SAFETY: the context lives; zstd checks parameter and value.
            check(unsafe {
                sys::ZSTD_CCtx_setParameter(context.as_ptr(), parameter, value as i32)
            })?;
        }
        // SAFETY: the context lives, and the bytes are readable; zstd copies them, if there are
        // any.
        check(unsafe {
            sys::ZSTD_CCtx_loadDictionary(
                context.as_ptr(),
                dictionary.as_ptr().cast(),
                dictionary.len(),
            )
        })?;
        Ok(made)
    }

    /// Compresses `raw` into `out` and returns the number of bytes written.
    ///
    /// # Errors
    /// Internal if `out` is too small; `compress_bound` is enough.
    pub(crate) fn compress(&mut self, raw: &[u8], out: &mut [u8]) -> Result<usize> {
        // SAFETY: the context lives and no other thread uses it, since `self` is borrowed mutably;
        // both pointers are valid for their lengths, and the slices cannot overlap.
        check(unsafe {
            sys::ZSTD_compress2(
                self.context.as_ptr(),
                out.as_mut_ptr().cast(),
                out.len(),
                raw.as_ptr().cast(),
                raw.len(),
            )
        })
    }

    /// Memory that the context takes, bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        // SAFETY: `drop` has not run yet.
        let allocations = unsafe { self.allocations.as_ref() }.lock();
        allocations.iter().map(|(_, buf)| buf.footprint()).sum()
    }
}

/// Converts a result of zstd, which is a size or an error code.
fn check(result: usize) -> Result<usize> {
    // SAFETY: the function only takes a number.
    if unsafe { sys::ZSTD_isError(result) } == 0 {
        return Ok(result);
    }
    Err(Error::internal(format!("zstd: {}", get_error_name(result))))
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context is freed once, and before the memory of its allocations, which comes
        // from a box.
        unsafe {
            sys::ZSTD_freeCCtx(self.context.as_ptr());
            drop(Box::from_raw(self.allocations.as_ptr()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ZSTD_cParameter::ZSTD_c_compressionLevel;

    #[test]
    fn all_memory_of_a_context_is_known_and_freed() {
        let text: Vec<u8> = (0..300_000_u32).flat_map(|n| (n / 7).to_le_bytes()).collect();
        let mut out = vec![0; zstd::zstd_safe::compress_bound(text.len())];
        for _ in 0..2 {
            let mut context =
                Context::new(&[(ZSTD_c_compressionLevel, 19)], &text[..100_000]).unwrap();
            let empty = context.memory_bytes();
            let first = context.compress(&text, &mut out).unwrap();
            assert!(context.memory_bytes() > empty + (1 << 20));
            // SAFETY: the context lives.
            let of_zstd = unsafe { sys::ZSTD_sizeof_CCtx(context.context.as_ptr()) };
            assert!((of_zstd..of_zstd * 9 / 8).contains(&context.memory_bytes()));
            assert_eq!(context.compress(&text, &mut out).unwrap(), first);
        }
    }

    #[test]
    fn errors_of_zstd_are_returned() {
        let bad_level = Context::new(&[(ZSTD_cParameter::ZSTD_c_hashLog, 1_000)], b"");
        assert!(bad_level.is_err());
        let mut context = Context::new(&[(ZSTD_c_compressionLevel, 3)], b"words").unwrap();
        assert!(context.compress(&[7; 1000], &mut [0; 2]).is_err());
    }
}
