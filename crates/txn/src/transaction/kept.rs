//! The kept cursor of a transaction: the last cursor that passed own deletes, kept for the next
//! cursor over the same part of the tree.
//!
//! ```text
//!   first():  | own deletes | K ...      the cursor is dropped at K, then K is deleted
//!   first():                | x L ...    continues from K, which a search would reach too
//! ```
//!
//! # When the next cursor may continue
//! The search of the last cursor found nothing between the start of the search and the cursor's
//! entry. A search of the new cursor would find nothing there either, if it begins in that part and
//! - the tree had no commit between the two snapshots ([`Resting::wake`]);
//! - since then the transaction has made only point deletes in the tree, none of them beyond the
//!   entry at which the new cursor stops, so that the old cursor shows the remaining entries as a
//!   new one would;
//! - no rollback to a savepoint happened, and no private run was written;
//! - a plain cursor: there is no overlay; a locking cursor: there is no snapshot isolation.
//!
//! Otherwise the new cursor searches. After [`MOVES_MAX`] continuations a cursor searches in any
//! case, to report known-empty ranges, and so that no version of the tree stays pinned for long.

use frondb_core::sync::Arc;
use std::ops::Bound;

use frondb_core::{Direction, Result};
use frondb_tree::{Cursor, Resting, TreeCore};
use frondb_writeset::{Place, WriteSet};

/// The start of a search or of a locking step.
pub(super) type From = Bound<Vec<u8>>;

/// Maximum number of cursors that continue one after the other without a search.
pub(super) const MOVES_MAX: u32 = 32;

/// Most deletes since the last search or continuation that a continuation examines; with more, the
/// cursor searches.
const DELETES_MAX: u64 = 64;

pub(super) struct Kept {
    pub(super) resting: Resting,
    pub(super) found: Found,
}

/// The result of a cursor's search: there is no entry between `from` and the cursor's entry.
pub(super) struct Found {
    direction: Direction,
    from: From,
    /// The end of the own writes that the cursor takes into account.
    place: Place,
    /// Number of cursors that have continued from the search.
    pub(super) moves: u32,
}

/// The own deletes, made since a search, of the found entry's key and of keys beyond it.
pub(super) struct Gone {
    /// Whether the entry itself is deleted.
    is_first_gone: bool,
    others: Vec<Vec<u8>>,
}

impl Found {
    pub(super) fn new(direction: Direction, from: From, place: Place) -> Self {
        Self { direction, from, place, moves: 0 }
    }

    /// Whether a search from `from` would find nothing before the entry with `key` either.
    fn covers(&self, direction: Direction, from: &From, key: &[u8]) -> bool {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let reaches_key = match (direction, from) {
            _ if direction != self.direction => false,
            (Direction::Forward, Included(from)) => from.as_slice() <= key,
            (Direction::Backward, Included(from)) => from.as_slice() >= key,
            (Direction::Backward, Excluded(from)) => from.as_slice() > key,
            (Direction::Backward, Unbounded) => true,
            (Direction::Forward, _) => false,
        };
        reaches_key
            && match (direction, &self.from, from) {
                (Direction::Forward, Included(begun), Included(from)) => begun <= from,
                (Direction::Forward, Excluded(begun), Included(from)) => begun < from,
                (Direction::Forward, ..) => false,
                (Direction::Backward, Unbounded, _) => true,
                (Direction::Backward, Included(begun), Included(from) | Excluded(from))
                | (Direction::Backward, Excluded(begun), Excluded(from)) => begun >= from,
                (Direction::Backward, Excluded(begun), Included(from)) => begun > from,
                (Direction::Backward, _, Unbounded) => false,
            }
    }

    /// Returns the deletes that a cursor must skip to continue from the entry with `key`; `None` if
    /// the cursor must search.
    pub(super) fn gone(
        &self,
        writes: &WriteSet,
        tree: &Arc<TreeCore>,
        direction: Direction,
        from: &From,
        key: &[u8],
    ) -> Option<Gone> {
        if !self.covers(direction, from, key) {
            return None;
        }
        let mut gone = Gone { is_first_gone: false, others: Vec::new() };
        let are_deletes = writes.deletes_since(tree.id, &self.place, DELETES_MAX, &mut |deleted| {
            if deleted == key {
                gone.is_first_gone = true;
            } else if (deleted > key) == (direction == Direction::Forward) {
                gone.others.push(deleted.to_vec());
            }
        });
        are_deletes.then_some(gone)
    }

    /// Returns this result for a cursor that has continued from it, and that takes the own writes
    /// up to `place` into account.
    pub(super) fn gone_on(self, place: Place) -> Self {
        Self { place, moves: self.moves + 1, ..self }
    }
}

impl Gone {
    /// Moves the cursor past the deleted entries. Returns `false` if there are deletes beyond the
    /// new entry; the cursor must then search.
    pub(super) fn skip(&self, cursor: &mut Cursor, direction: Direction) -> Result<bool> {
        let mut is_first = true;
        cursor.go_on(&mut |key| {
            let is_first = std::mem::take(&mut is_first);
            if is_first { self.is_first_gone } else { self.others.iter().any(|gone| gone == key) }
        })?;
        let is_beyond = |gone: &Vec<u8>| match direction {
            Direction::Forward => gone.as_slice() > cursor.key(),
            Direction::Backward => gone.as_slice() < cursor.key(),
        };
        Ok(!cursor.is_valid() || !self.others.iter().any(is_beyond))
    }
}
