//! Errors by kind. The kind says what the caller must do. The message says what happened, with the
//! numbers. An error about damaged data, or about data that the device could not read, also has the
//! place of the data. The kinds do not depend on upper layers.

use std::fmt;

/// Result of any operation of the engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an [`Error`], which says what the caller must do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Another transaction changed the row: roll the transaction back and run it again.
    Conflict,
    /// The transaction was the victim of a deadlock, and FronDB has rolled it back: run it again.
    Deadlock,
    /// Another transaction keeps a row or range locked: try again. `Db::locks` lists all locks,
    /// `Db::lock_waits` the blockers of each waiting transaction.
    LockTimeout,
    /// Another process, call or prepared transaction uses the database or object: try again. Also if
    /// the row is locked, and the read has `NoWait`, or is a get of one key with `SkipLocked` or
    /// `ShowLocked`.
    Busy,
    /// The call is wrong: the message says which key, value or option, and the limit.
    Invalid,
    /// The database, tree or key does not exist.
    NotFound,
    /// The database, tree or key exists already.
    Exists,
    /// The disk is full: free space. Meanwhile reading, deleting and dropping work; when there is
    /// space, writing resumes without a command.
    NoSpace,
    /// Stored bytes have changed. The message and [`Error::place`] name file, offset and kind of
    /// block. Run `frondb verify`, check the disk, restore the data or salvage it.
    Corruption,
    /// A sync or other essential work failed, or a thread panicked, so it is unknown which bytes are
    /// on the disk. The message says what failed. Close and open the database; recovery reads what
    /// is there.
    Poisoned,
    /// The operating system reported an error, which the message names. Check owner and mode of the
    /// file ("permission denied"), or the system's log (an error of the device).
    Io,
    /// Not a fault: the database or the handle was closed.
    Closed,
    /// Not a fault: the caller cancelled the call.
    Cancelled,
    /// A newer version of FronDB wrote the data, or this build lacks a feature: use that version.
    Unsupported,
    /// A bug in FronDB: please report it, with the message.
    Internal,
    /// The locks of all transactions take a quarter of the memory, and rows of large transactions are
    /// too interleaved for range locks: end transactions, write fewer rows in one, or raise
    /// `memory_bytes`.
    TooManyLocks,
}

impl ErrorKind {
    /// Returns the kind's name, as in messages and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Conflict => "Conflict",
            Self::Deadlock => "Deadlock",
            Self::LockTimeout => "LockTimeout",
            Self::Busy => "Busy",
            Self::Invalid => "Invalid",
            Self::NotFound => "NotFound",
            Self::Exists => "Exists",
            Self::NoSpace => "NoSpace",
            Self::Corruption => "Corruption",
            Self::Poisoned => "Poisoned",
            Self::Io => "Io",
            Self::Closed => "Closed",
            Self::Cancelled => "Cancelled",
            Self::Unsupported => "Unsupported",
            Self::Internal => "Internal",
            Self::TooManyLocks => "TooManyLocks",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The place of a corruption, or of data that the device could not read.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CorruptionPlace {
    /// File, relative to the database directory.
    pub file: String,
    /// Byte offset in that file.
    pub offset: u64,
    /// The kind of block or record at this place, for example `data block` or `wal record`; `data`
    /// if the device could not read the place.
    pub what: &'static str,
}

/// An error: its kind, a message with the facts, and the place of damage.
///
/// An error can be cloned, so that one failed flush can be reported to every waiting writer.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    place: Option<CorruptionPlace>,
    os: Option<i32>,
}

impl Error {
    /// Creates an error of `kind` with a message that says what happened.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, message: message.into(), place: None, os: None }))
    }

    /// Creates the error of a wrong call.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// Creates the error of a bug of the engine.
    #[must_use]
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// Creates the error of data on disk that is not what was written. Corruptions are created here
    /// and not with [`new`](Self::new), so that they have a place.
    #[must_use]
    pub fn corruption(
        file: impl Into<String>,
        offset: u64,
        what: &'static str,
        message: impl Into<String>,
    ) -> Self {
        let place = CorruptionPlace { file: file.into(), offset, what };
        Self(Box::new(Inner {
            kind: ErrorKind::Corruption,
            message: message.into(),
            place: Some(place),
            os: None,
        }))
    }

    /// Creates the error of an `action` on `file` for which the operating system returned `source`.
    /// ENOSPC and EDQUOT become [`ErrorKind::NoSpace`], ENOENT becomes [`ErrorKind::NotFound`], all
    /// others [`ErrorKind::Io`].
    #[must_use]
    pub fn io(action: &str, file: &str, source: &std::io::Error) -> Self {
        let os = source.raw_os_error();
        let kind = match os {
            Some(28 | 122) => ErrorKind::NoSpace,
            _ if source.kind() == std::io::ErrorKind::NotFound => ErrorKind::NotFound,
            _ => ErrorKind::Io,
        };
        let message = format!("cannot {action} {file}: {source}");
        Self(Box::new(Inner { kind, message, place: None, os }))
    }

    /// Returns the error with the place of the data that the device could not read.
    #[must_use]
    pub fn unreadable_at(mut self, file: impl Into<String>, offset: u64) -> Self {
        self.0.place = Some(CorruptionPlace { file: file.into(), offset, what: "data" });
        self
    }

    /// Returns the kind, which says what the caller must do.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the message, without kind and place.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the place of a corruption, or of data that the device could not read; `None` for
    /// other errors.
    #[must_use]
    pub fn place(&self) -> Option<&CorruptionPlace> {
        self.0.place.as_ref()
    }

    /// Returns the error number of the operating system, if it reported one.
    #[must_use]
    pub fn os_error(&self) -> Option<i32> {
        self.0.os
    }

    /// Returns the error with `context: ` before its message.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.0.message = format!("{context}: {}", self.0.message);
        self
    }

    /// Returns the error with another kind; for example, `Io` of a failed fsync becomes `Poisoned`.
    #[must_use]
    pub fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.0.kind = kind;
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.kind, self.0.message)?;
        if let Some(place) = &self.0.place {
            write!(f, " ({} at offset {} of {})", place.what, place.offset, place.file)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

/// Converts the error to the closest `std` kind; an `Io` error gets the kind of the operating
/// system's error, if there was one. The new error contains this one, so `downcast` returns this
/// one. A conflict becomes `Other` and not `Interrupted`, because callers in `std` repeat a call
/// that was `Interrupted`.
impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        use std::io::ErrorKind as Io;
        let kind = match error.kind() {
            ErrorKind::Deadlock => Io::Deadlock,
            ErrorKind::LockTimeout => Io::TimedOut,
            ErrorKind::Busy => Io::ResourceBusy,
            ErrorKind::Invalid => Io::InvalidInput,
            ErrorKind::NotFound => Io::NotFound,
            ErrorKind::Exists => Io::AlreadyExists,
            ErrorKind::NoSpace => Io::StorageFull,
            ErrorKind::Corruption => Io::InvalidData,
            ErrorKind::Unsupported => Io::Unsupported,
            ErrorKind::Io => {
                error.os_error().map_or(Io::Other, |os| Self::from_raw_os_error(os).kind())
            }
            ErrorKind::Conflict
            | ErrorKind::TooManyLocks
            | ErrorKind::Poisoned
            | ErrorKind::Closed
            | ErrorKind::Cancelled
            | ErrorKind::Internal => Io::Other,
        };
        // A caller in `std` would repeat an `Interrupted` call for ever.
        Self::new(if kind == Io::Interrupted { Io::Other } else { kind }, error)
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn an_error_of_io_has_the_closest_kind_and_the_error_inside() {
        for (error, kind) in [
            (Error::invalid("x"), io::ErrorKind::InvalidInput),
            (Error::new(ErrorKind::NotFound, "x"), io::ErrorKind::NotFound),
            (Error::new(ErrorKind::NoSpace, "x"), io::ErrorKind::StorageFull),
            (Error::corruption("f", 7, "block", "x"), io::ErrorKind::InvalidData),
            (Error::new(ErrorKind::Cancelled, "x"), io::ErrorKind::Other),
            // EACCES and EINTR.
            (
                Error::io("open", "f", &io::Error::from_raw_os_error(13)),
                io::ErrorKind::PermissionDenied,
            ),
            (Error::io("read", "f", &io::Error::from_raw_os_error(4)), io::ErrorKind::Other),
        ] {
            let converted = io::Error::from(error.clone());
            assert_eq!(converted.kind(), kind, "{error}");
            assert_eq!(converted.to_string(), error.to_string());
            let inside = converted.downcast::<Error>().map(|inside| inside.kind());
            assert_eq!(inside.ok(), Some(error.kind()));
        }
    }
}
