//! What the program says and how it exits when something did not work.
//!
//! A failure has a kind, a sentence, and where it helps a hint of what to do. The exit code follows
//! from the kind, so a script can tell "try again" from "look at the disk" without reading text.

use frondb::{CorruptionPlace, Error};
use serde::Serialize;

/// Exit codes with the kinds that lead to them and what to do: the table of
/// docs/operating/command-line.md and of `frondb help`.
pub(crate) const EXIT_CODES: &[(u8, &str, &str)] = &[
    (0, "", "done"),
    (1, "NotFound", "the key, tree, database or file is not there"),
    (2, "Usage, Invalid", "fix the command, the name, or the key"),
    (3, "Exists", "choose another name"),
    (
        4,
        "Busy, Conflict, Deadlock, LockTimeout",
        "try again; for a database in use, close it there",
    ),
    (5, "NoSpace", "free space on the disk"),
    (
        6,
        "Corruption",
        "look at the disk; run `frondb verify`; restore what is named, or save the rest: `frondb salvage`",
    ),
    (7, "Io", "look at the system's log"),
    (8, "Poisoned", "a sync failed: run the command again, recovery finds what the disk kept"),
    (9, "Unsupported", "use the newer version that wrote the database"),
    (10, "Input", "the file to load is broken, empty or does not fit: fix it"),
    (70, "Internal, Closed, Cancelled", "a bug: report it with the message"),
];

/// Where a corruption is.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Place {
    /// File, relative to the database's directory.
    pub(crate) file: String,
    /// Offset in it, bytes.
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
    /// Name of the kind.
    pub(crate) kind: &'static str,
    /// What happened, as a sentence.
    pub(crate) message: String,
    /// What to do, if more can be said than the kind says.
    hint: Option<String>,
    /// Where it is, if it is a corruption.
    pub(crate) place: Option<Place>,
    /// The reader of our output has gone: nothing to say, and no error.
    pub(crate) broken_pipe: bool,
}

impl Failure {
    fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, place: None, broken_pipe: false }
    }

    /// The command is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new("Usage", message)
    }

    /// Damage that was found, with a sentence that counts it.
    pub(crate) fn damaged(message: impl Into<String>) -> Self {
        Self::new("Corruption", message)
    }

    /// A file that was to be loaded is wrong.
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::new("Input", message)
    }

    /// The same as a fault of the file that is loaded, not of the command.
    pub(crate) fn of_input(self) -> Self {
        Self { kind: "Input", ..self }
    }

    /// A file of a newer version of this program.
    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::new("Unsupported", message)
    }

    /// The named thing is there already.
    pub(crate) fn exists(message: impl Into<String>) -> Self {
        Self::new("Exists", message)
    }

    /// The named thing is not there.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new("NotFound", message)
    }

    /// The same with `context: ` in front.
    pub(crate) fn context(mut self, context: impl std::fmt::Display) -> Self {
        self.message = format!("{context}: {}", self.message);
        self
    }

    /// The message with the place.
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
        row.map_or((70, "a bug: report it with the message"), |(code, _, hint)| (*code, *hint))
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        if self.broken_pipe { 0 } else { self.row().0 }
    }

    /// What to do; `None` where the message says it already.
    pub(crate) fn hint(&self) -> Option<&str> {
        match (&self.hint, self.row()) {
            (Some(hint), _) => Some(hint),
            (None, (1..=3, _)) => None,
            (None, (_, hint)) => Some(hint),
        }
    }

    /// The same with this to do.
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let place = error.place().map(Place::from);
        Self { place, ..Self::new(error.kind().name(), error.message()) }
    }
}

/// Errors of files and streams that are not the database's.
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
        let denied = error.kind() == ErrorKind::PermissionDenied;
        let hint = denied.then(|| "look at owner and mode of the file and its directories".into());
        Self { broken_pipe, hint, ..Self::new(kind, error.to_string()) }
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
