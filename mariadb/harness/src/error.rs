//! What can go wrong between a test and its server.

use std::fmt;

/// Everything here returns this.
pub type Result<T = ()> = std::result::Result<T, Error>;

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The server refused the statement; the connection can be used on.
    Server {
        /// Number of the error, as `SHOW ERRORS` has it.
        code: u16,
        /// Its SQLSTATE.
        state: String,
        /// Its text.
        message: String,
    },
    /// The connection is gone: the server died or closed it.
    Lost(String),
    /// Something did not happen in time.
    Late(String),
    /// The harness itself cannot do what it was asked to.
    Harness(String),
}

impl Error {
    /// Number of the server's error; none if it was another one.
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

/// A sentence about a file or a program, as an error.
pub(crate) fn harness(what: impl fmt::Display, why: impl fmt::Display) -> Error {
    Error::Harness(format!("{what}: {why}"))
}
