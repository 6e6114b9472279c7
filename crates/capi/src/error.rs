//! Errors as objects: a kind that says what to do, a message, the operating system's number, and the
//! place of a corruption.

use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;

use frondb::{Error, ErrorKind};

use crate::call::{call_or, free};
use crate::handle::{self, object};

/// What went wrong. Every function that can fail returns a pointer to one, or NULL if it
/// succeeded. It belongs to the caller, who frees it with frondb_error_free().
pub struct frondb_error {
    _private: [u8; 0],
}

object!(frondb_error, ErrorObject, Error);

/// What the caller must do about an error. The numbers never change; new ones may be added.
pub type frondb_kind = u32;
/// No error.
pub const FRONDB_OK: frondb_kind = 0;
/// Another transaction changed the row: retry the transaction.
pub const FRONDB_CONFLICT: frondb_kind = 1;
/// Chosen as the victim of a deadlock and rolled back: retry the transaction.
pub const FRONDB_DEADLOCK: frondb_kind = 2;
/// Waited too long for a lock: retry the transaction.
pub const FRONDB_LOCK_TIMEOUT: frondb_kind = 3;
/// In use just now: retry the call. Also where a second thread uses what is for one at a time.
pub const FRONDB_BUSY: frondb_kind = 4;
/// The call is wrong: fix it. Also for a handle that is NULL, freed, or of another type.
pub const FRONDB_INVALID: frondb_kind = 5;
/// The named thing does not exist.
pub const FRONDB_NOT_FOUND: frondb_kind = 6;
/// The named thing exists already.
pub const FRONDB_EXISTS: frondb_kind = 7;
/// The disk is full: free space. Reading goes on, and writing resumes by itself.
pub const FRONDB_NO_SPACE: frondb_kind = 8;
/// A byte on disk is not what was written; see frondb_error_place().
pub const FRONDB_CORRUPTION: frondb_kind = 9;
/// A failed fsync left the state of the disk unknown: close and open again.
pub const FRONDB_POISONED: frondb_kind = 10;
/// The device or the operating system reported an error; see frondb_error_os_code().
pub const FRONDB_IO: frondb_kind = 11;
/// The database was closed.
pub const FRONDB_CLOSED: frondb_kind = 12;
/// The caller cancelled the operation.
pub const FRONDB_CANCELLED: frondb_kind = 13;
/// Written by a newer version, or a feature this build does not have.
pub const FRONDB_UNSUPPORTED: frondb_kind = 14;
/// A bug of the engine: please report it.
pub const FRONDB_INTERNAL: frondb_kind = 15;

/// The kinds with their names, in the order of their numbers from 1.
const KINDS: [(ErrorKind, &std::ffi::CStr); 15] = [
    (ErrorKind::Conflict, c"Conflict"),
    (ErrorKind::Deadlock, c"Deadlock"),
    (ErrorKind::LockTimeout, c"LockTimeout"),
    (ErrorKind::Busy, c"Busy"),
    (ErrorKind::Invalid, c"Invalid"),
    (ErrorKind::NotFound, c"NotFound"),
    (ErrorKind::Exists, c"Exists"),
    (ErrorKind::NoSpace, c"NoSpace"),
    (ErrorKind::Corruption, c"Corruption"),
    (ErrorKind::Poisoned, c"Poisoned"),
    (ErrorKind::Io, c"Io"),
    (ErrorKind::Closed, c"Closed"),
    (ErrorKind::Cancelled, c"Cancelled"),
    (ErrorKind::Unsupported, c"Unsupported"),
    (ErrorKind::Internal, c"Internal"),
];

/// The number of a kind. One that this interface does not know yet is a bug of it.
pub(crate) fn number_of(kind: ErrorKind) -> frondb_kind {
    let at = KINDS.iter().position(|(known, _)| *known == kind);
    at.map_or(FRONDB_INTERNAL, |at| at as frondb_kind + 1)
}

/// An error with its texts as C wants them.
pub struct ErrorObject {
    kind: frondb_kind,
    os_code: i32,
    message: CString,
    place: Option<(CString, u64, CString)>,
}

/// A string for C: it ends at the first zero byte if it has one.
pub(crate) fn c_string(text: &str) -> CString {
    let text = text.split('\0').next().unwrap_or_default();
    CString::new(text).unwrap_or_default()
}

/// An error as an object for C.
#[cold]
pub(crate) fn make(error: Error) -> *mut frondb_error {
    let place = error.place();
    let object = ErrorObject {
        kind: number_of(error.kind()),
        os_code: error.os_error().unwrap_or(0),
        message: c_string(error.message()),
        place: place.map(|place| (c_string(&place.file), place.offset, c_string(place.what))),
    };
    // With millions of errors that nobody freed: a pointer that is no handle. It is not NULL, and
    // its kind is Invalid.
    handle::insert(object).unwrap_or(std::ptr::without_provenance_mut(1))
}

/// What to do about the error; FRONDB_OK for NULL. FRONDB_INVALID for what is no error.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_error_kind(error: *mut frondb_error) -> frondb_kind {
    if error.is_null() {
        return FRONDB_OK;
    }
    call_or(FRONDB_INVALID, || Ok(handle::shared::<ErrorObject>(error)?.kind))
}

/// What happened, as a sentence: never NULL, good until the error is freed.
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

/// The operating system's error number (errno), if it reported one; else 0.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_error_os_code(error: *mut frondb_error) -> i32 {
    call_or(0, || Ok(handle::shared::<ErrorObject>(error)?.os_code))
}

/// Where a corruption is.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct frondb_place {
    /// File, relative to the database directory. Good until the error is freed.
    file: *const c_char,
    /// What kind of block or record is there. Good until the error is freed.
    what: *const c_char,
    /// Byte offset in the file.
    offset: u64,
}

/// Where the corruption is. Returns whether the error has a place; `place` is written only then.
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

/// The name of a kind, for example "LockTimeout"; "?" for a number that is none. Always good.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_kind_name(kind: frondb_kind) -> *const c_char {
    if kind == FRONDB_OK {
        return c"Ok".as_ptr();
    }
    KINDS.get(kind as usize - 1).map_or(c"?", |(_, name)| name).as_ptr()
}

/// Frees an error. NULL is ignored. Returns FRONDB_OK, or FRONDB_INVALID for what is no error or was
/// freed.
///
/// Threads: any; the last call with this error.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_error_free(error: *mut frondb_error) -> frondb_kind {
    free::<ErrorObject>(error)
}

#[cfg(test)]
mod tests {
    use super::*;
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
        ];
        for (number, (kind, name)) in numbers.into_iter().zip(KINDS) {
            assert_eq!(number_of(kind), number);
            assert_eq!(name.to_str().unwrap(), kind.name());
            // SAFETY: a string that is always there.
            assert_eq!(unsafe { CStr::from_ptr(frondb_kind_name(number)) }, name);
        }
    }

    #[test]
    fn a_corruption_keeps_its_place() {
        let error = make(Error::corruption("data/1", 77, "block", "is \0 bad"));
        assert_eq!(frondb_error_kind(error), FRONDB_CORRUPTION);
        let mut place = MaybeUninit::uninit();
        assert!(frondb_error_place(error, Some(&mut place)));
        // SAFETY: written, as the function said.
        let place = unsafe { place.assume_init() };
        assert_eq!(place.offset, 77);
        // SAFETY: a string until the error is freed.
        assert_eq!(unsafe { CStr::from_ptr(place.file) }, c"data/1");
        // SAFETY: as above.
        assert_eq!(unsafe { CStr::from_ptr(frondb_error_message(error)) }, c"is ");
        assert_eq!(frondb_error_free(error), FRONDB_OK);
        assert_eq!(frondb_error_free(error), FRONDB_INVALID);
        assert_eq!(frondb_error_kind(error), FRONDB_INVALID);
    }
}
