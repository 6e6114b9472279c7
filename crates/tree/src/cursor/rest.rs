//! [`Resting`]: a finished cursor with its open walk, kept for the next cursor of the same
//! transaction.
//!
//! A program that takes rows from a queue opens a cursor for each row. Opening a walk and reading
//! its first chunks costs several times as much as a step. So the transaction keeps the cursor that
//! it used last, and the next cursor continues from that cursor's entry if this gives the same
//! result as a seek.
//!
//! A resting cursor holds no snapshot: otherwise an idle transaction would keep old messages from
//! being dropped. The resting cursor still pins a version and sources, and can be unpinned like any
//! cursor between two moves ([`crate::pins`]).
//!
//! # Why the walk may be read at a newer snapshot
//! The next cursor has a registered snapshot. After registering it, and with the walk still pinned,
//! the next cursor checks that the tree had no commit since the older of the two snapshots. Then
//! both snapshots see the same messages in the pinned version and in any later one, and merges keep
//! these messages for the registered snapshot.

use frondb_core::sync::Arc;
use frondb_core::{Direction, Result, SeqNo};
use frondb_writeset::OwnWrites;

use super::cursor::Cursor;
use super::scope::Scope;
use super::walk::Walk;
use crate::context::ReadContext;
use crate::pins::Pins;
use crate::snapshot::Snapshot;
use crate::tree::TreeCore;

/// A finished cursor, still positioned at its last entry.
pub struct Resting {
    context: Arc<ReadContext>,
    tree: Arc<TreeCore>,
    /// The snapshot that the cursor read at.
    seq: SeqNo,
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
    own: Option<OwnWrites>,
    walk: Option<Walk>,
    /// `None` once another cursor has taken the pins.
    pins: Option<Arc<Pins>>,
}

impl Cursor {
    /// Returns whether the walk has passed deletes of the reader's own transaction, or began after
    /// a known-empty range.
    #[doc(hidden)]
    #[must_use]
    pub fn has_met_own_deletes(&self) -> bool {
        let walk = self.walk.as_ref().filter(|_| self.scope.own.is_some());
        walk.is_some_and(|walk| {
            walk.begins_after_empty || walk.merge.stats().own_deletes_passed > 0
        })
    }

    /// Returns the walk for a later cursor; the caller must not use this cursor again. `None` if
    /// the cursor is at no entry, or if no later cursor could use its walk.
    #[doc(hidden)]
    pub fn rest(&mut self) -> Option<Resting> {
        if !self.valid || !self.is_listed || self.scope.overlay.is_some() {
            return None;
        }
        self.report();
        let walk = Some(self.walk.take()?);
        (self.valid, self.is_listed) = (false, false);
        let scope = &mut self.scope;
        Some(Resting {
            context: Arc::clone(&scope.context),
            tree: Arc::clone(&scope.tree),
            seq: scope.snapshot.seq(),
            lower: std::mem::take(&mut scope.lower),
            upper: scope.upper.take(),
            own: scope.own.take(),
            walk,
            pins: Some(Arc::clone(&self.pins)),
        })
    }

    /// Returns the key at which the resting cursor stopped. `None` unless this cursor comes from
    /// [`Resting::wake`] and was not positioned since.
    #[doc(hidden)]
    #[must_use]
    pub fn rested_at(&self) -> Option<&[u8]> {
        self.walk.as_ref().filter(|_| self.has_rested).map(|walk| walk.merge.key())
    }

    /// Moves to the first entry for whose key `is_gone` returns false, beginning with the entry of
    /// the resting cursor. Returns whether there is one.
    ///
    /// # Errors
    /// As any move.
    #[doc(hidden)]
    pub fn go_on(&mut self, is_gone: &mut dyn FnMut(&[u8]) -> bool) -> Result<bool> {
        let Some(walk) = self.walk.as_ref().filter(|_| self.has_rested) else { return Ok(false) };
        let direction = walk.direction;
        self.scope.check_open()?;
        self.count_seek();
        (self.has_rested, self.valid) = (false, true);
        while self.valid && is_gone(self.key()) {
            match direction {
                Direction::Forward => self.next()?,
                Direction::Backward => self.prev()?,
            };
        }
        self.end_seek();
        Ok(self.valid)
    }
}

impl Resting {
    /// Returns whether the resting cursor has this tree and these bounds.
    #[must_use]
    pub fn shows(&self, tree: &Arc<TreeCore>, lower: Option<&[u8]>, upper: Option<&[u8]>) -> bool {
        let has_bounds = self.lower == lower.unwrap_or_default() && self.upper.as_deref() == upper;
        has_bounds && Arc::ptr_eq(&self.tree, tree)
    }

    /// Returns a cursor at `snapshot` that is not positioned; [`go_on`](Cursor::go_on) continues
    /// from the entry of this resting cursor. `None` if `snapshot` may see other entries than the
    /// resting cursor, or if another thread has unpinned the sources of the walk.
    #[must_use]
    pub fn wake(mut self, snapshot: Snapshot) -> Option<Cursor> {
        if self.tree.newest_commit() > self.seq.min(snapshot.seq()) {
            return None;
        }
        let pins = self.pins.take_if(|pins| !pins.is_unpinned())?;
        let scope = Scope {
            context: Arc::clone(&self.context),
            tree: Arc::clone(&self.tree),
            snapshot,
            lower: std::mem::take(&mut self.lower),
            upper: self.upper.take(),
            own: self.own.take(),
            overlay: None,
            expected: 0,
            is_probe: false,
        };
        let mut cursor = Cursor::of(scope, pins);
        cursor.walk = self.walk.take();
        (cursor.has_rested, cursor.is_walk_old) = (true, true);
        Some(cursor)
    }
}

impl Drop for Resting {
    fn drop(&mut self) {
        if let Some(pins) = self.pins.take() {
            self.context.cursors.remove(&pins);
        }
    }
}

impl std::fmt::Debug for Resting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Resting({} at {})", self.tree.id, self.seq)
    }
}
