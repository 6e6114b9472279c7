//! Entry points for fuzzers: each takes any bytes and must neither panic nor take memory without
//! bound.

use crate::attachment::format;

/// Decodes the bytes as a frame from the socket on which the owner of a database answers.
pub fn attachment_frame(bytes: &[u8]) {
    format::fuzz(bytes);
}

/// Parses the list of a backup.
pub fn backup_list(bytes: &[u8]) {
    crate::backup::check_list(bytes);
}

#[cfg(test)]
mod tests {
    use frondb_testkit::fuzz::smoke;

    use super::*;

    #[test]
    fn no_bytes_of_another_process_cause_a_panic() {
        let frame = |what: u8, fields: &[u8]| {
            [&(fields.len() as u32 + 1).to_le_bytes()[..], &[what], fields].concat()
        };
        let named = [&1_u64.to_le_bytes()[..], &1_u64.to_le_bytes(), b"x", &[7; 8]].concat();
        let error = [&2_u64.to_le_bytes()[..], b"Io", &0_u64.to_le_bytes(), &[0; 16]].concat();
        smoke(1, 20_000, &[frame(17, &named), frame(18, &error), frame(1, b"")], attachment_frame);
    }
}
