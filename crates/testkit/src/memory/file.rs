//! An open file of the in-memory device: each call takes the device's lock, so it is atomic.

use std::fmt;

use rustix::io::Errno;

use frondb_core::Result;
use frondb_core::sync::{Arc, Mutex};

use super::inode::Change;
use super::state::{DeviceState, failed, observe};
use super::tree::InodeId;
use frondb_device::File;

/// Longest file, bytes: the limit of an operating system's signed offsets.
const FILE_BYTES_MAX: u64 = i64::MAX as u64;

/// An open file of a [`MemoryDevice`].
pub(super) struct MemoryFile {
    pub(super) shared: Arc<Mutex<DeviceState>>,
    pub(super) id: InodeId,
    pub(super) name: String,
    pub(super) path: String,
    pub(super) writes: bool,
}

impl MemoryFile {
    /// Counts and makes a change of a range, if the space for it is available.
    fn change(&self, offset: u64, len: u64, change: Change) -> Result<()> {
        observe(&self.shared);
        let mut state = self.shared.lock();
        state.check()?;
        if !self.writes {
            return Err(failed("write", &self.path, Errno::BADF));
        }
        if offset.checked_add(len).is_none_or(|end| end > FILE_BYTES_MAX) {
            return Err(failed("write", &self.path, Errno::FBIG));
        }
        let cost = match change {
            Change::Write(..) | Change::Allocate(..) => {
                state.inode(self.id)?.live.cost(offset, len)
            }
            Change::SetLen(_) | Change::Punch(..) => 0,
        };
        if cost > state.capacity.saturating_sub(state.used) {
            return Err(failed("write", &self.path, Errno::NOSPC));
        }
        state.change(self.id, change)
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        self.shared.lock().close(self.id);
    }
}

impl fmt::Debug for MemoryFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryFile({})", self.path)
    }
}

impl File for MemoryFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let state = self.shared.lock();
        state.check()?;
        Ok(state.inode(self.id)?.live.read(offset, buf))
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.write_vectored_at(offset, &[buf])
    }

    fn write_vectored_at(&self, offset: u64, bufs: &[&[u8]]) -> Result<()> {
        let bytes = bufs.concat();
        if bytes.is_empty() {
            return Ok(());
        }
        self.change(offset, bytes.len() as u64, Change::Write(offset, bytes))
    }

    fn sync(&self) -> Result<()> {
        observe(&self.shared);
        let mut state = self.shared.lock();
        state.point()?;
        if let Some(inode) = state.inodes.get_mut(&self.id) {
            inode.sync();
        }
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        let state = self.shared.lock();
        state.check()?;
        Ok(state.inode(self.id)?.live.len())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.change(len, 0, Change::SetLen(len))
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        self.change(offset, len, Change::Allocate(offset, len))
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        self.change(offset, len, Change::Punch(offset, len))
    }

    fn allocated_bytes(&self) -> Result<u64> {
        let state = self.shared.lock();
        state.check()?;
        Ok(state.inode(self.id)?.live.allocated_bytes())
    }

    fn is_direct(&self) -> bool {
        false
    }

    fn start_writeback(&self, _offset: u64, _len: u64) -> Result<()> {
        self.shared.lock().check()
    }
}
