//! [`Open`]: an open database. A [`Db`](crate::Db), its trees, transactions and bulk loads share
//! it.
//!
//! ```text
//!  opening.rs  lock the directory, recover, plan the work that is due, start workers
//!  recovery.rs survey.rs replay.rs manifest_state.rs   the manifest, then the log twice
//!  parts.rs    the parts, each under its own name, with the handles that it needs
//!  close.rs    flush, free the log, stop workers, unlock the directory
//! ```
//!
//! No type below [`Open`] holds the whole database. `docs/design/` describes the parts in
//! wal-and-commit, recovery, background-work, cursors and transactions.

mod close;
pub(crate) mod damage;
pub(crate) mod layout;
pub(crate) mod manifest_state;
mod opening;
pub(crate) mod parts;
pub(crate) mod process_memory;
pub(crate) mod recovery;
mod replay;
pub(crate) mod survey;

#[cfg(all(test, not(shuttle)))]
mod prepared_tests;

use std::ops::Deref;

use frondb_background::Load;
use frondb_commit::{Batch, CallGuard, Durability};
use frondb_core::Result;
use frondb_core::executor::JoinHandle;
use frondb_core::sync::atomic::AtomicBool;
use frondb_core::sync::{Arc, Mutex};
use frondb_device::{DeviceLock, SharedDevice};
use frondb_txn::BatchLocks;

use crate::open::parts::Parts;
use crate::open::process_memory::ProcessMemory;
use crate::open::recovery::Recovery;
use crate::options::Options;
use crate::readers::Readers;

/// An open database. Every method may be called from any thread.
///
/// [`close`](Self::close) waits for calls that may write: see [`frondb_commit::Calls`].
pub(crate) struct Open {
    /// The parts; `Open` dereferences to them.
    pub(crate) parts: Parts,
    pub(crate) options: Options,
    /// The database directory.
    pub(crate) device: SharedDevice,
    /// The log's directory.
    pub(crate) log_device: SharedDevice,
    pub(crate) memory: ProcessMemory,
    workers: Mutex<Vec<JoinHandle>>,
    /// The threads of asynchronous calls.
    pub(crate) readers: Arc<Readers>,
    pub(crate) recovery: Recovery,
    /// The locks of the database directory and of the log directory; empty once closed.
    locks: Mutex<Vec<DeviceLock>>,
    /// Whether a backup has fixed its moment; only one backup at a time may have one.
    pub(crate) is_backing_up: AtomicBool,
    closed: Mutex<Result<()>>,
}

impl Deref for Open {
    type Target = Parts;

    #[inline]
    fn deref(&self) -> &Parts {
        &self.parts
    }
}

impl Open {
    /// Begins a call that may write. The call holds the returned guard while it runs; a thread must
    /// hold only one guard.
    pub(crate) fn begin_call(&self) -> Result<CallGuard<'_>> {
        self.txns.calls.begin()
    }

    /// Commits a batch atomically. Returns when the batch is as durable as `durability` requires;
    /// later reads see it.
    ///
    /// # Errors
    /// `Invalid` for a malformed or too large batch; `NotFound` if a tree was dropped; `NoSpace`
    /// (nothing has changed; the caller may retry); `LockTimeout`, `Deadlock` or `TooManyLocks`
    /// while the batch takes locks (nothing has changed); `Poisoned`, `Closed`.
    pub(crate) fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        let _call = self.begin_call()?;
        batch.check_bytes(self.shares.now().batch_bytes())?;
        let Parts { reads, background, committer, txns, .. } = &self.parts;
        let begun = reads.now();
        background.admit(Load::of(batch), &|| false)?;
        let locks = BatchLocks::take(txns, batch)?;
        let committed =
            background.lending_space(batch.frees_space(), || committer.commit_batch(batch))?;
        drop(locks);
        background.committed(&committed, batch.len() as u64, batch.bytes() as u64, begun);
        txns.make_durable(committed.end, durability)
    }
}

impl std::fmt::Debug for Open {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Open({})", self.device.describe())
    }
}
