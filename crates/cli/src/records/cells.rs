//! What the cells of a table stand for.
//!
//! A cell of text is literal by default: its characters are the key's or the value's, a backslash
//! like any other. What is no text (bytes that are not UTF-8, NUL) has no literal cell; such bytes
//! are refused in both directions, because programs that read tables drop or change them. With
//! `--escapes` a cell is written as on the command line and holds any bytes.

use std::borrow::Cow;

use crate::encoding::Encoding;
use crate::failure::Failure;

/// What to do about bytes that are no text, in a dump.
pub(super) const DUMP_HINT: &str =
    "--escapes, --keys or --values hex or base64, and --format binary hold any bytes";
/// What to do about them in a file to load.
const LOAD_HINT: &str = "a table is text in UTF-8: convert the file";

/// How the cells of a column are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cells {
    /// Text without escapes.
    Literal,
    /// As on the command line.
    Encoded(Encoding),
}

impl Cells {
    /// Cells of an encoding; text has escapes only if they were asked for.
    pub(crate) fn of(encoding: Encoding, escapes: bool) -> Self {
        if encoding == Encoding::Text && !escapes { Self::Literal } else { Self::Encoded(encoding) }
    }

    /// The cell for `bytes`; an error says why there is none.
    pub(super) fn write(self, bytes: &[u8]) -> Result<Cow<'_, [u8]>, &'static str> {
        match self {
            Self::Literal => text(bytes).map(|text| Cow::Borrowed(text.as_bytes())),
            Self::Encoded(encoding) => Ok(Cow::Owned(encoding.encode(bytes).into_bytes())),
        }
    }

    /// The bytes that a cell stands for; an error says what is wrong with it.
    pub(super) fn read(self, cell: &[u8]) -> Result<Vec<u8>, Failure> {
        let text = text(cell)
            .map_err(|why| Failure::input(format!("a cell {why}")).with_hint(LOAD_HINT))?;
        match self {
            Self::Literal => Ok(cell.to_vec()),
            Self::Encoded(encoding) => encoding.decode(text).map_err(Failure::of_input),
        }
    }
}

/// Bytes as text that every program reads as the same bytes.
fn text(bytes: &[u8]) -> Result<&str, &'static str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.contains('\0') => Err("has a NUL byte"),
        Ok(text) => Ok(text),
        Err(_) => Err("has bytes that are not UTF-8"),
    }
}
