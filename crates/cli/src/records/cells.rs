//! The interpretation of the cells of a table.
//!
//! A text cell is literal by default: its characters are those of the key or value, and a
//! backslash is like any other character. Bytes that are not UTF-8, and NUL, have no literal cell.
//! They are refused in both directions, because programs that read tables drop or change them.
//! With `--escapes` a cell is written as on the command line and can hold any bytes.

use std::borrow::Cow;

use crate::encoding::Encoding;
use crate::failure::Failure;

/// Hint for a dump of bytes that have no literal cell.
pub(super) const DUMP_HINT: &str =
    "--escapes, --keys or --values hex or base64, and --format binary hold any bytes";
/// Hint for a file to load that has such bytes.
pub(super) const LOAD_HINT: &str = "a table is text in UTF-8: convert the file";

/// How the cells of a column are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cells {
    /// Text without escapes.
    Literal,
    /// As on the command line.
    Encoded(Encoding),
}

impl Cells {
    /// Cells of an encoding; text uses escapes only if `escapes`.
    pub(crate) fn of(encoding: Encoding, escapes: bool) -> Self {
        if encoding == Encoding::Text && !escapes { Self::Literal } else { Self::Encoded(encoding) }
    }

    /// The cell for `bytes`, or why there is none.
    pub(super) fn write(self, bytes: &[u8]) -> Result<Cow<'_, [u8]>, &'static str> {
        match self {
            Self::Literal => text(bytes).map(|text| Cow::Borrowed(text.as_bytes())),
            Self::Encoded(encoding) => Ok(Cow::Owned(encoding.encode(bytes).into_bytes())),
        }
    }

    /// The bytes that a cell stands for.
    pub(super) fn read(self, cell: &[u8]) -> Result<Vec<u8>, Failure> {
        let text = text(cell)
            .map_err(|why| Failure::input(format!("a cell {why}")).with_hint(LOAD_HINT))?;
        match self {
            Self::Literal => Ok(cell.to_vec()),
            Self::Encoded(encoding) => encoding.decode(text).map_err(Failure::of_input),
        }
    }
}

/// Bytes as text that every program reads as the same bytes, or why they are none.
pub(super) fn text(bytes: &[u8]) -> Result<&str, &'static str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.contains('\0') => Err("has a NUL byte"),
        Ok(text) => Ok(text),
        Err(_) => Err("has bytes that are not UTF-8"),
    }
}
