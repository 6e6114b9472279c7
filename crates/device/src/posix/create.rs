//! Creates directories durably, with exact permission bits.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{self, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use frondb_core::Result;

use super::error::os_error;
use crate::modes::Modes;

/// Creates the directory at `path` and its missing parents. Calls `sync` for every directory with a
/// new entry, the innermost first. Without that, a power failure could lose a directory with
/// everything durable in it, because the directory's entry in its parent is not durable.
pub(super) fn create_durably(
    path: &Path,
    modes: Modes,
    sync: &mut dyn FnMut(&Path) -> Result<()>,
) -> Result<()> {
    let made: Vec<&Path> = path
        .ancestors()
        .take_while(|path| !path.as_os_str().is_empty() && !path.exists())
        .collect();
    for directory in made.iter().rev() {
        make_dir(directory, Mode::from_raw_mode(modes.dir()))?;
    }
    for directory in made {
        match directory.parent() {
            Some(parent) if parent.as_os_str().is_empty() => sync(Path::new("."))?,
            Some(parent) => sync(parent)?,
            None => {}
        }
    }
    Ok(())
}

/// Creates a directory whose parent exists; another process may create it first.
fn make_dir(path: &Path, mode: Mode) -> Result<()> {
    let name = path.display().to_string();
    let failed = |errno| os_error("create directory", &name, errno);
    match retry_on_intr(|| fs::mkdir(path, mode)) {
        Ok(()) => {}
        // `a/..` and `a/.` exist once `a` exists.
        Err(Errno::EXIST) if path.is_dir() => return Ok(()),
        Err(errno) => return Err(failed(errno)),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = retry_on_intr(|| fs::open(path, flags, Mode::empty())).map_err(failed)?;
    set_mode(&dir, mode, &name);
    Ok(())
}

/// Restores the mode bits of a new file or directory that the umask removed. The set-group-id bit
/// that a directory inherits stays.
///
/// A failure is only logged, because the call only adds bits: on a file system without modes no
/// user gets more access than requested.
pub(super) fn set_mode(fd: &OwnedFd, mode: Mode, name: &str) {
    let set = || {
        let now = Mode::from_raw_mode(fs::fstat(fd)?.st_mode);
        let bits = Mode::RWXU | Mode::RWXG | Mode::RWXO;
        if now & bits == mode {
            return Ok(());
        }
        fs::fchmod(fd, now.difference(bits) | mode)
    };
    if let Err(errno) = set() {
        tracing::warn!(file = name, %errno, "cannot set the permission bits");
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use frondb_core::Error;

    use super::super::PosixDevice;
    use super::*;

    fn synced_for(path: &Path) -> Vec<PathBuf> {
        let mut synced = Vec::new();
        create_durably(path, Modes::PRIVATE, &mut |parent| {
            assert!(path.is_dir(), "a directory was synced before the entry was created");
            synced.push(parent.to_owned());
            Ok(())
        })
        .unwrap();
        synced
    }

    #[test]
    fn every_directory_made_is_durable_in_its_parent() {
        let name = format!("frondb-create-{}", std::process::id());
        let top = std::env::temp_dir().join(name);
        std::fs::create_dir(&top).unwrap();
        let expected: Vec<PathBuf> = ["a/b", "a", ""].map(|below| top.join(below)).into();
        // `join("")` ends with a slash, which is not compared.
        assert_eq!(synced_for(&top.join("a/b/c")), expected);
        assert_eq!(synced_for(&top.join("a/b/c")), Vec::<PathBuf>::new());
        assert_eq!(synced_for(&top.join("a/b/d/")), [top.join("a/b")]);
        PosixDevice::create(top.join("e/f")).unwrap();
        // A path without a parent of its own is in the current directory.
        assert!(synced_for(Path::new(".")).is_empty());
        let failed = create_durably(&top.join("g"), Modes::PRIVATE, &mut |_| {
            Err(Error::internal("no sync"))
        });
        assert!(failed.is_err(), "a failed sync is an error");
        std::fs::remove_dir_all(&top).unwrap();
    }
}
