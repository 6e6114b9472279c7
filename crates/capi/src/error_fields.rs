//! The functions with which C reads an error's kind, message, number and place, and frees it.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use crate::call::{call_or, free};
use crate::error::{ErrorObject, FRONDB_INVALID, FRONDB_OK, KINDS, frondb_error, frondb_kind};
use crate::handle;

/// Returns the kind of an error; FRONDB_OK for NULL, FRONDB_INVALID for a pointer that is not an
/// error.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_error_kind(error: *mut frondb_error) -> frondb_kind {
    if error.is_null() {
        return FRONDB_OK;
    }
    call_or(FRONDB_INVALID, || Ok(handle::shared::<ErrorObject>(error)?.kind))
}

/// Returns a description of the error. The text is never NULL, and valid until the error is freed.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_error_message(error: *mut frondb_error) -> *const c_char {
    if error.is_null() {
        return c"no error".as_ptr();
    }
    let otherwise = c"not an error of FronDB, or one that was freed".as_ptr();
    call_or(otherwise, || Ok(handle::shared::<ErrorObject>(error)?.message.as_ptr()))
}

/// Returns the operating system's error number (errno) if the operating system reported the error;
/// otherwise 0.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_error_os_code(error: *mut frondb_error) -> i32 {
    call_or(0, || Ok(handle::shared::<ErrorObject>(error)?.os_code))
}

/// The place of a corruption, or of data that the device could not read.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct frondb_place {
    /// File, relative to the database directory. Valid until the error is freed.
    file: *const c_char,
    /// Kind of the block or record at this offset. Valid until the error is freed.
    what: *const c_char,
    /// Byte offset in the file.
    offset: u64,
}

/// Writes the place of a corruption, or of data that the device could not read, to `place`. Returns
/// false and writes nothing if the error has no place, or `place` is NULL.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_error_place(
    error: *mut frondb_error,
    place: Option<&mut MaybeUninit<frondb_place>>,
) -> bool {
    call_or(false, || {
        let error = handle::shared::<ErrorObject>(error)?;
        let (Some((file, offset, what)), Some(place)) = (&error.place, place) else {
            return Ok(false);
        };
        let found = frondb_place { file: file.as_ptr(), what: what.as_ptr(), offset: *offset };
        place.write(found);
        Ok(true)
    })
}

/// Returns the name of a kind, for example "LockTimeout"; "?" for an unknown number. The text is
/// valid forever.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_kind_name(kind: frondb_kind) -> *const c_char {
    if kind == FRONDB_OK {
        return c"Ok".as_ptr();
    }
    KINDS.get(kind as usize - 1).map_or(c"?", |(_, name)| name).as_ptr()
}

/// Frees an error; NULL is ignored. Returns FRONDB_OK, or FRONDB_INVALID for a pointer that is not
/// an error or was freed before.
///
/// Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses the error. Texts that
/// were taken from the error are no longer valid afterwards.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_error_free(error: *mut frondb_error) -> frondb_kind {
    free::<ErrorObject>(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::*;
    use frondb::Error;
    use std::ffi::CStr;

    #[test]
    fn kinds_have_their_numbers_and_names() {
        let numbers = [
            FRONDB_CONFLICT,
            FRONDB_DEADLOCK,
            FRONDB_LOCK_TIMEOUT,
            FRONDB_BUSY,
            FRONDB_INVALID,
            FRONDB_NOT_FOUND,
            FRONDB_EXISTS,
            FRONDB_NO_SPACE,
            FRONDB_CORRUPTION,
            FRONDB_POISONED,
            FRONDB_IO,
            FRONDB_CLOSED,
            FRONDB_CANCELLED,
            FRONDB_UNSUPPORTED,
            FRONDB_INTERNAL,
            FRONDB_TOO_MANY_LOCKS,
        ];
        for (number, (kind, name)) in numbers.into_iter().zip(KINDS) {
            assert_eq!(number_of(kind), number);
            assert_eq!(name.to_str().unwrap(), kind.name());
            // SAFETY: the name is a static C string.
            assert_eq!(unsafe { CStr::from_ptr(frondb_kind_name(number)) }, name);
        }
    }

    #[test]
    fn a_corruption_keeps_its_place() {
        let error = make(Error::corruption("data/1", 77, "block", "is \0 bad"));
        assert_eq!(frondb_error_kind(error), FRONDB_CORRUPTION);
        let mut place = MaybeUninit::uninit();
        assert!(frondb_error_place(error, Some(&mut place)));
        // SAFETY: the function wrote the place, because it returned true.
        let place = unsafe { place.assume_init() };
        assert_eq!(place.offset, 77);
        // SAFETY: a C string that is valid until the error is freed.
        assert_eq!(unsafe { CStr::from_ptr(place.file) }, c"data/1");
        // SAFETY: as above.
        assert_eq!(unsafe { CStr::from_ptr(frondb_error_message(error)) }, c"is ");
        assert_eq!(frondb_error_free(error), FRONDB_OK);
        assert_eq!(frondb_error_free(error), FRONDB_INVALID);
        assert_eq!(frondb_error_kind(error), FRONDB_INVALID);
    }
}
