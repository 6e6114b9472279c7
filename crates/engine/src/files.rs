//! The files that an open database owns, with their sizes: for status pages.

use frondb_core::{ErrorKind, Result};
use frondb_device::{OpenOptions, SharedDevice};

use crate::engine::Engine;
use crate::layout::LOCK_FILE;

/// What a file is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[non_exhaustive]
pub enum FileKind {
    /// Runs of all trees and large values.
    Data,
    /// A segment of the log, in use or kept for later.
    Log,
    /// Which runs there are: the manifest and its superblocks.
    Manifest,
    /// A lock or the mark of an owner: a few bytes.
    Mark,
}

/// A file of the database.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FileInfo {
    /// Its path.
    pub path: String,
    /// What it is for.
    pub kind: FileKind,
    /// Its length, bytes.
    pub bytes: u64,
    /// Bytes that it takes on the device: less where it has holes.
    pub allocated_bytes: u64,
}

impl FileKind {
    /// `None` for what is not the database's.
    fn of(name: &str) -> Option<Self> {
        let is_data = name.starts_with("data-") && name.ends_with(".fdb");
        let is_manifest = name.starts_with("MANIFEST-") || name.starts_with("SUPER");
        match name {
            _ if is_data => Some(Self::Data),
            _ if is_manifest => Some(Self::Manifest),
            _ if name.ends_with(".wal") || name.ends_with(".spare") => Some(Self::Log),
            _ if name.starts_with("LOG") || name == LOCK_FILE => Some(Self::Mark),
            _ => None,
        }
    }
}

impl Engine {
    /// The files that the database owns, by kind and path.
    ///
    /// # Errors
    /// Those of the device; `Closed`.
    pub fn files(&self) -> Result<Vec<FileInfo>> {
        self.txns.reads.health.while_open(|| {
            let mut files = Vec::new();
            for device in [&self.device, &self.log_device] {
                add(device, &mut files)?;
            }
            files.sort_by(|a: &FileInfo, b| (a.kind, &a.path).cmp(&(b.kind, &b.path)));
            files.dedup_by(|a, b| a.path == b.path);
            Ok(files)
        })
    }
}

fn add(device: &SharedDevice, files: &mut Vec<FileInfo>) -> Result<()> {
    for name in device.list("")? {
        let Some(kind) = FileKind::of(&name) else { continue };
        let file = match device.open(&name, OpenOptions::READ) {
            // A segment of the log, or a manifest, that has just been let go of.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            other => other?,
        };
        let path = format!("{}/{name}", device.describe());
        let (bytes, allocated_bytes) = (file.len()?, file.allocated_bytes()?);
        files.push(FileInfo { path, kind, bytes, allocated_bytes });
    }
    Ok(())
}
