//! `BACKUPS` in the directory of a database: the names of the backups that it has made.
//!
//! An incremental backup may continue only what this database has copied. A copy of the files that went
//! another way, and a database that was put back to an older state, use the ids of runs once more: for
//! them a later backup of the other history is unknown, and is refused. What both have made before they
//! parted, both may continue.
//!
//! A text with a name, 16 hexadecimal digits, in each line, the newest last. Written before the list of
//! the backup: without the name a backup cannot be continued, and nothing worse.

use std::fmt::Write;

use frondb_core::{ErrorKind, Result};
use frondb_device::{OpenOptions, SharedDevice};

/// The file.
pub(crate) const HISTORY_FILE: &str = "BACKUPS";
const HISTORY_FILE_NEW: &str = "BACKUPS.new";

/// So many names are kept.
const NAMES_MAX: usize = 4096;

/// The names, oldest first; those that make no sense are left out.
fn read(device: &SharedDevice) -> Result<Vec<u64>> {
    let file = match device.open(HISTORY_FILE, OpenOptions::READ) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened?,
    };
    let mut bytes = vec![0; file.len()?.min(17 * NAMES_MAX as u64) as usize];
    file.read_exact_at(0, &mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().filter_map(|line| u64::from_str_radix(line, 16).ok()).collect())
}

/// Whether the database has made the backup of this name.
///
/// # Errors
/// `Io`.
pub(super) fn has(device: &SharedDevice, name: u64) -> Result<bool> {
    Ok(read(device)?.contains(&name))
}

/// Durably adds a name, and returns the bytes written. REQUIRES: one backup is made at a time.
///
/// # Errors
/// `NoSpace`, `Io`.
pub(super) fn add(device: &SharedDevice, name: u64) -> Result<u64> {
    let mut names = read(device)?;
    names.push(name);
    let mut text = String::new();
    for name in &names[names.len().saturating_sub(NAMES_MAX)..] {
        let _ = writeln!(text, "{name:016x}");
    }
    let file = device.open(HISTORY_FILE_NEW, OpenOptions::CREATE)?;
    file.set_len(0)?;
    file.write_at(0, text.as_bytes())?;
    file.sync()?;
    device.rename(HISTORY_FILE_NEW, HISTORY_FILE)?;
    device.sync_dir("")?;
    Ok(text.len() as u64)
}
