//! Lists the files of an open database with their sizes, for status pages.

use frondb_core::{ErrorKind, Result};
use frondb_device::{OpenOptions, SharedDevice};

use crate::backup::HISTORY_FILE;
use crate::open::layout::LOCK_FILE;

/// The purpose of a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[non_exhaustive]
pub enum FileKind {
    /// Runs and large values of all trees.
    Data,
    /// A log segment, in use or kept for reuse.
    Log,
    /// The manifest, which lists all trees and runs, and its superblocks.
    Manifest,
    /// A small file: a lock, a mark of the log, or the names of the backups.
    Mark,
}

/// A file of the database.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FileInfo {
    /// Path: the directory, as it was named at the open, and the name of the file.
    pub path: String,
    /// The purpose of the file.
    pub kind: FileKind,
    /// Length of the file, bytes.
    pub bytes: u64,
    /// Bytes allocated on the device: fewer than `bytes` if the file has holes.
    pub allocated_bytes: u64,
}

impl FileKind {
    /// Returns the kind of the file with this name; `None` if the file does not belong to the
    /// database.
    fn of(name: &str) -> Option<Self> {
        let is_data = name.starts_with("data-") && name.ends_with(".fdb");
        let is_manifest = name.starts_with("MANIFEST-") || name.starts_with("SUPER");
        match name {
            _ if is_data => Some(Self::Data),
            _ if is_manifest => Some(Self::Manifest),
            _ if name.ends_with(".wal") || name.ends_with(".spare") => Some(Self::Log),
            LOCK_FILE | HISTORY_FILE => Some(Self::Mark),
            _ if name.starts_with("LOG") => Some(Self::Mark),
            _ => None,
        }
    }
}

/// Lists the files in the directories of the database and of its log, ordered by kind and path.
pub(crate) fn list(devices: [&SharedDevice; 2]) -> Result<Vec<FileInfo>> {
    let mut files = Vec::new();
    for device in devices {
        add(device, &mut files)?;
    }
    files.sort_by(|a: &FileInfo, b| (a.kind, &a.path).cmp(&(b.kind, &b.path)));
    files.dedup_by(|a, b| a.path == b.path);
    Ok(files)
}

fn add(device: &SharedDevice, files: &mut Vec<FileInfo>) -> Result<()> {
    for name in device.list("")? {
        let Some(kind) = FileKind::of(&name) else { continue };
        let file = match device.open(&name, OpenOptions::READ) {
            // A log segment or manifest file was removed after the directory was listed.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            other => other?,
        };
        let path = format!("{}/{name}", device.describe());
        let (bytes, allocated_bytes) = (file.len()?, file.allocated_bytes()?);
        files.push(FileInfo { path, kind, bytes, allocated_bytes });
    }
    Ok(())
}
