//! The operating system's files, through `openat` and its relatives on one open directory: the
//! device stays in place even if the process changes its working directory or the path is renamed.
//!
//! Direct I/O is requested by setting `O_DIRECT` on a file that is already open. Passing it to
//! `open` would do the same, except that a file system that refuses `O_DIRECT` may have created the
//! file before it fails the call.
//!
//! Several reads of a file are made at the same time with io_uring: a `multi_get` of 100 keys then
//! takes half of the CPU of single reads.
//!
//! Calls interrupted by a signal are repeated; short reads and writes are continued. Thread-safe:
//! only positioned reads and writes are used, so files have no shared position.

mod create;
mod error;
mod file;
mod lock;
mod paths;
mod ring;
mod rings;
mod socket;

use std::fmt;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, Dir, FileType, FlockOperation, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use frondb_core::sync::{Arc, ProcessCounter};
use frondb_core::{Error, ErrorKind, Result};

use crate::device::{Device, DeviceLock, OpenOptions, SharedDevice, SharedFile};
use crate::modes::Modes;
use crate::name;
use create::{create_durably, set_mode};
use error::{not_regular, os_error};
use file::PosixFile;
use lock::{LockedFile, in_use, write_pid};
use ring::Ring;
use rings::Rings;
pub use socket::{Connection, Listener};

/// Numbers the temporary files of this process.
static SCRATCH_FILES: ProcessCounter = ProcessCounter::new(1);

/// A directory of the operating system, as a [`Device`].
pub struct PosixDevice {
    dir: OwnedFd,
    path: PathBuf,
    modes: Modes,
    rings: Arc<Rings>,
}

impl PosixDevice {
    /// Opens the existing directory at `path`.
    ///
    /// # Errors
    /// `NotFound` if it does not exist, `Invalid` if it is not a directory, `Io` if it cannot be
    /// opened.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir =
            retry_on_intr(|| fs::open(path, flags, Mode::empty())).map_err(
                |errno| match errno {
                    Errno::NOTDIR => not_a_directory(path),
                    errno => os_error("open directory", &path.display().to_string(), errno),
                },
            )?;
        let rings = Arc::new(Rings::new(Ring::new));
        Ok(Self { dir, path: path.to_owned(), modes: Modes::PRIVATE, rings })
    }

    /// Opens the directory at `path`; creates it with its parents if it does not exist. New
    /// directories survive power loss once this returns, and are accessible to their owner alone.
    ///
    /// # Errors
    /// As [`PosixDevice::open`], and `NoSpace`.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        Self::create_with(path, Modes::PRIVATE)
    }

    /// As [`create`](Self::create), with the given modes, which also apply to the directories that
    /// this call creates.
    ///
    /// # Errors
    /// As [`PosixDevice::create`].
    pub fn create_with(path: impl AsRef<Path>, modes: Modes) -> Result<Self> {
        let path = path.as_ref();
        let in_the_way = path.ancestors().find(|path| path.exists()).filter(|path| !path.is_dir());
        if let Some(file) = in_the_way {
            return Err(not_a_directory(file));
        }
        create_durably(path, modes, &mut |parent| Self::open(parent)?.sync_dir(""))?;
        Ok(Self::open(path)?.with_modes(modes))
    }

    /// Returns the same device with other modes for new files and directories; by default only
    /// their owner has access.
    #[must_use]
    pub fn with_modes(self, modes: Modes) -> Self {
        Self { modes, ..self }
    }

    /// Returns the directory's path, as it was given.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn full(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }

    fn error(&self, action: &str, name: &str, errno: Errno) -> Error {
        os_error(action, &self.full(name), errno)
    }

    /// Opens a regular file, or creates it with the device's mode.
    fn open_or_make(&self, name: &str, flags: OFlags) -> Result<OwnedFd> {
        let failed = |errno| self.error("open", name, errno);
        // Without this flag, opening a named pipe that has the file's name would wait for its other
        // end.
        let fd = match self.try_open(name, flags | OFlags::NONBLOCK) {
            Err(Errno::ISDIR) => return Err(not_regular(&self.full(name), FileType::Directory)),
            opened => opened.map_err(failed)?,
        };
        let stat = retry_on_intr(|| fs::fstat(&fd)).map_err(failed)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind != FileType::RegularFile {
            return Err(not_regular(&self.full(name), kind));
        }
        // While the flag is set, io_uring would fail a read that has to wait for the disk.
        let flags = fs::fcntl_getfl(&fd).map_err(failed)?;
        fs::fcntl_setfl(&fd, flags.difference(OFlags::NONBLOCK)).map_err(failed)?;
        Ok(fd)
    }

    fn try_open(&self, name: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let mode = Mode::from_raw_mode(self.modes.file());
        let make = || {
            let flags = flags | OFlags::CREATE | OFlags::EXCL;
            let fd = retry_on_intr(|| fs::openat(&self.dir, name, flags, mode))?;
            set_mode(&fd, mode, name);
            Ok(fd)
        };
        if flags.contains(OFlags::EXCL) {
            return make();
        }
        if !flags.contains(OFlags::CREATE) {
            return retry_on_intr(|| fs::openat(&self.dir, name, flags, Mode::empty()));
        }
        // Only a new file gets its mode set. So open an existing file, or else create it
        // exclusively, and retry if another process creates or removes it in between.
        loop {
            let there = flags.difference(OFlags::CREATE);
            match retry_on_intr(|| fs::openat(&self.dir, name, there, Mode::empty())) {
                Err(Errno::NOENT) => {}
                other => return other,
            }
            match make() {
                Err(Errno::EXIST) => {}
                other => return other,
            }
        }
    }

    fn open_dir(&self, dir: &str) -> Result<OwnedFd> {
        name::check_dir(dir)?;
        let path = if dir.is_empty() { "." } else { dir };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        retry_on_intr(|| fs::openat(&self.dir, path, flags, Mode::empty()))
            .map_err(|errno| self.error("open directory", dir, errno))
    }
}

impl fmt::Debug for PosixDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PosixDevice({})", self.path.display())
    }
}

impl Device for PosixDevice {
    fn open(&self, name: &str, options: OpenOptions) -> Result<SharedFile> {
        name::check(name)?;
        let mut flags = OFlags::CLOEXEC;
        flags |= if options.writes() { OFlags::RDWR } else { OFlags::RDONLY };
        if options.create_new {
            flags |= OFlags::CREATE | OFlags::EXCL;
        } else if options.create {
            flags |= OFlags::CREATE;
        }
        let fd = self.open_or_make(name, flags)?;
        let direct = options.direct && set_direct(&fd);
        if options.direct && !direct {
            tracing::debug!(
                file = self.full(name),
                "the file system has no direct I/O: using buffered I/O"
            );
        }
        let rings = Arc::clone(&self.rings);
        Ok(Arc::new(PosixFile { fd, name: name.to_owned(), path: self.full(name), direct, rings }))
    }

    fn scratch(&self) -> Result<Option<SharedFile>> {
        let dir = std::env::temp_dir();
        let made = Self::open(&dir).and_then(|device| {
            loop {
                let name = format!("frondb-{}-{}.tmp", std::process::id(), SCRATCH_FILES.next());
                let file = match device.open(&name, OpenOptions::CREATE_NEW) {
                    // An earlier process with the same id was killed here and left the file.
                    Err(error) if error.kind() == ErrorKind::Exists => continue,
                    opened => opened?,
                };
                // The name is removed immediately, so the file is freed when its last user closes
                // it, however the process ends.
                device.remove(&name)?;
                return Ok(file);
            }
        });
        made.map(Some).map_err(|error| {
            error.context(format_args!(
                "a temporary file in {}: set TMPDIR to a directory with space, or give more memory",
                dir.display()
            ))
        })
    }

    fn exists(&self, name: &str) -> Result<bool> {
        name::check(name)?;
        match retry_on_intr(|| fs::statat(&self.dir, name, AtFlags::empty())) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(errno) => Err(self.error("check the existence of", name, errno)),
        }
    }

    fn list(&self, dir: &str) -> Result<Vec<String>> {
        let fd = self.open_dir(dir)?;
        let failed = |errno| self.error("list", dir, errno);
        let mut names = Vec::new();
        for entry in Dir::read_from(&fd).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            // A name that is not UTF-8 is not one of the engine's; replacement characters keep it
            // visible.
            let name = entry.file_name().to_string_lossy();
            if name != "." && name != ".." {
                names.push(name.into_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn remove(&self, name: &str) -> Result<()> {
        name::check(name)?;
        retry_on_intr(|| fs::unlinkat(&self.dir, name, AtFlags::empty()))
            .map_err(|errno| self.error("remove", name, errno))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        name::check(from)?;
        name::check(to)?;
        retry_on_intr(|| fs::renameat(&self.dir, from, &self.dir, to))
            .map_err(|errno| self.error(&format!("rename to {to}"), from, errno))
    }

    fn create_dir(&self, name: &str) -> Result<()> {
        name::check(name)?;
        let mode = Mode::from_raw_mode(self.modes.dir());
        match retry_on_intr(|| fs::mkdirat(&self.dir, name, mode)) {
            Ok(()) => {
                set_mode(&self.open_dir(name)?, mode, name);
                Ok(())
            }
            Err(Errno::EXIST) => {
                let stat = fs::statat(&self.dir, name, AtFlags::empty())
                    .map_err(|errno| self.error("check the existence of", name, errno))?;
                match FileType::from_raw_mode(stat.st_mode) {
                    FileType::Directory => Ok(()),
                    _ => Err(self.error("create directory", name, Errno::EXIST)),
                }
            }
            Err(errno) => Err(self.error("create directory", name, errno)),
        }
    }

    fn sync_dir(&self, dir: &str) -> Result<()> {
        let fd = self.open_dir(dir)?;
        retry_on_intr(|| fs::fsync(&fd)).map_err(|errno| self.error("sync directory", dir, errno))
    }

    fn lock(&self, name: &str) -> Result<DeviceLock> {
        name::check(name)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
        let fd = self.open_or_make(name, flags)?;
        // A `flock` belongs to the open file: the kernel releases it when the process ends, and a
        // second open of the lock file conflicts even within this process.
        match retry_on_intr(|| fs::flock(&fd, FlockOperation::NonBlockingLockExclusive)) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(in_use(&self.path, &fd)),
            Err(errno) => return Err(self.error("lock", name, errno)),
        }
        write_pid(&fd).map_err(|errno| self.error("write", name, errno))?;
        Ok(DeviceLock::new(self.full(name), LockedFile(fd)))
    }

    fn lock_shared(&self, name: &str) -> Result<Option<DeviceLock>> {
        name::check(name)?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let fd = match self.open_or_make(name, flags) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        match retry_on_intr(|| fs::flock(&fd, FlockOperation::NonBlockingLockShared)) {
            Ok(()) => Ok(Some(DeviceLock::new(self.full(name), fd))),
            Err(Errno::WOULDBLOCK) => Err(in_use(&self.path, &fd)),
            Err(errno) => Err(self.error("lock", name, errno)),
        }
    }

    fn free_bytes(&self) -> Result<u64> {
        let stat = retry_on_intr(|| fs::fstatvfs(&self.dir))
            .map_err(|errno| self.error("measure free space of", "", errno))?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn describe(&self) -> String {
        self.path.display().to_string()
    }

    fn subdevice(&self, dir: &str) -> Result<SharedDevice> {
        let fd = match self.open_dir(dir) {
            // Create the directory only if it is missing: it may lie on a read-only medium.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.create_dir(dir)?;
                self.open_dir(dir)?
            }
            opened => opened?,
        };
        let (path, rings) = (self.path.join(dir), Arc::clone(&self.rings));
        Ok(Arc::new(Self { dir: fd, path, modes: self.modes, rings }))
    }
}

/// Requests direct I/O; `false` if the file system does not support it.
fn set_direct(fd: &OwnedFd) -> bool {
    let asked = fs::fcntl_getfl(fd).and_then(|flags| fs::fcntl_setfl(fd, flags | OFlags::DIRECT));
    asked.is_ok()
}

fn not_a_directory(path: &Path) -> Error {
    Error::invalid(format!("{} is a file, not a directory", path.display()))
}
