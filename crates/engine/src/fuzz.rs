//! Fuzz entry points: each takes any bytes and must neither panic nor take memory without bound.

/// Parses the list of a backup.
pub fn backup_list(bytes: &[u8]) {
    crate::backup::check_list(bytes);
}
