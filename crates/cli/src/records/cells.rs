//! How the cells of a table are read and written.
//!
//! By default a text cell is literal: its characters are the characters of the key or value, and a
//! backslash has no special meaning. No literal cell can hold NUL, or bytes that are not UTF-8.
//! `dump` and `load` refuse such bytes, because programs that read tables drop or change them. With
//! `--escapes` a cell is written as on the command line and can hold any bytes.

use std::borrow::Cow;

use crate::encoding::Encoding;
use crate::failure::Failure;

/// Hint for a dump of bytes that no literal cell can hold.
pub(super) const DUMP_HINT: &str =
    "--escapes, --keys or --values hex or base64, and --format binary hold any bytes";
/// Hint for a file to load with a NUL byte in a cell, or with bytes that are not UTF-8.
pub(super) const LOAD_HINT: &str = "a table is text in UTF-8: convert the file";

/// How the cells of a column are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cells {
    /// Text without escapes.
    Literal,
    /// Text with the encoding of the command line.
    Encoded(Encoding),
}

impl Cells {
    /// Returns the cells of an encoding; text has escapes only if `escapes` is set.
    pub(crate) fn of(encoding: Encoding, escapes: bool) -> Self {
        if encoding == Encoding::Text && !escapes { Self::Literal } else { Self::Encoded(encoding) }
    }

    /// Returns the cell for `bytes`, or the reason why no cell can hold them.
    pub(super) fn write(self, bytes: &[u8]) -> Result<Cow<'_, [u8]>, &'static str> {
        match self {
            Self::Literal => text(bytes).map(|text| Cow::Borrowed(text.as_bytes())),
            Self::Encoded(encoding) => Ok(Cow::Owned(encoding.encode(bytes).into_bytes())),
        }
    }

    /// Returns the bytes that a cell stands for.
    pub(super) fn read(self, cell: &[u8]) -> Result<Vec<u8>, Failure> {
        let text = text(cell)
            .map_err(|why| Failure::input(format!("a cell {why}")).with_hint(LOAD_HINT))?;
        match self {
            Self::Literal => Ok(cell.to_vec()),
            Self::Encoded(encoding) => encoding.decode(text).map_err(Failure::of_input),
        }
    }
}

/// Returns bytes as text if they are UTF-8 without NUL, because every program that reads tables
/// keeps such text unchanged; otherwise returns what is wrong with the bytes.
pub(super) fn text(bytes: &[u8]) -> Result<&str, &'static str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.contains('\0') => Err("has a NUL byte"),
        Ok(text) => Ok(text),
        Err(_) => Err("has bytes that are not UTF-8"),
    }
}
