//! Errors on their way to JavaScript, where `lib/errors.js` makes a `FrondbError` of them.
//!
//! A failed call throws, or answers with, one text: the parts of the error with
//! [`SEPARATOR`] between them. A class of its own cannot be thrown from here without a reference to
//! it for each thread of JavaScript, and errors are rare enough to be parsed.

use frondb::{Error, ErrorKind};

/// Between the parts of an error. Messages of the engine escape control characters of keys.
const SEPARATOR: char = '\u{1f}';

/// The result of a call from JavaScript. The name is what the macros of napi-rs look for.
pub(crate) type Result<T> = std::result::Result<T, napi::Error<Origin>>;

/// Where an error comes from; `lib/errors.js` reads it as the `code` of what was thrown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The engine, or a check of this crate with the kinds of the engine.
    Engine,
    /// The conversion of an argument.
    Argument,
}

impl AsRef<str> for Origin {
    fn as_ref(&self) -> &str {
        match self {
            Self::Engine => "FRONDB",
            Self::Argument => "ERR_INVALID_ARG_TYPE",
        }
    }
}

impl From<napi::Status> for Origin {
    fn from(_: napi::Status) -> Self {
        Self::Argument
    }
}

/// Returns the text of an error: kind, message, file, offset, kind of block, error number.
pub(crate) fn text(error: &Error) -> String {
    let place = error.place();
    let parts = [
        error.kind().name().to_owned(),
        error.message().replace(SEPARATOR, " "),
        place.map(|place| place.file.clone()).unwrap_or_default(),
        place.map(|place| place.offset.to_string()).unwrap_or_default(),
        place.map(|place| place.what.to_owned()).unwrap_or_default(),
        error.os_error().map(|number| number.to_string()).unwrap_or_default(),
    ];
    parts.join(&SEPARATOR.to_string())
}

/// Makes an error of the engine one to throw.
#[cold]
pub(crate) fn thrown(error: &Error) -> napi::Error<Origin> {
    napi::Error::new(Origin::Engine, text(error))
}

/// Makes a result of the engine one that throws.
pub(crate) fn or_throw<T>(result: frondb::Result<T>) -> Result<T> {
    result.map_err(|error| thrown(&error))
}

/// Returns the error of a call on something that was closed.
#[cold]
pub(crate) fn closed(what: &str) -> Error {
    Error::new(ErrorKind::Closed, format!("the {what} was closed"))
}
