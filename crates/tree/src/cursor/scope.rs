//! [`Scope`]: the data that a cursor reads.

use frondb_core::Result;
use frondb_core::sync::Arc;
use frondb_writeset::OwnWrites;

use crate::context::ReadContext;
use crate::snapshot::Snapshot;
use crate::tree::TreeCore;

/// The data that a cursor reads: a part of a tree at a snapshot, changed by the transaction's own
/// writes.
pub(super) struct Scope {
    pub(super) context: Arc<ReadContext>,
    pub(super) tree: Arc<TreeCore>,
    pub(super) snapshot: Snapshot,
    /// First key of the part; empty for no bound.
    pub(super) lower: Vec<u8>,
    /// First key after the part; `None` for no bound.
    pub(super) upper: Option<Vec<u8>>,
    /// The uncommitted writes of the reader's transaction.
    pub(super) own: Option<OwnWrites>,
    /// The transaction's overlay: corrections of the snapshot, newer than committed data and older
    /// than `own`. `None` for a cursor that locks what it reads.
    pub(super) overlay: Option<OwnWrites>,
    /// About how many entries the caller will read at once; 0 if unknown.
    pub(super) expected: usize,
    /// Whether the cursor probes for known-empty ranges: its cost counts neither in statistics nor
    /// in scan debt.
    pub(super) is_probe: bool,
}

impl Scope {
    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.context.health.is_closed()
    }

    /// # Errors
    /// `Closed`.
    pub(super) fn check_open(&self) -> Result<()> {
        self.context.health.check_open()
    }

    /// Returns the transaction's writes that the cursor shows, newest first.
    pub(super) fn writes(&self) -> impl Iterator<Item = &OwnWrites> {
        self.own.iter().chain(&self.overlay)
    }
}
