//! A device wrapper that shows every call of an [`Operation`] to an [`Interceptor`] before it makes
//! the call.
//!
//! Faults, throttle, trace and counters differ only in their handling of a call. So each is an
//! interceptor of a few lines, and the forwarding code of both traits is written once.
//!
//! ```text
//!   engine -> Intercepted<I> -> I::before(call) -> inner device -> I::after_read(...)
//!                                    '-> an error, or how much of a write to let through
//! ```
//! Names in calls are relative to the outermost intercepted device, even for calls through a
//! subdevice.

use std::fmt;
use std::ops::Deref;

use frondb_core::Result;
use frondb_core::sync::Arc;

use crate::device::{Device, DeviceLock, File, OpenOptions, ReadRequest, SharedDevice, SharedFile};
use crate::name;

/// The operation of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[allow(missing_docs, reason = "each is the method of `Device` or `File` of its name")]
pub enum Operation {
    Open,
    Exists,
    List,
    Remove,
    Rename,
    CreateDir,
    SyncDir,
    Lock,
    Read,
    Write,
    Sync,
    SetLen,
    Allocate,
    Punch,
}

/// A call before it is made.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The operation; opening a subdevice is [`Operation::CreateDir`].
    pub operation: Operation,
    /// The file or directory, relative to the outermost intercepted device.
    pub name: &'a str,
    /// The new name of a rename, else empty.
    pub to: &'a str,
    /// Offset in the file; the new length for a `set_len`.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
    /// The options of an `open`; the default for other operations.
    pub options: OpenOptions,
}

impl Call<'_> {
    fn on(operation: Operation, name: &str) -> Call<'_> {
        Call { operation, name, to: "", offset: 0, len: 0, options: OpenOptions::READ }
    }
}

/// The interceptor's decision about a call.
#[derive(Debug)]
pub enum Verdict {
    /// Make the call.
    Pass,
    /// Do not make the call, and return this error.
    Fail(frondb_core::Error),
    /// Write only this many bytes, then return the error. Operations other than writes are not
    /// made.
    Tear(usize, frondb_core::Error),
}

/// Receives every call of an [`Operation`]. Called from any thread, concurrently.
pub trait Interceptor: Send + Sync + fmt::Debug + 'static {
    /// Decides about a call before it is made.
    fn before(&self, call: &Call<'_>) -> Verdict;

    /// Announces that the next `count` reads of the file `name` are requested at once. `before`
    /// then receives each of these reads.
    fn before_many(&self, _name: &str, _count: usize) {}

    /// Receives, and may change, the `bytes` that a read returned from `offset` of the file `name`.
    fn after_read(&self, _name: &str, _offset: u64, _bytes: &mut [u8]) {}
}

/// A device whose calls an interceptor receives.
#[derive(Debug)]
pub struct Intercepted<I> {
    inner: SharedDevice,
    interceptor: Arc<I>,
    dir: String,
}

/// Gives access to the interceptor, for example to counters that it keeps.
impl<I> Deref for Intercepted<I> {
    type Target = I;

    fn deref(&self) -> &I {
        &self.interceptor
    }
}

impl<I: Interceptor> Intercepted<I> {
    /// Wraps `inner` with `interceptor`.
    pub fn wrap(inner: SharedDevice, interceptor: I) -> Self {
        Self { inner, interceptor: Arc::new(interceptor), dir: String::new() }
    }

    fn before(&self, operation: Operation, name: &str) -> Result<()> {
        pass(self.interceptor.before(&Call::on(operation, &name::join(&self.dir, name))))
    }
}

/// Applies a verdict to a call that is made completely or not at all.
fn pass(verdict: Verdict) -> Result<()> {
    match verdict {
        Verdict::Pass => Ok(()),
        Verdict::Fail(error) | Verdict::Tear(_, error) => Err(error),
    }
}

impl<I: Interceptor> Device for Intercepted<I> {
    fn open(&self, name: &str, options: OpenOptions) -> Result<SharedFile> {
        let path = name::join(&self.dir, name);
        let call = Call { options, ..Call::on(Operation::Open, &path) };
        pass(self.interceptor.before(&call))?;
        let inner = self.inner.open(name, options)?;
        let interceptor = Arc::clone(&self.interceptor);
        Ok(Arc::new(InterceptedFile { inner, interceptor, path }))
    }

    fn exists(&self, name: &str) -> Result<bool> {
        self.before(Operation::Exists, name)?;
        self.inner.exists(name)
    }

    fn list(&self, dir: &str) -> Result<Vec<String>> {
        self.before(Operation::List, dir)?;
        self.inner.list(dir)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.before(Operation::Remove, name)?;
        self.inner.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let (path, new) = (name::join(&self.dir, from), name::join(&self.dir, to));
        let call = Call { to: &new, ..Call::on(Operation::Rename, &path) };
        pass(self.interceptor.before(&call))?;
        self.inner.rename(from, to)
    }

    fn create_dir(&self, name: &str) -> Result<()> {
        self.before(Operation::CreateDir, name)?;
        self.inner.create_dir(name)
    }

    fn sync_dir(&self, dir: &str) -> Result<()> {
        self.before(Operation::SyncDir, dir)?;
        self.inner.sync_dir(dir)
    }

    fn lock(&self, name: &str) -> Result<DeviceLock> {
        self.before(Operation::Lock, name)?;
        self.inner.lock(name)
    }

    fn free_bytes(&self) -> Result<u64> {
        self.inner.free_bytes()
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn subdevice(&self, dir: &str) -> Result<SharedDevice> {
        self.before(Operation::CreateDir, dir)?;
        Ok(Arc::new(Self {
            inner: self.inner.subdevice(dir)?,
            interceptor: Arc::clone(&self.interceptor),
            dir: name::join(&self.dir, dir),
        }))
    }
}

/// An open file of an [`Intercepted`] device.
#[derive(Debug)]
struct InterceptedFile<I> {
    inner: SharedFile,
    interceptor: Arc<I>,
    path: String,
}

impl<I: Interceptor> InterceptedFile<I> {
    fn before(&self, operation: Operation, offset: u64, len: u64) -> Verdict {
        let call = Call { offset, len, ..Call::on(operation, &self.path) };
        self.interceptor.before(&call)
    }
}

impl<I: Interceptor> File for InterceptedFile<I> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        pass(self.before(Operation::Read, offset, buf.len() as u64))?;
        let read = self.inner.read_at(offset, buf)?;
        self.interceptor.after_read(&self.path, offset, &mut buf[..read]);
        Ok(read)
    }

    fn read_many(&self, requests: &mut [ReadRequest<'_>]) {
        self.interceptor.before_many(&self.path, requests.len());
        for request in requests {
            request.result = self.read_exact_at(request.offset, request.buf);
        }
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        match self.before(Operation::Write, offset, buf.len() as u64) {
            Verdict::Pass => self.inner.write_at(offset, buf),
            Verdict::Fail(error) => Err(error),
            Verdict::Tear(len, error) => {
                self.inner.write_at(offset, &buf[..len.min(buf.len())])?;
                Err(error)
            }
        }
    }

    fn write_vectored_at(&self, offset: u64, bufs: &[&[u8]]) -> Result<()> {
        let len = bufs.iter().map(|buf| buf.len() as u64).sum();
        match self.before(Operation::Write, offset, len) {
            Verdict::Pass => self.inner.write_vectored_at(offset, bufs),
            Verdict::Fail(error) => Err(error),
            Verdict::Tear(len, error) => {
                let bytes = bufs.concat();
                self.inner.write_at(offset, &bytes[..len.min(bytes.len())])?;
                Err(error)
            }
        }
    }

    fn sync(&self) -> Result<()> {
        pass(self.before(Operation::Sync, 0, 0))?;
        self.inner.sync()
    }

    fn len(&self) -> Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> Result<()> {
        pass(self.before(Operation::SetLen, len, 0))?;
        self.inner.set_len(len)
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        pass(self.before(Operation::Allocate, offset, len))?;
        self.inner.allocate(offset, len)
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        pass(self.before(Operation::Punch, offset, len))?;
        self.inner.punch(offset, len)
    }

    fn allocated_bytes(&self) -> Result<u64> {
        self.inner.allocated_bytes()
    }

    fn is_direct(&self) -> bool {
        self.inner.is_direct()
    }

    fn start_writeback(&self, offset: u64, len: u64) -> Result<()> {
        self.inner.start_writeback(offset, len)
    }
}
