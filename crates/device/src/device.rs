//! The contract of directories and files: what the engine requests, and what it may rely on.
//!
//! # Durability
//! Nothing is durable until it is synced, and a file's name is synced separately from its content:
//!
//! | after | survives power loss |
//! |---|---|
//! | `write_at`, `set_len`, `allocate`, `punch` | no promise: any part may have been written |
//! | `File::sync` | the file's content and length, *if its name is durable* |
//! | `open` with create, `remove`, `rename`, `create_dir` | no promise; a rename is atomic |
//! | `Device::sync_dir` | the names in that directory |
//!
//! # Direct I/O
//! A file opened with `direct` bypasses the operating system's cache if the file system supports
//! that; [`File::is_direct`] says whether it does. Offsets, lengths and memory must then be aligned
//! to [`PAGE_BYTES`](frondb_core::limits::PAGE_BYTES), which is asserted.

use std::fmt;

use frondb_core::sync::Arc;
use frondb_core::{Error, Result};

/// A shared device.
pub type SharedDevice = Arc<dyn Device>;

/// A shared open file.
pub type SharedFile = Arc<dyn File>;

/// How to open a file. The default opens an existing file for reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct OpenOptions {
    /// Create the file if it does not exist.
    pub create: bool,
    /// Create the file, and fail with `Exists` if it exists.
    pub create_new: bool,
    /// Allow writing; creating a file implies it.
    pub write: bool,
    /// Bypass the operating system's cache if the file system can ([`File::is_direct`]).
    pub direct: bool,
}

impl OpenOptions {
    /// An existing file, to read.
    pub const READ: Self = Self { create: false, create_new: false, write: false, direct: false };
    /// An existing file, to read and write.
    pub const WRITE: Self = Self { write: true, ..Self::READ };
    /// A file to read and write, created if it does not exist.
    pub const CREATE: Self = Self { create: true, ..Self::WRITE };
    /// A file to read and write that must not exist yet.
    pub const CREATE_NEW: Self = Self { create_new: true, ..Self::WRITE };

    /// Returns the same options, with or without direct I/O.
    #[must_use]
    pub const fn direct(mut self, direct: bool) -> Self {
        self.direct = direct;
        self
    }

    /// Returns whether the opened file may be written.
    #[must_use]
    pub const fn writes(self) -> bool {
        self.write || self.create || self.create_new
    }
}

/// A directory of files. Names are relative paths with `/`, checked by [`name`](crate::name); where
/// a directory is expected, the empty name is the directory itself.
pub trait Device: Send + Sync + fmt::Debug {
    /// Opens a regular file. Never waits for another process, which opening a named pipe would do.
    ///
    /// # Errors
    /// `NotFound`, `Exists` (with `create_new`), `NoSpace`, `Io`, `Invalid` for a bad name and for
    /// anything but a regular file.
    fn open(&self, name: &str, options: OpenOptions) -> Result<SharedFile>;

    /// Returns whether a file or directory of that name exists.
    ///
    /// # Errors
    /// `Io` if the answer is unknown.
    fn exists(&self, name: &str) -> Result<bool>;

    /// Returns the names in a directory, sorted, without the directory in front.
    ///
    /// # Errors
    /// `NotFound` if the directory does not exist, `Io`.
    fn list(&self, dir: &str) -> Result<Vec<String>>;

    /// Removes a file. Open handles stay usable; its space is freed when the last one is closed.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    fn remove(&self, name: &str) -> Result<()>;

    /// Renames a file atomically, replacing a file of the new name.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    fn rename(&self, from: &str, to: &str) -> Result<()>;

    /// Creates a directory; its parent must exist. An existing directory is no error.
    ///
    /// # Errors
    /// `NotFound` if the parent does not exist, `Exists` if the name is a file, `Io`.
    fn create_dir(&self, name: &str) -> Result<()>;

    /// Makes the names of a directory durable.
    ///
    /// # Errors
    /// `Io`; the state of the names is then unknown.
    fn sync_dir(&self, dir: &str) -> Result<()>;

    /// Takes the lock of the lock file `name` until the returned guard is dropped or the process
    /// ends in any way. The lock file stays; the next owner reuses it.
    ///
    /// # Errors
    /// `Busy` naming the owner ("in use by pid N"), even if the owner is this process; `Io`.
    fn lock(&self, name: &str) -> Result<DeviceLock>;

    /// Takes a shared lock without changing anything: it excludes callers of
    /// [`lock`](Device::lock), and vice versa. `None` if the lock file does not exist. A device
    /// without shared locks may take the exclusive lock.
    ///
    /// # Errors
    /// `Busy` naming the owner; `Io`.
    fn lock_shared(&self, name: &str) -> Result<Option<DeviceLock>> {
        if self.exists(name)? { self.lock(name).map(Some) } else { Ok(None) }
    }

    /// Creates a nameless file outside of the directory, for data that need not outlive the
    /// process; `None` if this device does not provide such files.
    ///
    /// # Errors
    /// `NotFound`, `NoSpace`, `Io`.
    fn scratch(&self) -> Result<Option<SharedFile>> {
        Ok(None)
    }

    /// Returns the bytes of free space on the device.
    ///
    /// # Errors
    /// `Io`.
    fn free_bytes(&self) -> Result<u64>;

    /// Returns the device's name in messages: a path, if it has one.
    fn describe(&self) -> String;

    /// Opens a directory as a device of its own; creates the directory if it does not exist.
    ///
    /// # Errors
    /// As [`Device::create_dir`].
    fn subdevice(&self, dir: &str) -> Result<SharedDevice>;
}

/// An open file. Closed when the last pointer to it is dropped.
pub trait File: Send + Sync + fmt::Debug {
    /// Returns the name by which the file was opened.
    fn name(&self) -> &str;

    /// Reads from `offset` until `buf` is full or the file ends; returns how many bytes were read.
    ///
    /// # Errors
    /// `Io`.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize>;

    /// Reads all of `buf` from `offset`.
    ///
    /// # Errors
    /// `Corruption` if the file ends earlier (the caller has a reason to expect the bytes), `Io`.
    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let read = self.read_at(offset, buf)?;
        if read == buf.len() {
            return Ok(());
        }
        let message = format!("the file ends after {read} of the {} bytes to read", buf.len());
        Err(Error::corruption(self.name(), offset, "file", message))
    }

    /// Reads all of the buffer of each request, and sets the result of each request to what
    /// [`read_exact_at`](Self::read_exact_at) would return. A device that can have several reads in
    /// progress makes them at the same time; this default makes one after the other.
    fn read_many(&self, requests: &mut [ReadRequest<'_>]) {
        for request in requests {
            request.result = self.read_exact_at(request.offset, request.buf);
        }
    }

    /// Writes all of `buf` at `offset`; the file grows as needed.
    ///
    /// # Errors
    /// `NoSpace`, `Io`; a part may have been written.
    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()>;

    /// Writes the buffers one after the other from `offset` on, in as few calls as possible.
    ///
    /// # Errors
    /// `NoSpace`, `Io`; a part may have been written.
    fn write_vectored_at(&self, offset: u64, bufs: &[&[u8]]) -> Result<()>;

    /// Makes content and length durable (`fdatasync`).
    ///
    /// # Errors
    /// `Io`; the state of the disk is then unknown, and another sync proves nothing.
    fn sync(&self) -> Result<()>;

    /// Returns the file's length, bytes.
    ///
    /// # Errors
    /// `Io`.
    fn len(&self) -> Result<u64>;

    /// Returns whether the file is empty.
    ///
    /// # Errors
    /// `Io`.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Truncates the file, or extends it by zeros that take no space.
    ///
    /// # Errors
    /// `Io`.
    fn set_len(&self, len: u64) -> Result<()>;

    /// Reserves disk space for a range, so that a later write there cannot fail with `NoSpace`.
    /// Extends the file if the range ends beyond it; new bytes read as zeros. A file system that
    /// cannot reserve space only extends the file.
    ///
    /// # Errors
    /// `NoSpace`, `Io`.
    fn allocate(&self, offset: u64, len: u64) -> Result<()>;

    /// Punches a hole: returns the whole pages of a range to the file system. The range then reads
    /// as zeros, and the file keeps its length. A file system without holes changes nothing, so the
    /// caller must neither need the content any more nor rely on the zeros.
    ///
    /// # Errors
    /// `Io`.
    fn punch(&self, offset: u64, len: u64) -> Result<()>;

    /// Returns the disk space of the file, bytes.
    ///
    /// # Errors
    /// `Io`.
    fn allocated_bytes(&self) -> Result<u64>;

    /// Returns whether the operating system's cache is bypassed and alignment is required.
    fn is_direct(&self) -> bool;

    /// Asks the operating system to start writing a range to disk, so that a later sync has less to
    /// wait for. Promises nothing.
    ///
    /// # Errors
    /// `Io`.
    fn start_writeback(&self, offset: u64, len: u64) -> Result<()>;
}

/// One of the reads of [`File::read_many`].
#[derive(Debug)]
pub struct ReadRequest<'a> {
    /// Offset in the file.
    pub offset: u64,
    /// The buffer to fill.
    pub buf: &'a mut [u8],
    /// Set by the file; `Ok` before the call.
    pub result: Result<()>,
}

impl<'a> ReadRequest<'a> {
    /// Creates a read of all of `buf` from `offset`.
    pub fn new(offset: u64, buf: &'a mut [u8]) -> Self {
        Self { offset, buf, result: Ok(()) }
    }
}

/// A lock of a device, which is released on drop.
pub struct DeviceLock {
    name: String,
    /// Its drop releases the lock.
    _guard: Box<dyn Send + Sync>,
}

impl DeviceLock {
    /// Creates a lock called `name` that is released when `guard` is dropped. For implementations
    /// of devices.
    #[must_use]
    pub fn new(name: impl Into<String>, guard: impl Send + Sync + 'static) -> Self {
        Self { name: name.into(), _guard: Box::new(guard) }
    }
}

impl fmt::Debug for DeviceLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceLock({})", self.name)
    }
}
