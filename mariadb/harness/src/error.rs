//! Errors of a test's server and of the harness.

use std::fmt;

/// The result of this crate's functions; without a type, of functions that return nothing.
pub type Result<T = ()> = std::result::Result<T, Error>;

/// An error of a test's server or of the harness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The server refused the statement; the connection stays usable.
    Server {
        /// The error's number, as in `SHOW ERRORS`.
        code: u16,
        /// The error's SQLSTATE.
        state: String,
        /// The error's message.
        message: String,
    },
    /// The connection is lost: the server has died or has closed the connection.
    Lost(String),
    /// Something did not happen within its time limit.
    Late(String),
    /// The harness itself failed.
    Harness(String),
}

impl Error {
    /// The number of the server's error; none for other errors.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Server { code, .. } => Some(*code),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server { code, state, message } => write!(f, "ERROR {code} ({state}): {message}"),
            Self::Lost(why) => write!(f, "connection lost: {why}"),
            Self::Late(what) | Self::Harness(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {}

/// A harness error about a file or a program.
pub(crate) fn harness(what: impl fmt::Display, why: impl fmt::Display) -> Error {
    Error::Harness(format!("{what}: {why}"))
}
