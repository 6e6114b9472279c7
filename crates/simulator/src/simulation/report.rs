//! The output of a failure, and the hash of all answers.

use crate::history::Op;

/// Prints the operation during which a panic occurred.
pub(super) struct ReportOp<'a>(pub(super) usize, pub(super) &'a Op);

impl Drop for ReportOp<'_> {
    #[allow(clippy::print_stderr)]
    fn drop(&mut self) {
        if std::thread::panicking() && std::env::var_os("FRONDB_SHRINK").is_none() {
            let text = format!("{:?}", self.1);
            let end = text.char_indices().nth(300).map_or(text.len(), |(end, _)| end);
            eprintln!("at operation {}: {}", self.0, &text[..end]);
        }
    }
}

/// Formats bytes for messages; long values are truncated and shown with their length.
pub(super) fn short(bytes: Option<&[u8]>) -> Option<String> {
    bytes.map(|bytes| match bytes.len() {
        0..=40 => bytes.escape_ascii().to_string(),
        n => format!("{}... of {n} bytes", bytes[..40].escape_ascii()),
    })
}

pub(super) fn add_to_digest(digest: u64, bytes: Option<&[u8]>) -> u64 {
    let hash = bytes.map_or(1, |bytes| {
        bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
    });
    (digest.rotate_left(5) ^ hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
