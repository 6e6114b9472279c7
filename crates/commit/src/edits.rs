//! [`Edits`]: the manifest as the open database changes it.
//!
//! ```text
//!   begin() --> EditLatch --> record / append --> change what is in memory --> drop      many at a time
//!   snapshot() waits until no latch is held, and no latch is given out meanwhile          one at a time
//! ```
//!
//! A change is made durable first and seen afterwards, so that a change that fails has changed nothing.
//! The latch is held meanwhile: a snapshot of the manifest captures the state before both or after both,
//! and can neither lose an edit nor keep one that was given up.
//!
//! Lock order: the snapshot lock, the latch, then what [`crate::pending`] keeps, whose lock is a leaf.

use frondb_core::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard};
use frondb_core::{ErrorKind, Result};
use frondb_manifest::{Manifest, SnapshotWriter, Ticket};
use frondb_records::{Edit, encode_edit};
use frondb_tree::Health;

use crate::pending::PendingState;

/// The manifest of an open database. Any thread may use it.
pub struct Edits {
    /// The manifest, which knows bytes only.
    pub manifest: Manifest,
    /// Held for reading while an edit is made, for writing while a snapshot is captured.
    latch: RwLock<()>,
    /// Held by the thread that writes a snapshot: a worker and a user may want to at once.
    snapshot: Mutex<()>,
    pending: Mutex<PendingState>,
    health: Arc<Health>,
}

/// Held while an edit is made, until what it says is in memory.
pub struct EditLatch<'a> {
    edits: &'a Edits,
    _latch: RwLockReadGuard<'a, ()>,
}

impl Edits {
    /// The manifest that recovery has opened, with what it says of transactions that are not part of the
    /// trees yet.
    #[must_use]
    pub fn new(manifest: Manifest, pending: PendingState, health: Arc<Health>) -> Arc<Self> {
        Arc::new(Self {
            manifest,
            latch: RwLock::new(()),
            snapshot: Mutex::new(()),
            pending: Mutex::new(pending),
            health,
        })
    }

    /// Begins an edit.
    pub fn begin(&self) -> EditLatch<'_> {
        EditLatch { edits: self, _latch: self.latch.read() }
    }

    /// What the manifest has of transactions that are not part of the trees yet. It changes only while
    /// an [`EditLatch`] is held.
    pub fn pending(&self) -> MutexGuard<'_, PendingState> {
        self.pending.lock()
    }

    /// Replaces the manifest's edits by a snapshot, if `is_due` still says so when no other snapshot is
    /// being written: `capture` is called while no edit is under way, `write` afterwards. Returns whether
    /// it did.
    ///
    /// # Errors
    /// Those of `write` and of the manifest, but for `NoSpace` and `Busy`: the old file goes on then.
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
        let (state, mut writer) = {
            let _latch = self.latch.write();
            let state = capture();
            (state, self.manifest.begin_snapshot()?)
        };
        write(state, &mut writer)?;
        match writer.finish() {
            Ok(()) => Ok(true),
            // A later try may find space, or edits that are not given up.
            Err(error) if matches!(error.kind(), ErrorKind::NoSpace | ErrorKind::Busy) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl EditLatch<'_> {
    /// Makes edits durable that take effect together.
    ///
    /// # Errors
    /// `NoSpace`: nothing has changed, and the call may be repeated. After any other error it is not
    /// known what the manifest has, and the database is poisoned.
    pub fn record(&self, edits: &[Edit]) -> Result<()> {
        let manifest = &self.edits.manifest;
        let ticket = manifest.append(&encode(edits));
        // A user is told of it, or something is let go of: the superblock must know it.
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

    /// Appends edits that readers see before they are durable; their bytes are in the result. No edit may
    /// follow one that fails, so the database is poisoned then.
    ///
    /// # Errors
    /// As [`Manifest::append_final`].
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
