//! The contract: what the engine asks of a directory and of a file, and what it may rely on.
//!
//! # Durability
//! Nothing is durable until it is synced, and names are not content:
//!
//! | after | survives power loss |
//! |---|---|
//! | `write_at`, `set_len`, `allocate`, `punch` | nothing is promised: any part may be there |
//! | `File::sync` | the file's content and length, *if its name is durable* |
//! | `open` with create, `remove`, `rename`, `create_dir` | nothing is promised; a rename is one step |
//! | `Device::sync_dir` | the names in that directory |
//!
//! So a new file is durable after its `sync` and the `sync_dir` of its directory, in any order. A
//! failed sync leaves the state of the disk unknown: the caller poisons what depended on it and
//! never syncs again to find out.
//!
//! # Direct I/O
//! A file opened with `direct` bypasses the operating system's cache where the file system can.
//! [`File::is_direct`] says whether it does; then offsets, lengths and memory must be aligned to
//! [`PAGE_BYTES`](frondb_core::limits::PAGE_BYTES), which is asserted.

use std::fmt;

use frondb_core::sync::Arc;
use frondb_core::{Error, Result};

/// A device as the parts of the engine hold it.
pub type SharedDevice = Arc<dyn Device>;

/// An open file as the parts of the engine hold it.
pub type SharedFile = Arc<dyn File>;

/// How to open a file. The default opens an existing file for reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct OpenOptions {
    /// Make the file if it does not exist.
    pub create: bool,
    /// Make the file, and fail with `Exists` if it exists.
    pub create_new: bool,
    /// Allow writing; making a file implies it.
    pub write: bool,
    /// Bypass the operating system's cache if the file system can ([`File::is_direct`]).
    pub direct: bool,
}

impl OpenOptions {
    /// An existing file, to read.
    pub const READ: Self = Self { create: false, create_new: false, write: false, direct: false };
    /// An existing file, to read and write.
    pub const WRITE: Self = Self { write: true, ..Self::READ };
    /// A file to read and write, made if it does not exist.
    pub const CREATE: Self = Self { create: true, ..Self::WRITE };
    /// A file to read and write that must not exist yet.
    pub const CREATE_NEW: Self = Self { create_new: true, ..Self::WRITE };

    /// The same with direct I/O or without.
    #[must_use]
    pub const fn direct(mut self, direct: bool) -> Self {
        self.direct = direct;
        self
    }

    /// Whether the opened file may be written.
    #[must_use]
    pub const fn writes(self) -> bool {
        self.write || self.create || self.create_new
    }
}

/// A directory of files. Names are relative paths with `/`, checked by [`name`](crate::name); the
/// empty name stands for the directory itself where a directory is asked for.
pub trait Device: Send + Sync + fmt::Debug {
    /// Opens a file.
    ///
    /// # Errors
    /// `NotFound`, `Exists` (with `create_new`), `NoSpace`, `Io`, `Invalid` for a bad name.
    fn open(&self, name: &str, options: OpenOptions) -> Result<SharedFile>;

    /// Whether a file or directory of that name exists.
    ///
    /// # Errors
    /// `Io` if that cannot be told.
    fn exists(&self, name: &str) -> Result<bool>;

    /// The names in a directory, sorted, without the directory in front.
    ///
    /// # Errors
    /// `NotFound` if the directory does not exist, `Io`.
    fn list(&self, dir: &str) -> Result<Vec<String>>;

    /// Removes a file. Who has it open can go on; its space is freed when the last one closes it.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    fn remove(&self, name: &str) -> Result<()>;

    /// Renames a file in one step, replacing a file of the new name.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    fn rename(&self, from: &str, to: &str) -> Result<()>;

    /// Makes a directory; its parent must exist. One that exists already is fine.
    ///
    /// # Errors
    /// `NotFound` if the parent does not exist, `Exists` if the name is a file, `Io`.
    fn create_dir(&self, name: &str) -> Result<()>;

    /// Makes the names of a directory durable.
    ///
    /// # Errors
    /// `Io`; the state of the names is then unknown.
    fn sync_dir(&self, dir: &str) -> Result<()>;

    /// Takes the lock that the file `name` stands for, until the returned guard is dropped or the
    /// process ends, however it ends. The file stays behind; the next owner reuses it.
    ///
    /// # Errors
    /// `Busy` naming the owner ("in use by pid N"), also if the owner is this process; `Io`.
    fn lock(&self, name: &str) -> Result<DeviceLock>;

    /// Takes the lock beside other readers, without changing anything: it keeps out who calls
    /// [`lock`](Device::lock), and the other way round. `None` where the lock's file does not exist. A
    /// device may have no shared locks and take the lock for itself.
    ///
    /// # Errors
    /// `Busy` naming the owner; `Io`.
    fn lock_shared(&self, name: &str) -> Result<Option<DeviceLock>> {
        if self.exists(name)? { self.lock(name).map(Some) } else { Ok(None) }
    }

    /// A file without a name, outside of the directory, for what need not outlive the process; `None` if this
    /// device has none to give.
    ///
    /// # Errors
    /// `NotFound`, `NoSpace`, `Io`.
    fn scratch(&self) -> Result<Option<SharedFile>> {
        Ok(None)
    }

    /// Bytes that can still be written.
    ///
    /// # Errors
    /// `Io`.
    fn free_bytes(&self) -> Result<u64>;

    /// What to call this device in a message: a path, if it has one.
    fn describe(&self) -> String;

    /// A directory of this device as a device of its own, made if it does not exist.
    ///
    /// # Errors
    /// As [`Device::create_dir`].
    fn subdevice(&self, dir: &str) -> Result<SharedDevice>;
}

/// An open file. Closed when the last pointer to it is dropped.
pub trait File: Send + Sync + fmt::Debug {
    /// The name it was opened by.
    fn name(&self) -> &str;

    /// Reads from `offset` until `buf` is full or the file ends; returns how many bytes were read.
    ///
    /// # Errors
    /// `Io`.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize>;

    /// Reads all of `buf` from `offset`.
    ///
    /// # Errors
    /// `Corruption` if the file ends before (the caller has a reason to believe that the bytes
    /// are there), `Io`.
    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let read = self.read_at(offset, buf)?;
        if read == buf.len() {
            return Ok(());
        }
        let message = format!("the file ends after {read} of {} bytes", buf.len());
        Err(Error::corruption(self.name(), offset, "file", message))
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
    /// `Io`; what is on disk is then unknown, and another sync proves nothing.
    fn sync(&self) -> Result<()>;

    /// The file's length, bytes.
    ///
    /// # Errors
    /// `Io`.
    fn len(&self) -> Result<u64>;

    /// Whether the file has no byte.
    ///
    /// # Errors
    /// `Io`.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts the file or extends it by zeros that take no space.
    ///
    /// # Errors
    /// `Io`.
    fn set_len(&self, len: u64) -> Result<()>;

    /// Takes space for a range now, so that writing there later cannot fail with `NoSpace`.
    /// Extends the file if the range ends beyond it; what is new reads as zeros. A file system
    /// that cannot promise space only extends the file.
    ///
    /// # Errors
    /// `NoSpace`, `Io`.
    fn allocate(&self, offset: u64, len: u64) -> Result<()>;

    /// Gives the whole pages of a range back to the file system; the range then reads as zeros
    /// and the length of the file stays. A file system without holes leaves all as it is, so the
    /// caller must be done with the range's content but cannot rely on its absence.
    ///
    /// # Errors
    /// `Io`.
    fn punch(&self, offset: u64, len: u64) -> Result<()>;

    /// Bytes of disk the file takes.
    ///
    /// # Errors
    /// `Io`.
    fn allocated_bytes(&self) -> Result<u64>;

    /// Whether the operating system's cache is bypassed and alignment is required.
    fn is_direct(&self) -> bool;

    /// Asks the operating system to start writing a range out, so that a later sync has less to
    /// wait for. Promises nothing.
    ///
    /// # Errors
    /// `Io`.
    fn start_writeback(&self, offset: u64, len: u64) -> Result<()>;
}

/// A taken lock; dropping it releases it.
pub struct DeviceLock {
    name: String,
    /// Released by its own drop.
    _guard: Box<dyn Send + Sync>,
}

impl DeviceLock {
    /// For devices: a lock called `name` that is released when `guard` is dropped.
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
