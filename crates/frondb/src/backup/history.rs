//! `BACKUPS` in the directory of a database: the names of the backups that the database has made.
//!
//! An incremental backup may only continue a backup that this database has made. If the files of a
//! database are copied, or put back to an older state, there are two histories, and both use the
//! same run ids for different runs. This file then does not name the later backups of the other
//! history, so the database refuses to continue them. Both histories may continue the backups that
//! were made before they parted.
//!
//! The file is a text with one name, 16 hexadecimal digits, per line, the newest last. A name is
//! added before the list of its backup is written. A backup whose name is missing here can be
//! restored, but not continued.

use std::fmt::Write;

use frondb_core::{ErrorKind, Result};
use frondb_device::{OpenOptions, SharedDevice};

pub(crate) const HISTORY_FILE: &str = "BACKUPS";
const HISTORY_FILE_NEW: &str = "BACKUPS.new";

/// Maximum number of names in the file; the oldest are removed.
const NAMES_MAX: usize = 4096;

/// Reads the names, oldest first, and skips lines that are not a name.
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

/// Returns whether the database has made the backup of this name.
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
