//! The disk under the data directory: its kind, the space that the directory takes, and the reads
//! and writes of the device.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Refuses a directory on a file system in memory. A benchmark there would measure no disk, and the
/// cgroup would charge the files in a tmpfs to the engine's memory limit.
pub fn refuse_memory(dir: &Path) -> Result<()> {
    let stat = rustix::fs::statfs(dir).map_err(|error| {
        Error::io(format!("stat the file system of {}", dir.display()))(error.into())
    })?;
    // The magic numbers of tmpfs and ramfs.
    if [0x0102_1994, 0x8584_58f6].contains(&stat.f_type) {
        return Err(Error::Usage(format!(
            "{} lies on a file system in memory (tmpfs); name a directory on a disk with --dir",
            dir.display()
        )));
    }
    Ok(())
}

/// Flushes all dirty data of the file system of `dir`, so that counters read afterwards include it.
pub fn sync_file_system(dir: &Path) -> Result<()> {
    let doing = || format!("sync the file system of {}", dir.display());
    let handle = fs::File::open(dir).map_err(Error::io(doing()))?;
    rustix::fs::syncfs(handle).map_err(|error| Error::io(doing())(error.into()))
}

/// Returns the bytes allocated on disk for all files below `dir`: holes do not count, preallocation
/// does.
pub fn allocated_bytes(dir: &Path) -> Result<u64> {
    let doing = || format!("measure {}", dir.display());
    let mut total = 0;
    for entry in fs::read_dir(dir).map_err(Error::io(doing()))? {
        let entry = entry.map_err(Error::io(doing()))?;
        let metadata = entry.metadata().map_err(Error::io(doing()))?;
        total += metadata.blocks() * 512;
        if metadata.is_dir() {
            total += allocated_bytes(&entry.path())?;
        }
    }
    Ok(total)
}

/// The block device under a directory, with its own counters.
///
/// The counters include the reads and writes of all processes, the journal and the metadata. On a
/// machine that does nothing else they are exact, and they check the counters of the process.
#[derive(Clone, Debug)]
pub struct Device {
    stat: PathBuf,
}

/// A device's reads and writes since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Read requests, after the kernel merged neighbours.
    pub read_ops: u64,
    /// Write requests, after the kernel merged neighbours.
    pub write_ops: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

impl Device {
    /// Returns the device under `dir`; none if the file system has no single device (overlay,
    /// btrfs, network).
    #[must_use]
    pub fn under(dir: &Path) -> Option<Self> {
        let device = fs::metadata(dir).ok()?.dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let stat = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat"));
        stat.is_file().then_some(Self { stat })
    }

    /// Reads the counters; none if the device no longer exists.
    #[must_use]
    pub fn counters(&self) -> Option<DeviceCounters> {
        parse_stat(&fs::read_to_string(&self.stat).ok()?)
    }
}

/// Parses a block device's `stat`. Fields count from 0: 0 is reads completed, 4 is writes
/// completed, 6 is sectors of 512 bytes written.
fn parse_stat(text: &str) -> Option<DeviceCounters> {
    let mut fields = text.split_ascii_whitespace().map(str::parse::<u64>);
    let read_ops = fields.next()?.ok()?;
    let write_ops = fields.nth(3)?.ok()?;
    let sectors = fields.nth(1)?.ok()?;
    Some(DeviceCounters { read_ops, write_ops, written_bytes: sectors * 512 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_found_among_the_fields() {
        let text =
            "   31777  7272 4397058 17386   7877 16543 1044304 3505 0 8632 21202 0 0 0 0 0 0";
        let expected =
            DeviceCounters { read_ops: 31_777, write_ops: 7877, written_bytes: 1_044_304 * 512 };
        assert_eq!(parse_stat(text), Some(expected));
        assert_eq!(parse_stat("1 2 3"), None);
    }

    #[test]
    fn memory_is_refused_and_named() {
        let shm = Path::new("/dev/shm");
        // Not every container has /dev/shm; if it exists it is a tmpfs.
        if shm.is_dir() && fs::read_to_string("/proc/mounts").unwrap().contains(" /dev/shm tmpfs") {
            let error = refuse_memory(shm).unwrap_err().to_string();
            assert!(error.contains("/dev/shm") && error.contains("--dir"), "{error}");
        }
    }
}
