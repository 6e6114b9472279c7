//! Savepoints: positions in a write set to which a transaction can roll back.

use frondb_core::sync::atomic::Ordering;
use frondb_core::{Error, Result};
use frondb_writeset::SavepointId;

use super::{Core, Transaction, TransactionState, spill_of};

/// A savepoint of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Savepoint {
    transaction: u64,
    id: SavepointId,
}

impl Transaction {
    /// Sets a savepoint. Savepoints nest.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended; `Closed`.
    pub fn set_savepoint(&self) -> Result<Savepoint> {
        let mut state = self.core.active()?;
        if let Some(overlay) = &mut state.overlay {
            overlay.writes.set_savepoint();
        }
        Ok(Savepoint { transaction: self.core.id, id: state.writes.set_savepoint() })
    }

    /// Undoes all writes since the savepoint was set. The savepoint stays set; later ones are
    /// removed. The transaction keeps its locks.
    ///
    /// # Errors
    /// `NotFound` if the savepoint is no longer set; `Invalid` for a savepoint of another
    /// transaction, or if the transaction has ended; `NoSpace` or `Io` if writes on disk of a large
    /// transaction cannot be rewritten, after which the call may be repeated; `Poisoned`, `Closed`.
    pub fn roll_back_to(&self, savepoint: Savepoint) -> Result<()> {
        let mut state = self.core.active()?;
        self.core.check_savepoint(savepoint)?;
        let txns = &self.core.txns;
        let _call = txns.calls.begin()?;
        // Drop the kept cursor, which does not notice the rollback.
        state.kept = None;
        let TransactionState { writes, overlay, trees, entry, .. } = &mut *state;
        let spill_of = |id| spill_of(trees, id);
        if let Some(overlay) = overlay {
            overlay.writes.roll_back_to(savepoint.id, &txns.spill, &spill_of)?;
        }
        let undone = writes.roll_back_to(savepoint.id, &txns.spill, &spill_of);
        entry.set_messages(writes.written());
        undone?;
        self.core.rollbacks.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Removes the savepoint and later ones, and keeps the writes.
    ///
    /// # Errors
    /// `NotFound` if the savepoint is no longer set; `Invalid` for a savepoint of another
    /// transaction, or if the transaction has ended; `Closed`.
    pub fn release(&self, savepoint: Savepoint) -> Result<()> {
        let mut state = self.core.active()?;
        self.core.check_savepoint(savepoint)?;
        if let Some(overlay) = &mut state.overlay {
            overlay.writes.release(savepoint.id)?;
        }
        state.writes.release(savepoint.id)
    }

    /// Removes only this savepoint: later ones stay set, and the writes are kept.
    ///
    /// # Errors
    /// As [`release`](Self::release).
    pub fn forget_savepoint(&self, savepoint: Savepoint) -> Result<()> {
        let mut state = self.core.active()?;
        self.core.check_savepoint(savepoint)?;
        if let Some(overlay) = &mut state.overlay {
            overlay.writes.forget_savepoint(savepoint.id)?;
        }
        state.writes.forget_savepoint(savepoint.id)
    }
}

impl Core {
    fn check_savepoint(&self, savepoint: Savepoint) -> Result<()> {
        if savepoint.transaction == self.id {
            return Ok(());
        }
        Err(Error::invalid("the savepoint belongs to another transaction"))
    }
}
