//! The caller's memory: byte slices, strings, arrays, and places for results. No other module reads
//! or writes this memory.
//!
//! Arguments of these types come from C: their fields are private, and Rust makes only slices for C
//! to read (`frondb_slice::of`). An argument is the caller's promise that the memory it points to
//! is valid and unchanged until the call returns; every `unsafe` block here relies on that promise.
//! A null pointer does not break the promise: the function returns an error.

use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;

use frondb::{Error, Result};

/// Bytes: a key, a value, an operand. May contain zero bytes. NULL with length 0 is empty; NULL
/// with another length is an error of the kind FRONDB_INVALID.
///
/// The bytes of an argument must stay readable and unchanged until the function returns, but no
/// longer. Where a function returns a slice, its comment says how long the bytes stay valid.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct frondb_slice {
    /// The first byte.
    data: *const u8,
    /// The number of bytes.
    len: usize,
}

// SAFETY: a slice is an address and a length; only `bytes` dereferences it, relying on the promise
// above.
unsafe impl Send for frondb_slice {}
// SAFETY: as above; it has no interior mutability.
unsafe impl Sync for frondb_slice {}

impl frondb_slice {
    /// The slice of a missing value: `data` is NULL, which C can distinguish from an empty value.
    pub(crate) const NONE: Self = Self { data: std::ptr::null(), len: 0 };

    /// Makes a slice of `bytes` for C to read.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self { data: bytes.as_ptr(), len: bytes.len() }
    }

    /// Returns the bytes that C passed; `Invalid` if the slice is NULL with a length, or longer
    /// than the address space.
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
    Error::invalid(format!(
        "a slice of {len} bytes points to NULL or is longer than the address space"
    ))
}

/// Returns the bytes of a slice; `None` if C passed NULL instead of a slice.
pub(crate) fn optional_bytes(slice: Option<&frondb_slice>) -> Result<Option<&[u8]>> {
    slice.map(frondb_slice::bytes).transpose()
}

/// A C string.
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

    /// Returns the string; `Invalid` if it is NULL or not UTF-8. `what` is the name of the string
    /// in errors.
    pub(crate) fn str(&self, what: &str) -> Result<&str> {
        let text = self.c_str(what)?.to_str();
        text.map_err(|_| Error::invalid(format!("the {what} is not UTF-8")))
    }

    /// Returns the string as a path, which may be any bytes.
    pub(crate) fn path(&self) -> Result<&std::path::Path> {
        Ok(as_path(self.c_str("path")?))
    }
}

/// A C string that may be NULL.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct OptionalText(*const c_char);

impl OptionalText {
    /// Returns the string as a path; `None` for NULL.
    pub(crate) fn path(&self) -> Result<Option<&std::path::Path>> {
        if self.0.is_null() {
            return Ok(None);
        }
        // SAFETY: not null, and ends in a zero byte by the caller's promise; the borrow ends with
        // the argument, that is with the call.
        let text = unsafe { CStr::from_ptr(self.0) };
        Ok(Some(as_path(text)))
    }
}

fn as_path(text: &CStr) -> &std::path::Path {
    use std::os::unix::ffi::OsStrExt;
    std::path::Path::new(std::ffi::OsStr::from_bytes(text.to_bytes()))
}

/// An array passed by C; its length is a separate argument.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Array<T>(*const T);

impl<T> Array<T> {
    /// Returns the array's `count` items.
    pub(crate) fn items(&self, count: usize) -> Result<&[T]> {
        if count == 0 {
            return Ok(&[]);
        }
        check_array(self.0.is_null(), count, size_of::<T>())?;
        // SAFETY: not null, and `count` items are readable there by the caller's promise; the
        // borrow ends with the argument, that is with the call.
        Ok(unsafe { std::slice::from_raw_parts(self.0, count) })
    }
}

/// An array of C strings.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Texts(Array<Text>);

impl Texts {
    /// Returns the `count` strings as paths.
    pub(crate) fn paths(&self, count: usize) -> Result<Vec<&std::path::Path>> {
        self.0.items(count)?.iter().map(Text::path).collect()
    }
}

/// An array of slices.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Slices(Array<frondb_slice>);

impl Slices {
    /// Returns the bytes of each of the `count` slices.
    pub(crate) fn bytes(&self, count: usize) -> Result<Vec<&[u8]>> {
        self.0.items(count)?.iter().map(frondb_slice::bytes).collect()
    }
}

fn check_array(is_null: bool, count: usize, item_bytes: usize) -> Result<()> {
    if is_null || count > isize::MAX as usize / item_bytes {
        return Err(Error::invalid(format!(
            "an array of {count} items points to NULL or is longer than the address space"
        )));
    }
    Ok(())
}

/// An array of slices for results.
#[repr(transparent)]
pub struct OutSlices(*mut frondb_slice);

impl OutSlices {
    /// Fails if the array is NULL but must take slices, or `count` slices exceed the address space.
    pub(crate) fn check(&self, count: usize) -> Result<()> {
        if count == 0 { Ok(()) } else { check_array(self.0.is_null(), count, 16) }
    }

    /// Writes all of `slices`.
    pub(crate) fn write(&mut self, slices: &[frondb_slice]) -> Result<()> {
        self.check(slices.len())?;
        if !slices.is_empty() {
            // SAFETY: not null, and by the caller's promise the array has room for this many
            // slices; it cannot overlap memory of this library.
            unsafe { std::ptr::copy_nonoverlapping(slices.as_ptr(), self.0, slices.len()) };
        }
        Ok(())
    }
}

/// Memory of the caller for a value.
#[repr(transparent)]
pub struct OutBytes(*mut u8);

impl OutBytes {
    /// Fails if the memory is NULL and `capacity` is not 0.
    pub(crate) fn check(&self, capacity: usize) -> Result<()> {
        if capacity > 0 && self.0.is_null() {
            return Err(Error::invalid(format!("a buffer of {capacity} bytes points to NULL")));
        }
        Ok(())
    }

    /// Writes as many of `bytes` as fit into `capacity`.
    pub(crate) fn write(&mut self, capacity: usize, bytes: &[u8]) -> Result<()> {
        self.check(capacity)?;
        let len = bytes.len().min(capacity);
        if len == 0 {
            return Ok(());
        }
        // SAFETY: not null, and `capacity` bytes are writable there by the caller's promise; it
        // cannot overlap memory of this library.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0, len) };
        Ok(())
    }
}

/// Returns the caller's place for a result; `Invalid` if C passed NULL. (The reference comes from
/// C. By the caller's promise the pointer is NULL, which is `None`, or valid.)
pub(crate) fn out<T>(place: Option<&mut MaybeUninit<T>>) -> Result<&mut MaybeUninit<T>> {
    place.ok_or_else(|| Error::invalid("the pointer for a result is NULL"))
}

/// Returns the caller's place for a flag; `Invalid` if C passed NULL. Writes false to the place;
/// false remains if the call fails.
pub(crate) fn out_flag(place: Option<&mut MaybeUninit<bool>>) -> Result<&mut MaybeUninit<bool>> {
    let place = out(place)?;
    place.write(false);
    Ok(place)
}

/// Writes NULL to the caller's place for a handle; NULL remains if the call fails. Returns `None`
/// if C passed no place. A function that needs the place checks that later.
pub(crate) fn cleared<T>(
    mut place: Option<&mut MaybeUninit<*mut T>>,
) -> Option<&mut MaybeUninit<*mut T>> {
    if let Some(place) = &mut place {
        place.write(std::ptr::null_mut());
    }
    place
}

/// Returns the caller's place for a handle; `Invalid` if C passed NULL. Writes NULL to the place;
/// NULL remains if the call fails.
pub(crate) fn out_handle<T>(
    place: Option<&mut MaybeUninit<*mut T>>,
) -> Result<&mut MaybeUninit<*mut T>> {
    let place = out(place)?;
    place.write(std::ptr::null_mut());
    Ok(place)
}

/// The function of the caller that frees the user data of a callback.
pub(crate) type FreeUserData = Option<extern "C" fn(user_data: *mut c_void)>;

/// The user data of a callback. The drop frees them with the function of the caller, if there is
/// one.
pub(crate) struct UserData {
    data: *mut c_void,
    free: FreeUserData,
}

// SAFETY: the pointer is only passed back, to functions that any thread may call by the caller's
// promise.
unsafe impl Send for UserData {}
// SAFETY: as above; several threads may call them at the same time.
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
