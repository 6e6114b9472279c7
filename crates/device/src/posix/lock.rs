//! The lock of a directory: `flock` on a lock file that names its owner.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{self, FlockOperation};
use rustix::io::{Errno, pread, pwrite, retry_on_intr};

use frondb_core::{Error, ErrorKind};

/// A locked lock file; closing it releases the lock.
pub(super) struct LockedFile(pub(super) OwnedFd);

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Clears the pid, because this process no longer owns the lock; a failure is harmless. The
        // file keeps its block, so that the next owner can write its pid on a full disk.
        let _ = write_line(&self.0, "");
        // A child that another thread has just forked keeps the file open until its exec. Without
        // an explicit unlock, the child would hold the lock until then. If unlocking fails, closing
        // the file releases the lock later.
        let _ = fs::flock(&self.0, FlockOperation::Unlock);
    }
}

/// Writes the pid of this process into the lock file. The pid is informational, so a full disk is
/// no error: the lock file may be new or empty, and its first byte then needs a block.
pub(super) fn write_pid(fd: &OwnedFd) -> rustix::io::Result<()> {
    match write_line(fd, &std::process::id().to_string()) {
        Err(Errno::NOSPC | Errno::DQUOT) => {
            // Removes the pid of an earlier owner, if there is one.
            let _ = retry_on_intr(|| fs::ftruncate(fd, 0));
            Ok(())
        }
        written => written,
    }
}

/// Replaces the content of the lock file. The line has the same length for every pid, so it
/// replaces an earlier one completely.
fn write_line(fd: &OwnedFd, text: &str) -> rustix::io::Result<()> {
    let line = format!("{text:<10}\n");
    retry_on_intr(|| pwrite(fd, line.as_bytes(), 0)).map(drop)
}

/// Returns the error for a lock with another owner. The pid is informational: it may be missing in
/// the moment between taking the lock and writing the pid.
pub(super) fn in_use(path: &Path, fd: &OwnedFd) -> Error {
    let mut text = [0_u8; 24];
    let len = retry_on_intr(|| pread(fd, &mut text[..], 0)).unwrap_or(0);
    let text = String::from_utf8_lossy(&text[..len]);
    let owner = match text.trim().parse::<u32>() {
        Ok(pid) => format!("pid {pid}"),
        Err(_) => "another process".to_owned(),
    };
    Error::new(ErrorKind::Busy, format!("{} is in use by {owner}", path.display()))
}

#[cfg(test)]
mod tests {
    use rustix::fs::OFlags;

    use super::super::PosixDevice;
    use super::*;
    use crate::Device;

    #[test]
    fn a_full_disk_does_not_prevent_a_lock() {
        let full = fs::open("/dev/full", OFlags::RDWR, fs::Mode::empty()).unwrap();
        assert_eq!(write_line(&full, "1"), Err(Errno::NOSPC));
        write_pid(&full).unwrap();
    }

    #[test]
    fn a_lock_file_keeps_its_block() {
        let top = std::env::temp_dir().join(format!("frondb-kept-{}", std::process::id()));
        let device = PosixDevice::create(&top).unwrap();
        let lock = device.lock("LOCK").unwrap();
        let text = || std::fs::read_to_string(top.join("LOCK")).unwrap();
        assert_eq!(text().trim(), std::process::id().to_string());
        let len = text().len();
        drop(lock);
        assert_eq!(text().trim(), "");
        assert_eq!(text().len(), len, "the next lock needs no space");
        std::fs::remove_dir_all(&top).unwrap();
    }

    #[test]
    fn a_lock_ends_although_a_child_has_its_file() {
        let top = std::env::temp_dir().join(format!("frondb-forked-{}", std::process::id()));
        let device = PosixDevice::create(&top).unwrap();
        let fd = device.open_or_make("LOCK", OFlags::RDWR | OFlags::CREATE).unwrap();
        fs::flock(&fd, FlockOperation::NonBlockingLockExclusive).unwrap();
        // After a fork, the child has another descriptor of the same open file.
        let of_child = rustix::io::dup(&fd).unwrap();
        assert_eq!(device.lock("LOCK").unwrap_err().kind(), ErrorKind::Busy);
        drop(LockedFile(fd));
        drop(device.lock("LOCK").unwrap());
        drop(of_child);
        std::fs::remove_dir_all(&top).unwrap();
    }
}
