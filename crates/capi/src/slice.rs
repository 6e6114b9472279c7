//! Memory of the caller: byte slices, strings, arrays, and places for results. The only module that
//! reads or writes it.
//!
//! The types here are made by C alone (their fields are private): a value of one is the caller's
//! promise that what it points to is there, and stays unchanged, until the call returns. That is
//! what each `unsafe` block rests on. A null pointer is no promise broken: it is an error.

use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;

use frondb::{Error, Result};

/// Bytes: a key, a value, an operand. May hold zero bytes. NULL with a length of 0 is empty; NULL
/// with another length is an error of the kind FRONDB_INVALID.
///
/// As an argument it must stay readable and unchanged until the function returns, no longer. Where
/// a function gives one, its documentation says how long it stays good.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct frondb_slice {
    /// The first byte.
    data: *const u8,
    /// How many bytes.
    len: usize,
}

// SAFETY: a slice is an address and a length; whoever follows it answers for what is there.
unsafe impl Send for frondb_slice {}
// SAFETY: as above; it has no interior to share.
unsafe impl Sync for frondb_slice {}

impl frondb_slice {
    /// No bytes, and not even an empty value.
    pub(crate) const NONE: Self = Self { data: std::ptr::null(), len: 0 };

    /// For C to look at `bytes`.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self { data: bytes.as_ptr(), len: bytes.len() }
    }

    /// What C gave.
    #[inline]
    pub(crate) fn bytes(&self) -> Result<&[u8]> {
        if self.len == 0 {
            return Ok(&[]);
        }
        if self.data.is_null() || self.len > isize::MAX as usize {
            return Err(bad_slice(self.len));
        }
        // SAFETY: not null, and `len` bytes are readable there by the caller's promise; the borrow
        // ends with the argument, that is with the call.
        Ok(unsafe { std::slice::from_raw_parts(self.data, self.len) })
    }
}

#[cold]
fn bad_slice(len: usize) -> Error {
    Error::invalid(format!("a slice of {len} bytes at NULL, or longer than memory"))
}

/// The bytes of a slice that may be left out.
pub(crate) fn optional_bytes(slice: Option<&frondb_slice>) -> Result<Option<&[u8]>> {
    slice.map(frondb_slice::bytes).transpose()
}

/// A string of C.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Text(*const c_char);

impl Text {
    fn c_str(&self, what: &str) -> Result<&CStr> {
        if self.0.is_null() {
            return Err(Error::invalid(format!("the {what} is NULL")));
        }
        // SAFETY: not null, and ends in a zero byte by the caller's promise.
        Ok(unsafe { CStr::from_ptr(self.0) })
    }

    /// Its characters.
    pub(crate) fn str(&self, what: &str) -> Result<&str> {
        let text = self.c_str(what)?.to_str();
        text.map_err(|_| Error::invalid(format!("the {what} is not UTF-8")))
    }

    /// It as a path, which may be any bytes.
    pub(crate) fn path(&self) -> Result<&std::path::Path> {
        use std::os::unix::ffi::OsStrExt;
        let bytes = self.c_str("path")?.to_bytes();
        Ok(std::path::Path::new(std::ffi::OsStr::from_bytes(bytes)))
    }
}

/// An array that C gives, without its length.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Array<T>(*const T);

impl<T> Array<T> {
    /// The `count` items in it.
    pub(crate) fn items(&self, count: usize) -> Result<&[T]> {
        if count == 0 {
            return Ok(&[]);
        }
        check_array(self.0.is_null(), count, size_of::<T>())?;
        // SAFETY: not null, and `count` items are readable there by the caller's promise; the borrow
        // ends with the argument, that is with the call.
        Ok(unsafe { std::slice::from_raw_parts(self.0, count) })
    }
}

/// An array of slices.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Slices(Array<frondb_slice>);

impl Slices {
    /// The bytes of each of `count` slices.
    pub(crate) fn bytes(&self, count: usize) -> Result<Vec<&[u8]>> {
        self.0.items(count)?.iter().map(frondb_slice::bytes).collect()
    }
}

fn check_array(is_null: bool, count: usize, item_bytes: usize) -> Result<()> {
    if is_null || count > isize::MAX as usize / item_bytes {
        return Err(Error::invalid(format!("an array of {count} at NULL, or longer than memory")));
    }
    Ok(())
}

/// An array for results.
#[repr(transparent)]
pub struct OutSlices(*mut frondb_slice);

impl OutSlices {
    /// Fails unless it can take `count`.
    pub(crate) fn check(&self, count: usize) -> Result<()> {
        if count == 0 { Ok(()) } else { check_array(self.0.is_null(), count, 16) }
    }

    /// Writes all of `slices`.
    pub(crate) fn write(&mut self, slices: &[frondb_slice]) -> Result<()> {
        self.check(slices.len())?;
        if !slices.is_empty() {
            // SAFETY: not null, and there is room for what was asked for by the caller's promise;
            // it cannot overlap memory of ours.
            unsafe { std::ptr::copy_nonoverlapping(slices.as_ptr(), self.0, slices.len()) };
        }
        Ok(())
    }
}

/// The caller's memory for a value.
#[repr(transparent)]
pub struct OutBytes(*mut u8);

impl OutBytes {
    /// Fails unless it can take `capacity` bytes.
    pub(crate) fn check(&self, capacity: usize) -> Result<()> {
        if capacity > 0 && self.0.is_null() {
            return Err(Error::invalid(format!("a buffer of {capacity} bytes at NULL")));
        }
        Ok(())
    }

    /// Writes as much of `bytes` as `capacity` has room for.
    pub(crate) fn write(&mut self, capacity: usize, bytes: &[u8]) -> Result<()> {
        self.check(capacity)?;
        let len = bytes.len().min(capacity);
        if len == 0 {
            return Ok(());
        }
        // SAFETY: not null, and `capacity` bytes are writable there by the caller's promise; it
        // cannot overlap memory of ours.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0, len) };
        Ok(())
    }
}

/// The place for a result, which must be there. (C makes the reference: NULL, or good.)
pub(crate) fn out<T>(place: Option<&mut MaybeUninit<T>>) -> Result<&mut MaybeUninit<T>> {
    place.ok_or_else(|| Error::invalid("the place for a result is NULL"))
}

/// The place for a flag, which must be there and is false until it is known.
pub(crate) fn out_flag(place: Option<&mut MaybeUninit<bool>>) -> Result<&mut MaybeUninit<bool>> {
    let place = out(place)?;
    place.write(false);
    Ok(place)
}

/// The place for a handle, NULL from now on, for who says later whether it must be there.
pub(crate) fn cleared<T>(
    mut place: Option<&mut MaybeUninit<*mut T>>,
) -> Option<&mut MaybeUninit<*mut T>> {
    if let Some(place) = &mut place {
        place.write(std::ptr::null_mut());
    }
    place
}

/// The place for a handle, which must be there and is NULL until there is one.
pub(crate) fn out_handle<T>(
    place: Option<&mut MaybeUninit<*mut T>>,
) -> Result<&mut MaybeUninit<*mut T>> {
    let place = out(place)?;
    place.write(std::ptr::null_mut());
    Ok(place)
}

/// Frees what a callback was given.
pub(crate) type FreeUserData = Option<extern "C" fn(user_data: *mut c_void)>;

/// What a callback of the caller is given, and gives back when it is dropped.
pub(crate) struct UserData {
    data: *mut c_void,
    free: FreeUserData,
}

// SAFETY: the pointer is only handed back, to functions that the caller promised any thread may
// call.
unsafe impl Send for UserData {}
// SAFETY: as above, and several threads at once.
unsafe impl Sync for UserData {}

impl UserData {
    pub(crate) fn new(data: *mut c_void, free: FreeUserData) -> Self {
        Self { data, free }
    }

    pub(crate) fn get(&self) -> *mut c_void {
        self.data
    }
}

impl Drop for UserData {
    fn drop(&mut self) {
        if let Some(free) = self.free {
            free(self.data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_is_empty_only_without_a_length() {
        assert_eq!(frondb_slice::NONE.bytes().unwrap(), b"");
        let bad = frondb_slice { data: std::ptr::null(), len: 1 };
        assert_eq!(bad.bytes().unwrap_err().kind(), frondb::ErrorKind::Invalid);
        assert_eq!(frondb_slice::of(b"a\0b").bytes().unwrap(), b"a\0b");
        assert!(Slices(Array(std::ptr::null())).bytes(0).unwrap().is_empty());
        assert!(Slices(Array(std::ptr::null())).bytes(1).is_err());
        assert!(OutBytes(std::ptr::null_mut()).write(1, b"x").is_err());
        assert!(OutSlices(std::ptr::null_mut()).write(&[frondb_slice::NONE]).is_err());
        assert!(Text(std::ptr::null()).str("name").is_err());
    }

    #[test]
    fn a_value_is_cut_at_the_capacity() {
        let mut memory = [7_u8; 4];
        OutBytes(memory.as_mut_ptr()).write(3, b"abcdef").unwrap();
        assert_eq!(memory, *b"abc\x07");
    }
}
