//! Keeps a transaction's last cursor, from which the next cursor may continue: see `kept.rs`.

use frondb_core::Result;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_tree::{Cursor, Snapshot, TreeCore};

use super::kept::{Found, Kept, MOVES_MAX};
use super::{Core, Phase, TransactionState};

impl Core {
    /// Takes the kept cursor, if it has this tree and these bounds, and the next cursor may
    /// continue from its entry. Without `snapshot`, the next cursor reads at a new snapshot.
    pub(super) fn wake_kept(
        &self,
        state: &mut TransactionState,
        tree: &Arc<TreeCore>,
        (lower, upper): (Option<&[u8]>, Option<&[u8]>),
        snapshot: Option<&Snapshot>,
    ) -> Result<Option<(Cursor, Found)>> {
        let is_wanted = |kept: &mut Box<Kept>| kept.resting.shows(tree, lower, upper);
        let Some(kept) = state.kept.take_if(is_wanted).filter(|kept| kept.found.moves < MOVES_MAX)
        else {
            return Ok(None);
        };
        let reads = &self.txns.reads;
        reads.check_read(tree, snapshot)?;
        let snapshot = snapshot.cloned().unwrap_or_else(|| reads.snapshot());
        let Kept { resting, found } = *kept;
        Ok(resting.wake(snapshot).map(|cursor| (cursor, found)))
    }

    /// Keeps a cursor that is being dropped, if it has passed own deletes or continued from a kept
    /// cursor, and no other thread is in a call on the transaction. `rollbacks` is the number of
    /// rollbacks to savepoints when the cursor was positioned.
    pub(super) fn keep(&self, cursor: &mut Cursor, found: Found, rollbacks: u64) {
        if found.moves == 0 && !cursor.has_met_own_deletes() {
            return;
        }
        let Some(mut state) = self.state.try_lock() else { return };
        let is_current = self.rollbacks.load(Ordering::Acquire) == rollbacks;
        if !is_current || !matches!(state.phase, Phase::Active) {
            return;
        }
        let Some(resting) = cursor.rest() else { return };
        let before = state.kept.replace(Box::new(Kept { resting, found }));
        drop(state);
        drop(before);
    }
}
