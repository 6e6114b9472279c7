//! The errors of a benchmark, by what the user must do about them.

use std::fmt;
use std::io;

/// A result with the benchmark's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Why a benchmark could not run, or why a measurement cannot be trusted.
#[derive(Debug)]
pub enum Error {
    /// The command line or the machine is unsuitable; the text says what to change.
    Usage(String),
    /// An engine reported an error. The text is the engine's own message.
    Engine(String),
    /// An engine gave a wrong answer, so its figures are worthless.
    Wrong(String),
    /// The operating system reported an error.
    Io {
        /// The failed action, with the path.
        doing: String,
        /// The error.
        source: io::Error,
    },
    /// A child process has measured nothing; the text says why.
    Child(String),
}

impl Error {
    /// Attaches the failed action to an I/O error: `map_err(Error::io("open x"))`.
    pub fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source }
    }

    /// Wraps an engine's error, with the engine's own message.
    pub fn engine(error: impl fmt::Display) -> Self {
        Self::Engine(error.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::Child(text) => f.write_str(text),
            Self::Engine(text) => write!(f, "the engine failed: {text}"),
            Self::Wrong(text) => write!(f, "the engine gave a wrong answer: {text}"),
            Self::Io { doing, source } => write!(f, "cannot {doing}: {source}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
