//! The state of an in-memory device: names, files, and the counter of points at which it can stop.
//!
//! Invariant: `used` is the sum of the allocated bytes of every inode that is linked or open.

use std::collections::{BTreeMap, BTreeSet};

use rustix::io::Errno;

use frondb_core::sync::{Arc, Mutex};
use frondb_core::{Error, ErrorKind, Result};

use super::inode::{Change, Inode};
use super::tree::{Entry, InodeId, Tree};

/// Called before each point with its number; see
/// [`MemoryDevice::set_observer`](super::MemoryDevice::set_observer).
pub type Observer = Arc<dyn Fn(u64) + Send + Sync>;

/// The whole state of a device.
pub(super) struct DeviceState {
    pub(super) tree: Tree,
    pub(super) inodes: BTreeMap<InodeId, Inode>,
    pub(super) next_inode: InodeId,
    pub(super) locks: BTreeSet<String>,
    pub(super) points: u64,
    pub(super) stop_at: u64,
    pub(super) stopped: bool,
    pub(super) capacity: u64,
    pub(super) used: u64,
    pub(super) observer: Option<Observer>,
}

impl DeviceState {
    pub(super) fn new(tree: Tree, inodes: BTreeMap<InodeId, Inode>) -> Self {
        let used = inodes.values().map(|inode| inode.live.allocated_bytes()).sum();
        let next_inode = inodes.last_key_value().map_or(0, |(id, _)| id + 1);
        Self {
            tree,
            inodes,
            next_inode,
            locks: BTreeSet::new(),
            points: 0,
            stop_at: u64::MAX,
            stopped: false,
            capacity: u64::MAX,
            used,
            observer: None,
        }
    }

    /// Fails if the device has stopped.
    pub(super) fn check(&self) -> Result<()> {
        if self.stopped {
            Err(Error::new(ErrorKind::Io, "the simulated device was stopped"))
        } else {
            Ok(())
        }
    }

    /// Counts a call that changes or syncs something; stops the device at the chosen call.
    pub(super) fn point(&mut self) -> Result<()> {
        self.check()?;
        self.stopped = self.points >= self.stop_at;
        self.check()?;
        self.points += 1;
        Ok(())
    }

    pub(super) fn inode(&self, id: InodeId) -> Result<&Inode> {
        self.inodes.get(&id).ok_or_else(|| Error::internal("an open file has no inode"))
    }

    /// Counts a change and applies it.
    pub(super) fn change(&mut self, id: InodeId, change: Change) -> Result<()> {
        self.point()?;
        let Some(inode) = self.inodes.get_mut(&id) else {
            return Err(Error::internal("an open file has no inode"));
        };
        let before = inode.live.allocated_bytes();
        inode.change(change);
        self.used = self.used - before + inode.live.allocated_bytes();
        Ok(())
    }

    /// Notes that the live tree no longer names a file.
    pub(super) fn unlink(&mut self, id: InodeId) {
        if let Some(inode) = self.inodes.get_mut(&id) {
            inode.linked = false;
            if inode.handles == 0 {
                self.used -= inode.live.allocated_bytes();
            }
        }
    }

    pub(super) fn close(&mut self, id: InodeId) {
        if let Some(inode) = self.inodes.get_mut(&id) {
            inode.handles -= 1;
            if inode.handles == 0 && !inode.linked {
                self.used -= inode.live.allocated_bytes();
            }
        }
    }

    /// Frees the files that no name, open handle or crash can reach.
    pub(super) fn forget_unreachable(&mut self) {
        let durable = self.tree.reachable_inodes();
        self.inodes.retain(|id, inode| inode.linked || inode.handles > 0 || durable.contains(id));
    }

    /// Returns the file at `path`. The error says that `action` failed.
    pub(super) fn file(&self, action: &str, path: &str) -> Result<InodeId> {
        match self.tree.live.get(path) {
            Some(Entry::File(id)) => Ok(*id),
            Some(Entry::Dir) => Err(failed(action, path, Errno::ISDIR)),
            None => Err(failed(action, path, Errno::NOENT)),
        }
    }
}

/// Calls the observer before a call that may be a point, without the lock, so that the observer can
/// use the device.
pub(super) fn observe(shared: &Mutex<DeviceState>) {
    let state = shared.lock();
    if state.stopped {
        return;
    }
    if let Some(observer) = state.observer.clone() {
        let point = state.points;
        drop(state);
        observer(point);
    }
}

pub(super) fn failed(action: &str, path: &str, errno: Errno) -> Error {
    let error = Error::io(action, path, &errno.into());
    if errno == Errno::EXIST { error.with_kind(ErrorKind::Exists) } else { error }
}
