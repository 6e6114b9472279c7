//! Errors of the program: message, hint and exit code.
//!
//! A failure has a kind, a message, and in some cases a hint. The kind determines the exit code, so
//! that a script can tell "try again" from "look at the disk" without reading text.

use std::path::Path;

use frondb::{CorruptionPlace, Error};
use serde::Serialize;

use crate::permission;

/// Exit codes, with the kinds of errors and what the user should do: the table of
/// docs/operating/command-line.md and of `frondb exit-codes`.
pub(crate) const EXIT_CODES: &[(u8, &str, &str)] = &[
    (0, "", "done"),
    (1, "NotFound", "the key, tree, database or file does not exist"),
    (2, "Usage, Invalid", "correct the command, the name or the key"),
    (3, "Exists", "choose another name"),
    (
        4,
        "Busy, Conflict, Deadlock, LockTimeout, TooManyLocks",
        "try again; if the database is open in another process, close it there; `stats` and `backup` ask that \
         process if it allows it (Options::attachable)",
    ),
    (5, "NoSpace", "free space on the disk"),
    (
        6,
        "Corruption",
        "check the disk; run `frondb verify`; restore a backup, or save the rest with `frondb salvage`",
    ),
    (
        7,
        "Io",
        "the message names the file and what the system refused; for an error of the device see the system's log",
    ),
    (
        8,
        "Poisoned",
        "a sync failed: run the command again, recovery will find what reached the disk",
    ),
    (9, "Unsupported", "use the newer version that wrote the database"),
    (10, "Input", "the file to load is damaged, empty or not a valid table: correct it"),
    (11, "Cancelled", "the command was stopped: run it again"),
    (70, "Internal, Closed", "this is a bug: report it with the message"),
];

/// The place of a corruption.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Place {
    /// File, relative to the database directory.
    pub(crate) file: String,
    /// Byte offset in the file.
    pub(crate) offset: u64,
    /// Kind of block or record.
    pub(crate) what: &'static str,
}

impl From<&CorruptionPlace> for Place {
    fn from(place: &CorruptionPlace) -> Self {
        Self { file: place.file.clone(), offset: place.offset, what: place.what }
    }
}

/// Why the program stops.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: &'static str,
    /// What happened, in words.
    pub(crate) message: String,
    /// A hint that replaces the hint of the kind.
    hint: Option<String>,
    /// Whether the system has denied a permission.
    is_denied: bool,
    /// The place of a corruption.
    pub(crate) place: Option<Place>,
    /// Whether the program stops because the reader of standard output has closed its end of the
    /// pipe. The program then prints no error, and its exit code is 0.
    pub(crate) broken_pipe: bool,
}

impl Failure {
    fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
            is_denied: false,
            place: None,
            broken_pipe: false,
        }
    }

    /// Makes a failure for a wrong command line.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new("Usage", message)
    }

    /// Makes a failure for damage that was found; the message says how much.
    pub(crate) fn damaged(message: impl Into<String>) -> Self {
        Self::new("Corruption", message)
    }

    /// Makes a failure for an invalid file to load.
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::new("Input", message)
    }

    /// Changes the kind of the failure to "Input": a file to load is invalid.
    pub(crate) fn of_input(self) -> Self {
        Self { kind: "Input", ..self }
    }

    /// Makes a failure for a file that a newer version of this program wrote.
    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::new("Unsupported", message)
    }

    /// Makes a failure for a database that is in use.
    pub(crate) fn busy(message: impl Into<String>) -> Self {
        Self::new("Busy", message)
    }

    /// Makes a failure for a named thing that exists already.
    pub(crate) fn exists(message: impl Into<String>) -> Self {
        Self::new("Exists", message)
    }

    /// Makes a failure for a named thing that does not exist.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new("NotFound", message)
    }

    /// Puts `context: ` before the message.
    pub(crate) fn context(mut self, context: impl std::fmt::Display) -> Self {
        self.message = format!("{context}: {}", self.message);
        self
    }

    /// If the failure is a denied permission, replaces the hint by one that names the path that
    /// denies access, on the way to `path` or in it, and its owner.
    pub(crate) fn about(mut self, path: &Path) -> Self {
        if self.is_denied {
            self.hint = permission::hint(path).or(self.hint);
        }
        self
    }

    /// Returns the message, with the place of a corruption if there is one.
    pub(crate) fn sentence(&self) -> String {
        match &self.place {
            Some(Place { file, offset, what }) => {
                format!("{} ({what} at offset {offset} of {file})", self.message)
            }
            None => self.message.clone(),
        }
    }

    fn row(&self) -> (u8, &'static str) {
        let of_kind = |kinds: &str| kinds.split(", ").any(|kind| kind == self.kind);
        let row = EXIT_CODES.iter().find(|(_, kinds, _)| of_kind(kinds));
        row.map_or((70, "this is a bug: report it with the message"), |(code, _, hint)| {
            (*code, *hint)
        })
    }

    pub(crate) fn code(&self) -> u8 {
        if self.broken_pipe { 0 } else { self.row().0 }
    }

    /// Returns the hint; `None` if the message makes clear what to do.
    pub(crate) fn hint(&self) -> Option<&str> {
        match (&self.hint, self.row()) {
            (Some(hint), _) => Some(hint),
            (None, (1..=3, _)) => None,
            (None, (_, hint)) => Some(hint),
        }
    }

    /// Replaces the hint of the kind.
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let place = error.place().map(Place::from);
        let os = error.os_error();
        let hint = os.and_then(of_system).map(str::to_owned);
        Self {
            place,
            hint,
            is_denied: is_denied(os),
            ..Self::new(error.kind().name(), error.message())
        }
    }
}

/// The error numbers (errno) of a denied permission.
const EPERM: i32 = 1;
const EACCES: i32 = 13;

fn is_denied(error: Option<i32>) -> bool {
    matches!(error, Some(EPERM | EACCES))
}

/// Returns the hint for an error number of Linux; `None` if the message alone tells the user what
/// to do.
fn of_system(error: i32) -> Option<&'static str> {
    Some(match error {
        EPERM | EACCES => "check owner and permissions of the file and its directories",
        5 => "the device failed: check the system's log",
        23 | 24 => "too many files are open: raise the limit (`ulimit -n`)",
        30 => "the file system is read-only: commands that only read work with --read-only",
        _ => return None,
    })
}

/// Converts errors of files and streams outside of the database.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        use std::io::ErrorKind;
        let kind = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "NoSpace",
            ErrorKind::NotFound => "NotFound",
            ErrorKind::IsADirectory | ErrorKind::NotADirectory => "Usage",
            _ => "Io",
        };
        let broken_pipe = error.kind() == ErrorKind::BrokenPipe;
        let os = error.raw_os_error();
        let hint = os.and_then(of_system).map(str::to_owned);
        Self { broken_pipe, hint, is_denied: is_denied(os), ..Self::new(kind, error.to_string()) }
    }
}

impl From<csv::Error> for Failure {
    fn from(error: csv::Error) -> Self {
        let message = error.to_string();
        match error.into_kind() {
            csv::ErrorKind::Io(error) => error.into(),
            _ => Self::input(message),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        std::io::Error::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use frondb::ErrorKind;

    use super::*;

    #[test]
    fn every_kind_of_the_engine_has_a_code() {
        for kind in [
            ErrorKind::Conflict,
            ErrorKind::Deadlock,
            ErrorKind::LockTimeout,
            ErrorKind::Busy,
            ErrorKind::Invalid,
            ErrorKind::NotFound,
            ErrorKind::Exists,
            ErrorKind::NoSpace,
            ErrorKind::Corruption,
            ErrorKind::Poisoned,
            ErrorKind::Io,
            ErrorKind::Closed,
            ErrorKind::Cancelled,
            ErrorKind::Unsupported,
            ErrorKind::Internal,
            ErrorKind::TooManyLocks,
        ] {
            let listed = EXIT_CODES
                .iter()
                .any(|(_, kinds, _)| kinds.split(", ").any(|listed| listed == kind.name()));
            assert!(listed, "{kind}");
        }
        assert_eq!(Failure::usage("x").code(), 2);
        assert_eq!(Failure::from(Error::new(ErrorKind::NoSpace, "x")).code(), 5);
    }

    #[test]
    fn a_corruption_names_its_place() {
        let failure = Failure::from(Error::corruption("data/1", 4096, "block", "wrong checksum"));
        assert_eq!(failure.sentence(), "wrong checksum (block at offset 4096 of data/1)");
        assert_eq!(failure.code(), 6);
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let pipe = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        assert_eq!(Failure::from(pipe).code(), 0);
    }
}
