//! Errors that the server reports, and the loss of the connection.

use std::fmt;

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a statement failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Error {
    /// The server refused the statement, with this error number and message; the session continues.
    /// The number is 0 for a refusal of this program.
    Server(u32, String),
    /// The run must stop: the session ended or could not start, or this program met an obstacle.
    Lost(String),
}

impl Error {
    /// Parses a line that the client program prints: `ERROR 1217 (23000) at line 3: text`.
    pub(crate) fn of_server(printed: &str) -> Self {
        let number = printed.split(' ').nth(1).and_then(|number| number.parse().ok()).unwrap_or(0);
        let text = printed.split_once(": ").map_or(printed, |(_, text)| text);
        Self::Server(number, text.to_owned())
    }
}

impl Error {
    /// Whether the session cannot execute another statement: an error of the client (2000 to 2999),
    /// a KILL, a shutdown.
    pub(crate) fn ends_session(&self) -> bool {
        matches!(self, Self::Server(1053 | 1927 | 2000..=2999, _))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(number, text) => write!(f, "error {number}: {text}"),
            Self::Lost(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_error_is_taken_apart() {
        let printed = "ERROR 1217 (23000) at line 3: Cannot delete: a foreign key";
        let expected = Error::Server(1217, "Cannot delete: a foreign key".to_owned());
        assert_eq!(Error::of_server(printed), expected);
    }
}
