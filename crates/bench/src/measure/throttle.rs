//! A cgroup that limits the I/O requests of processes to a device, and counts their writes. The
//! limit makes a disk as slow as a cloud volume.
//!
//! A group of version 1 delays direct and synced requests only, not data that a kernel thread
//! writes later for the process. So the limit holds only for engines that bypass the page cache.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The limits of a disk, per second and in each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskLimit {
    /// Requests.
    pub requests: u64,
    /// Bytes.
    pub bytes: u64,
}

impl DiskLimit {
    /// An ordinary cloud volume: 3,000 requests and 125 MB a second.
    pub const CLOUD: Self = Self { requests: 3_000, bytes: 125_000_000 };
    /// A limit that no disk reaches, for counting alone: a group of version 1 counts requests only
    /// if it has a limit.
    pub const BEYOND: Self = Self { requests: 1_000_000_000, bytes: 1_000_000_000_000 };
    /// A SATA SSD: 10,000 requests and 400 MB a second.
    pub const SATA: Self = Self { requests: 10_000, bytes: 400_000_000 };
}

/// A group whose processes may use a disk only up to the limits. Dropping it removes the group, if
/// no process is in it.
#[derive(Debug)]
pub struct Throttle {
    dir: PathBuf,
    /// "major:minor" of the disk.
    device: String,
}

/// Writes of the processes of a group to the disk since the group was created.
///
/// Version 2 counts all writes that the processes have caused. Version 1 counts direct requests and
/// requests of a sync, but not data that a kernel thread writes later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupWrites {
    /// Bytes.
    pub bytes: u64,
    /// Requests, before the kernel merges neighbours.
    pub requests: u64,
}

impl Throttle {
    /// Creates a group for the disk of `dir`.
    pub fn create(dir: &Path, limit: DiskLimit) -> Result<Self> {
        let doing = || format!("find the disk of {}", dir.display());
        let device = disk_of(fs::metadata(dir).map_err(Error::io(doing()))?.dev());
        let name = format!("frondb-bench-disk-{}", std::process::id());
        let mut refusals = Vec::new();
        for (parent, files) in hierarchies(&device, limit) {
            match Self::create_below(&parent, &name, &device, &files) {
                Ok(throttle) => return Ok(throttle),
                Err(error) => refusals.push(format!("{}: {error}", parent.display())),
            }
        }
        Err(Error::Usage(format!(
            "cannot slow the disk down: that needs root and a cgroup with blkio (or io). Tried:\n  {}",
            refusals.join("\n  ")
        )))
    }

    fn create_below(
        parent: &Path,
        name: &str,
        device: &str,
        files: &[(&'static str, String)],
    ) -> std::io::Result<Self> {
        // If the controller cannot be enabled, the limit files are missing, so writing them below
        // returns an error.
        let _ = fs::write(parent.join("cgroup.subtree_control"), "+io");
        let dir = parent.join(name);
        if !dir.exists() {
            fs::create_dir(&dir)?;
        }
        // From here on the drop of `group` removes the directory if a step fails.
        let group = Self { dir, device: device.to_owned() };
        for (file, text) in files {
            fs::write(group.dir.join(file), text)?;
        }
        Ok(group)
    }

    /// Returns the writes of the group's processes so far, ended processes included; `None` if the
    /// kernel has no such counters.
    #[must_use]
    pub fn writes(&self) -> Option<GroupWrites> {
        let read = |file: &str| fs::read_to_string(self.dir.join(file)).ok();
        if let Some(text) = read("io.stat") {
            return Some(parse_io_stat(&text, &self.device));
        }
        let bytes = parse_blkio(&read("blkio.throttle.io_service_bytes")?, &self.device);
        let requests = parse_blkio(&read("blkio.throttle.io_serviced")?, &self.device);
        Some(GroupWrites { bytes, requests })
    }

    /// Moves a process with all its threads into the group.
    pub fn add(&self, process: u32) -> Result<()> {
        let procs = self.dir.join("cgroup.procs");
        fs::write(&procs, process.to_string())
            .map_err(Error::io(format!("enter the cgroup {}", procs.display())))
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        // The removal fails only while a process is in the group.
        let _ = fs::remove_dir(&self.dir);
    }
}

/// Parses the device's line in `io.stat` of version 2: "254:0 rbytes=1 wbytes=2 rios=3 wios=4". A
/// device without a line had no requests.
fn parse_io_stat(text: &str, device: &str) -> GroupWrites {
    let line = text.lines().find_map(|line| line.strip_prefix(device)?.strip_prefix(' '));
    let fields = || line.unwrap_or_default().split_ascii_whitespace();
    let number = |name: &str| fields().find_map(|field| field.strip_prefix(name)?.parse().ok());
    GroupWrites { bytes: number("wbytes=").unwrap_or(0), requests: number("wios=").unwrap_or(0) }
}

/// Parses the device's writes in a file of version 1: "254:0 Write 2". A device without a line had
/// no requests.
fn parse_blkio(text: &str, device: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(device)?.strip_prefix(" Write "));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

/// Returns "major:minor" of the whole disk, because the kernel refuses limits for a partition.
fn disk_of(device: u64) -> String {
    let name = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    let sys = PathBuf::from(format!("/sys/dev/block/{name}"));
    if !sys.join("partition").exists() {
        return name;
    }
    let parent = fs::canonicalize(&sys).ok().and_then(|path| path.parent().map(Path::to_owned));
    let whole = parent.and_then(|path| fs::read_to_string(path.join("dev")).ok());
    whole.map_or(name, |text| text.trim().to_owned())
}

/// Returns, for cgroups of version 1 and of version 2, the directory in which to create a group,
/// and the names and contents of its limit files.
fn hierarchies(device: &str, limit: DiskLimit) -> [(PathBuf, Vec<(&'static str, String)>); 2] {
    let DiskLimit { requests, bytes } = limit;
    let one = vec![
        ("blkio.throttle.read_bps_device", format!("{device} {bytes}")),
        ("blkio.throttle.write_bps_device", format!("{device} {bytes}")),
        ("blkio.throttle.read_iops_device", format!("{device} {requests}")),
        ("blkio.throttle.write_iops_device", format!("{device} {requests}")),
    ];
    let two = vec![(
        "io.max",
        format!("{device} rbps={bytes} wbps={bytes} riops={requests} wiops={requests}"),
    )];
    [(PathBuf::from("/sys/fs/cgroup/blkio"), one), (PathBuf::from("/sys/fs/cgroup"), two)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_and_both_units_are_limited() {
        let [(_, one), (_, two)] = hierarchies("8:0", DiskLimit::CLOUD);
        assert_eq!(one.len(), 4);
        assert!(one.contains(&("blkio.throttle.write_iops_device", "8:0 3000".to_owned())));
        assert_eq!(two[0].1, "8:0 rbps=125000000 wbps=125000000 riops=3000 wiops=3000");
    }

    #[test]
    fn writes_of_the_disk_are_found() {
        let one = "8:16 Write 7\n254:0 Read 24\n254:0 Write 382\n254:0 Sync 406\nTotal 406\n";
        assert_eq!((parse_blkio(one, "254:0"), parse_blkio("Total 0\n", "254:0")), (382, 0));
        let two = "8:16 rbytes=9 wbytes=9 rios=9 wios=9\n\
                   254:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n";
        assert_eq!(parse_io_stat(two, "254:0"), GroupWrites { bytes: 2, requests: 4 });
        assert_eq!(parse_io_stat("", "254:0"), GroupWrites::default());
    }

    #[test]
    fn a_disk_has_a_number() {
        let device = fs::metadata("/").unwrap().dev();
        assert!(disk_of(device).contains(':'));
    }
}
