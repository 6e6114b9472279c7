//! The in-memory device of crash tests: it records which changes were synced, can stop at any call,
//! and shows the state that a power failure would leave.
//!
//! ```text
//!            write, set_len, ...        create, remove, rename
//!                   v                            v
//!   inode:  live <- changes <- synced    tree:  live <- pending <- durable
//!                        sync -^                    sync_dir -^
//! ```
//! A crash test runs a history once to count its points (calls that change or sync something).
//! Then, for each point, it runs the history again with [`MemoryDevice::stop_after`], takes
//! [`MemoryDevice::crash`] in each [`CrashMode`], and reopens the result. [`crash`](crate::crash)
//! does this for any history.
//!
//! The device is stricter than any single file system: an unsynced file may keep any subset of its
//! sectors, tear a sector in the middle, and vanish with its name. An engine that is correct here
//! is correct on ext4 and XFS.
//!
//! One lock guards the device, so calls are atomic and totally ordered; calls of many threads do
//! not scale, and need not. Copies share pages until one is written, so a crash copy costs one map
//! per file.

mod content;
mod file;
mod inode;
mod state;
mod tree;

use std::collections::BTreeMap;
use std::fmt;

use rustix::io::Errno;

use content::Content;
use file::MemoryFile;
use frondb_core::prng::Prng;
use frondb_core::sync::{Arc, Mutex, MutexGuard};
use frondb_core::{Error, ErrorKind, Result};
use frondb_device::name;
use frondb_device::{Device, DeviceLock, OpenOptions, SharedDevice, SharedFile};
use inode::Inode;
pub use state::Observer;
use state::{DeviceState, failed, observe};
use tree::{Entry, Names, Operation, Tree};

/// How much of the unsynced state survives a power failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum CrashMode {
    /// Nothing: the strictest disk.
    LoseUnsynced,
    /// All of it: as after `kill -9`, where only the process dies.
    KeepAll,
    /// A random part, drawn from this seed: sectors, lengths and names are kept or lost
    /// independently, and one write may be torn at any byte.
    Random(u64),
}

/// An in-memory directory of files. A clone is another handle to the same device.
#[derive(Clone)]
pub struct MemoryDevice {
    shared: Arc<Mutex<DeviceState>>,
    /// The directory of this handle; empty for the top directory.
    dir: String,
}

impl Default for MemoryDevice {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryDevice {
    /// Creates an empty device without a limit.
    #[must_use]
    pub fn new() -> Self {
        Self::from_state(DeviceState::new(Tree::default(), BTreeMap::new()))
    }

    fn from_state(state: DeviceState) -> Self {
        Self { shared: Arc::new(Mutex::new(state)), dir: String::new() }
    }

    /// Returns the number of points so far: calls that changed or synced something, which are opens
    /// that create a file, remove, rename, create_dir, sync_dir, write, sync, set_len, allocate and
    /// punch.
    #[must_use]
    pub fn points(&self) -> u64 {
        self.state().points
    }

    /// Stops the device at the call that would be point number `n` (counted from 0, so `n` calls
    /// take effect): this call and every later call, reads included, fail with an Io error "the
    /// simulated device was stopped" and change nothing.
    pub fn stop_after(&self, n: u64) {
        self.state().stop_at = n;
    }

    /// Returns whether a call has reached the stop.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.state().stopped
    }

    /// Sets an `observer` that is called before each call that may change or sync something, on the
    /// thread of that call, with the number that the point would have. The observer may inspect the
    /// device and take crash copies of it. It may get a number twice: if a call was refused, or if
    /// another thread makes a call at the same time.
    ///
    /// An observer that holds this device keeps it alive: set `None` at the end.
    pub fn set_observer(&self, observer: Option<Observer>) {
        self.state().observer = observer;
    }

    /// Returns a new device with the state that a power failure at this moment would leave. The new
    /// device is not stopped, has no locks and no limit, and counts its points from zero. This
    /// device is not changed.
    #[must_use]
    pub fn crash(&self, mode: CrashMode) -> Self {
        let state = self.state();
        let mut prng = Prng::new(match mode {
            CrashMode::Random(seed) => seed,
            CrashMode::LoseUnsynced | CrashMode::KeepAll => 0,
        });
        let names: Names = match mode {
            CrashMode::LoseUnsynced => state.tree.after_losing_unsynced(),
            CrashMode::KeepAll => state.tree.live.clone(),
            CrashMode::Random(_) => state.tree.after_random_crash(&mut prng),
        };
        let mut inodes = BTreeMap::new();
        for entry in names.values() {
            let Entry::File(id) = entry else { continue };
            let Some(inode) = state.inodes.get(id) else { continue };
            let content: Content = match mode {
                CrashMode::LoseUnsynced => inode.after_losing_unsynced(),
                CrashMode::KeepAll => inode.live.clone(),
                CrashMode::Random(_) => inode.after_random_crash(&mut prng),
            };
            inodes.insert(*id, Inode::durable(content));
        }
        Self::from_state(DeviceState::new(Tree::durable(names), inodes))
    }

    /// Limits the device to `bytes` of allocated pages. If more is allocated already, nothing
    /// further can be allocated until enough was freed.
    pub fn set_capacity(&self, bytes: u64) {
        self.state().capacity = bytes;
    }

    /// Returns the bytes of allocated pages of all files that are named or open.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.state().used
    }

    fn state(&self) -> MutexGuard<'_, DeviceState> {
        self.shared.lock()
    }

    fn path(&self, name: &str) -> Result<String> {
        name::check(name)?;
        Ok(name::join(&self.dir, name))
    }
}

impl fmt::Debug for MemoryDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryDevice({})", self.describe())
    }
}

impl Device for MemoryDevice {
    fn open(&self, name: &str, options: OpenOptions) -> Result<SharedFile> {
        let path = self.path(name)?;
        if options.create || options.create_new {
            observe(&self.shared);
        }
        let mut state = self.state();
        state.check()?;
        let id = match state.tree.live.get(&path) {
            Some(_) if options.create_new => return Err(failed("open", &path, Errno::EXIST)),
            Some(Entry::Dir) => {
                return Err(Error::invalid(format!("{path} is a directory, not a regular file")));
            }
            Some(Entry::File(id)) => *id,
            None if !(options.create || options.create_new) => {
                return Err(failed("open", &path, Errno::NOENT));
            }
            None if !state.tree.is_dir(name::parent(&path)) => {
                return Err(failed("open", &path, Errno::NOENT));
            }
            None => {
                state.point()?;
                let id = state.next_inode;
                state.next_inode += 1;
                state.inodes.insert(id, Inode::new());
                state.tree.change(Operation::Create(path.clone(), Entry::File(id)));
                id
            }
        };
        if let Some(inode) = state.inodes.get_mut(&id) {
            inode.handles += 1;
        }
        drop(state);
        let shared = Arc::clone(&self.shared);
        let writes = options.writes();
        Ok(Arc::new(MemoryFile { shared, id, name: name.to_owned(), path, writes }))
    }

    fn exists(&self, name: &str) -> Result<bool> {
        let path = self.path(name)?;
        let state = self.state();
        state.check()?;
        Ok(state.tree.live.contains_key(&path))
    }

    fn list(&self, dir: &str) -> Result<Vec<String>> {
        name::check_dir(dir)?;
        let dir = name::join(&self.dir, dir);
        let state = self.state();
        state.check()?;
        if !state.tree.is_dir(&dir) {
            return Err(failed("list", &dir, Errno::NOENT));
        }
        let prefix = if dir.is_empty() { dir } else { format!("{dir}/") };
        let below = state.tree.live.range(prefix.clone()..);
        Ok(below
            .map_while(|(path, _)| path.strip_prefix(&prefix))
            .filter(|name| !name.contains('/'))
            .map(str::to_owned)
            .collect())
    }

    fn remove(&self, name: &str) -> Result<()> {
        let path = self.path(name)?;
        observe(&self.shared);
        let mut state = self.state();
        state.check()?;
        let id = state.file("remove", &path)?;
        state.point()?;
        state.tree.change(Operation::Remove(path));
        state.unlink(id);
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (self.path(from)?, self.path(to)?);
        observe(&self.shared);
        let mut state = self.state();
        state.check()?;
        let id = state.file("rename", &from)?;
        if !state.tree.is_dir(name::parent(&to)) {
            return Err(failed("rename", &from, Errno::NOENT));
        }
        let replaced = match state.tree.live.get(&to) {
            Some(Entry::Dir) => return Err(failed("rename", &from, Errno::ISDIR)),
            Some(Entry::File(replaced)) if *replaced != id => Some(*replaced),
            _ => None,
        };
        state.point()?;
        state.tree.change(Operation::Rename(from, to));
        if let Some(replaced) = replaced {
            state.unlink(replaced);
        }
        Ok(())
    }

    fn create_dir(&self, name: &str) -> Result<()> {
        let path = self.path(name)?;
        observe(&self.shared);
        let mut state = self.state();
        state.check()?;
        match state.tree.live.get(&path) {
            Some(Entry::Dir) => return Ok(()),
            Some(Entry::File(_)) => return Err(failed("create directory", &path, Errno::EXIST)),
            None if !state.tree.is_dir(name::parent(&path)) => {
                return Err(failed("create directory", &path, Errno::NOENT));
            }
            None => {}
        }
        state.point()?;
        state.tree.change(Operation::Create(path, Entry::Dir));
        Ok(())
    }

    fn sync_dir(&self, dir: &str) -> Result<()> {
        name::check_dir(dir)?;
        let dir = name::join(&self.dir, dir);
        observe(&self.shared);
        let mut state = self.state();
        state.check()?;
        if !state.tree.is_dir(&dir) {
            return Err(failed("sync directory", &dir, Errno::NOENT));
        }
        state.point()?;
        state.tree.sync(&dir);
        state.forget_unreachable();
        Ok(())
    }

    fn lock(&self, name: &str) -> Result<DeviceLock> {
        let path = self.path(name)?;
        let mut state = self.state();
        state.check()?;
        if !state.locks.insert(path.clone()) {
            let message = format!("{} is in use by pid {}", self.describe(), std::process::id());
            return Err(Error::new(ErrorKind::Busy, message));
        }
        if !state.tree.live.contains_key(&path) {
            let id = state.next_inode;
            state.next_inode += 1;
            state.inodes.insert(id, Inode::durable(Content::default()));
            state.tree.add_durable(&path, Entry::File(id));
        }
        drop(state);
        let shared = Arc::clone(&self.shared);
        Ok(DeviceLock::new(name, MemoryLock { shared, path }))
    }

    fn free_bytes(&self) -> Result<u64> {
        let state = self.state();
        state.check()?;
        Ok(state.capacity.saturating_sub(state.used))
    }

    fn describe(&self) -> String {
        format!("memory:{}", self.dir)
    }

    fn subdevice(&self, dir: &str) -> Result<SharedDevice> {
        self.create_dir(dir)?;
        Ok(Arc::new(Self { shared: Arc::clone(&self.shared), dir: self.path(dir)? }))
    }
}

/// A held lock.
struct MemoryLock {
    shared: Arc<Mutex<DeviceState>>,
    path: String,
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.shared.lock().locks.remove(&self.path);
    }
}
