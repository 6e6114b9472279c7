//! [`Edits`]: the manifest of an open database, and the latch under which edits are made.
//!
//! ```text
//!   begin() --> EditLatch --> record / append --> change memory --> drop            many at a time
//!   snapshot(): captures the state while no latch is held, then writes it          one at a time
//! ```
//!
//! An edit of [`EditLatch::record`] is made durable before the state in memory changes, so a change
//! that fails has changed nothing. An install changes the state in memory when its edit is appended
//! and not yet durable ([`EditLatch::append_final`]). The edit latch is held until the edit is
//! appended and the state has changed. A snapshot of the manifest therefore captures the state
//! before both or after both: it cannot lose an edit, and cannot keep one that was abandoned.
//!
//! Lock order: the snapshot lock, the edit latch, then the lock of [`PendingState`], under which no
//! other lock is taken.

use frondb_core::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard};
use frondb_core::{ErrorKind, Result};
use frondb_manifest::{Manifest, SnapshotWriter, Ticket};
use frondb_records::{Edit, encode_edit};
use frondb_tree::Health;

use crate::pending::PendingState;
use crate::wear::WearMeter;

/// The manifest of an open database. Any thread may use it.
pub struct Edits {
    /// The manifest, which stores edits as bytes.
    pub manifest: Manifest,
    /// Counts what the database writes to its files. The superblocks of the manifest carry the
    /// totals.
    pub wear: Arc<WearMeter>,
    /// The edit latch: held for reading while an edit is made, for writing while a snapshot is
    /// captured.
    latch: RwLock<()>,
    /// Held by the thread that writes a snapshot: a worker and a caller may both want to write one.
    snapshot: Mutex<()>,
    pending: Mutex<PendingState>,
    health: Arc<Health>,
}

/// The edit latch, held for reading until the state in memory matches the edit.
pub struct EditLatch<'a> {
    edits: &'a Edits,
    _latch: RwLockReadGuard<'a, ()>,
}

impl Edits {
    /// Takes the manifest that recovery has opened, and the state of its pending parts and prepared
    /// transactions.
    #[must_use]
    pub fn new(
        manifest: Manifest,
        pending: PendingState,
        health: Arc<Health>,
        wear: Arc<WearMeter>,
    ) -> Arc<Self> {
        Arc::new(Self {
            manifest,
            wear,
            latch: RwLock::new(()),
            snapshot: Mutex::new(()),
            pending: Mutex::new(pending),
            health,
        })
    }

    /// Takes the edit latch. Waits while a snapshot is captured.
    pub fn begin(&self) -> EditLatch<'_> {
        EditLatch { edits: self, _latch: self.latch.read() }
    }

    /// Returns the transactions in the manifest whose writes are not part of the trees yet. The
    /// returned state may change only while an [`EditLatch`] is held.
    pub fn pending(&self) -> MutexGuard<'_, PendingState> {
        self.pending.lock()
    }

    /// Calls `capture` while no edit is under way.
    pub fn capture<S>(&self, capture: impl FnOnce() -> S) -> S {
        let _latch = self.latch.write();
        capture()
    }

    /// Replaces the edits of the manifest by a snapshot if `is_due` returns `true`; `is_due` is
    /// called while no other snapshot is being written. `capture` is called while no edit is under
    /// way, `write` while edits continue. Returns whether a snapshot was written.
    ///
    /// # Errors
    /// Errors of `write` and of the manifest, except `NoSpace` and `Busy`: then the old file stays
    /// in use, and the result is `false`.
    pub fn snapshot<S>(
        &self,
        is_due: impl FnOnce(&Manifest) -> bool,
        capture: impl FnOnce() -> S,
        write: impl FnOnce(S, &mut SnapshotWriter) -> Result<()>,
    ) -> Result<bool> {
        let _snapshot = self.snapshot.lock();
        if !is_due(&self.manifest) {
            return Ok(false);
        }
        let written = || {
            let (state, mut writer) = {
                let _latch = self.latch.write();
                let state = capture();
                (state, self.manifest.begin_snapshot()?)
            };
            write(state, &mut writer)?;
            writer.finish()
        };
        match written() {
            Ok(()) => Ok(true),
            // `NoSpace`: a later attempt may find space. `Busy`: edits failed during this snapshot,
            // so a new one is needed.
            Err(error) if matches!(error.kind(), ErrorKind::NoSpace | ErrorKind::Busy) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl EditLatch<'_> {
    /// Appends edits that take effect together, and waits until they are durable.
    ///
    /// # Errors
    /// `NoSpace`: nothing has changed, and the call may be repeated. After any other error it is
    /// unknown what the manifest contains, and the database is poisoned.
    pub fn record(&self, edits: &[Edit]) -> Result<()> {
        let manifest = &self.edits.manifest;
        let ticket = manifest.append(&encode(edits));
        // The caller reports success or frees space because of the edit, so a superblock must
        // record that the edit is durable.
        ticket.and_then(|ticket| manifest.secure(ticket)).inspect_err(|error| {
            if error.kind() != ErrorKind::NoSpace {
                self.edits.health.poison(error);
            }
        })
    }

    /// Appends edits that take effect together, without waiting until they are durable.
    ///
    /// # Errors
    /// As [`Manifest::append`].
    pub fn append(&self, edits: &[Edit]) -> Result<Ticket> {
        self.edits.manifest.append(&encode(edits))
    }

    /// Appends edits that readers see before the edits are durable. Returns the ticket to wait for,
    /// and the size of the edits in bytes.
    ///
    /// # Errors
    /// As [`Manifest::append_final`]. An error poisons the database, because no edit may follow one
    /// that failed.
    pub fn append_final(&self, edits: &[Edit]) -> Result<(Ticket, u64)> {
        let record = encode(edits);
        let ticket = self.edits.manifest.append_final(&record);
        let ticket = ticket.inspect_err(|error| self.edits.health.poison(error))?;
        Ok((ticket, record.len() as u64))
    }
}

fn encode(edits: &[Edit]) -> Vec<u8> {
    let mut bytes = Vec::new();
    edits.iter().for_each(|edit| encode_edit(&mut bytes, edit));
    bytes
}
