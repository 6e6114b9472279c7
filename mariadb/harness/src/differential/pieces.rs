//! The pieces from which texts are composed, and the hexadecimal form of bytes for literals.

use std::fmt::Write as _;

pub(super) const PIECES: [&str; 40] = [
    "a",
    "A",
    "b",
    "B",
    "ab",
    "c",
    "ch",
    "Ch",
    "d",
    "dz",
    "e",
    "\u{e9}",
    "E",
    "\u{df}",
    "ss",
    "\u{e6}",
    "ae",
    "\u{f1}",
    "n",
    "o",
    "\u{f6}",
    "z",
    "Z",
    "\u{17e}",
    " ",
    "  ",
    "\t",
    "\u{1}",
    "0",
    "9",
    "-",
    "_",
    "%",
    "\u{3b1}",
    "\u{416}",
    "\u{5d0}",
    "\u{e01}",
    "\u{4e2d}",
    "\u{3042}",
    "\u{1f600}",
];

/// Bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut all, byte| {
        // Writing to a String cannot fail.
        let _ = write!(all, "{byte:02X}");
        all
    })
}
