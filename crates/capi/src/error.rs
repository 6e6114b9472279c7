//! Errors as objects. An error has a kind that tells the caller what to do, a message, the
//! operating system's error number, and the place of a corruption. The functions with which C reads
//! and frees errors are in `error_fields`; they cannot be here, because they use `call`, and `call`
//! uses this module.

use std::ffi::CString;

use frondb::{Error, ErrorKind};

use crate::handle::{self, object};

/// An error. Every function that can fail returns a pointer to one, or NULL on success. The caller
/// owns it and frees it with frondb_error_free().
pub struct frondb_error {
    _private: [u8; 0],
}

object!(frondb_error, ErrorObject, Error);

/// What the caller should do about an error. The numbers never change; new ones may be added.
pub type frondb_kind = u32;
/// No error.
pub const FRONDB_OK: frondb_kind = 0;
/// Another transaction changed the row: retry the transaction.
pub const FRONDB_CONFLICT: frondb_kind = 1;
/// The transaction was the victim of a deadlock and was rolled back: retry it.
pub const FRONDB_DEADLOCK: frondb_kind = 2;
/// The call waited too long for a lock: retry the transaction.
pub const FRONDB_LOCK_TIMEOUT: frondb_kind = 3;
/// The resource is in use: retry the call. Also returned if another thread is using an object that
/// only one thread at a time may use.
pub const FRONDB_BUSY: frondb_kind = 4;
/// The call is wrong: fix it. Also returned for a handle that is NULL, freed, or of another type.
pub const FRONDB_INVALID: frondb_kind = 5;
/// The named thing does not exist.
pub const FRONDB_NOT_FOUND: frondb_kind = 6;
/// The named thing exists already.
pub const FRONDB_EXISTS: frondb_kind = 7;
/// The disk is full: free space. Reads still work, and writes resume on their own.
pub const FRONDB_NO_SPACE: frondb_kind = 8;
/// Data on disk is not what was written; see frondb_error_place().
pub const FRONDB_CORRUPTION: frondb_kind = 9;
/// It is unknown what is durable, because a write or an fsync failed, or a thread of the engine
/// panicked: close the database and open it again.
pub const FRONDB_POISONED: frondb_kind = 10;
/// The device or the operating system reported an error; see frondb_error_os_code().
pub const FRONDB_IO: frondb_kind = 11;
/// The database was closed.
pub const FRONDB_CLOSED: frondb_kind = 12;
/// The caller cancelled the operation.
pub const FRONDB_CANCELLED: frondb_kind = 13;
/// The data was written by a newer version, or needs a feature that this build does not have: use
/// a newer build.
pub const FRONDB_UNSUPPORTED: frondb_kind = 14;
/// A bug of the engine: please report it.
pub const FRONDB_INTERNAL: frondb_kind = 15;
/// The locks of all transactions take too much memory: end transactions, or make them smaller.
pub const FRONDB_TOO_MANY_LOCKS: frondb_kind = 16;

/// The kinds with their names, in the order of their numbers, from 1.
pub(crate) const KINDS: [(ErrorKind, &std::ffi::CStr); 16] = [
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
    (ErrorKind::TooManyLocks, c"TooManyLocks"),
];

/// Returns the number of a kind, or FRONDB_INTERNAL for a kind that is missing in [`KINDS`], which
/// would be a bug of this module.
pub(crate) fn number_of(kind: ErrorKind) -> frondb_kind {
    let at = KINDS.iter().position(|(known, _)| *known == kind);
    at.map_or(FRONDB_INTERNAL, |at| at as frondb_kind + 1)
}

/// An error with its texts as C strings.
pub struct ErrorObject {
    pub(crate) kind: frondb_kind,
    pub(crate) os_code: i32,
    pub(crate) message: CString,
    /// File, byte offset, and the kind of block or record at that place.
    pub(crate) place: Option<(CString, u64, CString)>,
}

/// Makes a C string of `text`, cut at the first zero byte if there is one.
pub(crate) fn c_string(text: &str) -> CString {
    let text = text.split('\0').next().unwrap_or_default();
    CString::new(text).unwrap_or_default()
}

/// Makes an error object for C.
#[cold]
pub(crate) fn make(error: Error) -> *mut frondb_error {
    let place = error.place();
    let object = ErrorObject {
        kind: number_of(error.kind()),
        os_code: error.os_error().unwrap_or(0),
        message: c_string(error.message()),
        place: place.map(|place| (c_string(&place.file), place.offset, c_string(place.what))),
    };
    // `insert` fails if the table is full, after millions of errors that were never freed. The
    // pointer is then not a handle: C sees that it is not NULL, and gets the kind FRONDB_INVALID
    // for it.
    handle::insert(object).unwrap_or(std::ptr::without_provenance_mut(1))
}
