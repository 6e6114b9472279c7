//! [`HeldLocks`]: the locks of one locker in one table, as the locker records them.

use frondb_core::sync::{Arc, Mutex};
use smallvec::SmallVec;

use crate::class::Class;
use crate::graph::Graph;
use crate::key::{Extent, Key, UpperBound};
use crate::own::{OwnRanges, Piece, RangeStore};
use crate::queue::{Request, RequestPart, RequestParts};
use crate::table::LockTable;
use crate::table_state::TableState;

/// Maximum number of rows, and of ranges, released under one hold of a table's lock.
const RELEASE_ROWS: usize = 256;

/// The locks of one locker in one table.
pub(crate) struct HeldLocks {
    pub(crate) table: Arc<LockTable>,
    /// The rows, about in the order in which they were locked. May contain rows that have been
    /// unlocked.
    pub(crate) rows: SmallVec<[Key; 1]>,
    /// Number of `rows` that have been unlocked.
    pub(crate) stale: usize,
    pub(crate) ranges: OwnRanges,
    /// Number of the locker's packed rows in the table, and the bytes that they take.
    pub(crate) packed: (u64, u64),
    /// Heap bytes of the keys of `rows`, here and in the table.
    pub(crate) key_bytes: u64,
    /// The bytes and the number of this table's locks, as included in the locker's totals.
    pub(crate) counted: (u64, u64),
}

impl HeldLocks {
    pub(crate) fn new(table: Arc<LockTable>) -> Self {
        Self {
            table,
            rows: SmallVec::new(),
            stale: 0,
            ranges: OwnRanges::default(),
            packed: (0, 0),
            key_bytes: 0,
            counted: (0, 0),
        }
    }

    #[inline]
    pub(crate) fn add_row(&mut self, key: Key) {
        self.key_bytes += 2 * key.heap_bytes();
        self.rows.push(key);
    }

    /// Returns the parts of `want` to request; `None` if the locker already holds all of them.
    pub(crate) fn parts(
        &self,
        locker: u64,
        state: &TableState,
        want: &Request,
    ) -> Option<RequestParts> {
        let mut parts = RequestParts::new();
        let mut covered = true;
        for area in want.areas() {
            let (held, first) = if area.is_row() {
                let row = state.holds_row(locker, &area.lo);
                let held = row.is_some_and(|mode| mode >= area.class.mode())
                    || self.ranges.covers_row(&area.lo, area.class);
                (held, row.is_some() || self.ranges.touches_row(&area.lo))
            } else {
                let hi = want_end(&area.extent);
                let held = self.ranges.covers(&area.lo, hi, area.class);
                (held, held || self.ranges.covers(&area.lo, hi, Class::Gap))
            };
            covered &= held;
            parts.push(RequestPart { area, first });
        }
        (!covered).then_some(parts)
    }

    /// Enters a request that was granted without waiting into the table and into the locker's own
    /// lists.
    pub(crate) fn take(&mut self, locker: u64, state: &mut TableState, want: Request) {
        match want {
            Request::Row { key, mode } => {
                let new = state.lists_row(locker, &key).is_none();
                state.grant_row(locker, &key, mode);
                if new {
                    self.add_row(key);
                }
            }
            Request::Range { lo, hi, class } => self.add_range(locker, state, lo, hi, class),
            Request::Step { lo, hi, mode, .. } => {
                self.add_range(locker, state, lo, hi, Class::scan(mode));
            }
        }
    }

    pub(crate) fn add_range(
        &mut self,
        locker: u64,
        state: &mut TableState,
        lo: Key,
        hi: UpperBound,
        class: Class,
    ) {
        let mut place =
            RangeStore { ranges: &mut state.ranges, next_entry: &mut state.next_entry, locker };
        self.ranges.add(Piece { lo, hi, class }, &mut place);
    }

    /// Removes an unlocked row from the list: immediately if it is one of the last eight, otherwise
    /// once more than half of the list is stale.
    pub(crate) fn forget_row(&mut self, key: &Key, locker: u64, state: &mut TableState) {
        self.key_bytes = self.key_bytes.saturating_sub(2 * key.heap_bytes());
        let recent = self.rows.len().saturating_sub(8);
        if let Some(at) = self.rows[recent..].iter().rposition(|row| row == key) {
            self.rows.swap_remove(recent + at);
            return;
        }
        self.stale += 1;
        if self.stale * 2 > self.rows.len() {
            self.stale = 0;
            self.rows.retain(|row| state.holds_row(locker, row).is_some());
        }
    }

    /// Releases all locks, in pieces, so that other threads can use the table in between. Grants
    /// the waiters their locks at the end.
    pub(crate) fn release(&mut self, locker: u64, graph: &Mutex<Graph>) {
        loop {
            let mut state = self.table.state.lock();
            let rows = self.rows.len().saturating_sub(RELEASE_ROWS);
            for row in self.rows.drain(rows..) {
                state.release_row(locker, &row);
            }
            let mut left = RELEASE_ROWS;
            while left > 0 && self.ranges.pop(&mut state.ranges) {
                left -= 1;
            }
            if self.rows.is_empty() && self.ranges.is_empty() {
                if self.packed.0 > 0 {
                    state.packs.retain(|pack| pack.locker != locker);
                }
                if !state.waiters.is_empty() {
                    state.grant_waiters(locker, false, &mut graph.lock());
                }
                break;
            }
        }
        self.table.batch_latch.leave();
    }
}

fn want_end(extent: &Extent) -> &UpperBound {
    match extent {
        Extent::To(hi) => hi,
        Extent::Row => &None,
    }
}
