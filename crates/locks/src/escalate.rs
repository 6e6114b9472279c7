//! The memory of locks: charged to the budget in steps, and bounded in two steps.
//!
//! ```text
//!   own:      r1 r2 r3    r5  r6 [r7, r9)      another's: r4
//!   packed:   r1 r2 r3    r5  r6 in a few bytes each, and [r7, r9): locks what it locked before
//!   joined:   [r1 ... r3] [r5 ......... r9)    r4 lies between, so two ranges
//! ```
//!
//! First the rows are packed (`packed.rs`), to about a thirtieth of what they take in the table.
//! Only when that no longer helps are neighbours joined (lock escalation). A range that replaces
//! locks covers all of them and also the keys between. Locks are joined only where no other
//! transaction has a conflicting lock or waits for one that it would otherwise get. Memory pressure
//! never makes a transaction lose a lock or a request fail: where other transactions' locks lie
//! between all rows, the rows stay, and the next attempt comes when the locks take twice as many
//! bytes.

mod group;
mod join;
mod packs;
mod stream;

use crate::held::HeldLocks;
use crate::locker::Locker;
use crate::manager::Counters;
use crate::table::{RANGE_BYTES, ROW_BYTES};
use frondb_core::budget::Part;
use frondb_core::sync::atomic::Ordering;

/// Bytes that a locker may have uncharged, and the least it charges at a time.
const STEP_BYTES: u64 = 4096;

/// One transaction may use the memory limit for all locks divided by this.
const SHARE: u64 = 4;

impl HeldLocks {
    pub(crate) fn bytes(&self) -> u64 {
        let ranges = self.ranges.len() as u64 * RANGE_BYTES;
        self.rows.len() as u64 * ROW_BYTES + self.key_bytes + self.packed.1 + ranges
    }

    fn locks(&self) -> u64 {
        (self.rows.len().saturating_sub(self.stale) + self.ranges.len()) as u64 + self.packed.0
    }
}

impl Locker {
    /// Charges changes of the locker's memory in steps. Packs and joins locks when they take too
    /// much.
    #[inline]
    pub(crate) fn charge(&mut self) {
        if let Some(held) = self.tables.get_mut(self.last) {
            let (bytes, locks) = (held.bytes(), held.locks());
            self.bytes = self.bytes - held.counted.0 + bytes;
            self.locks = self.locks - held.counted.1 + locks;
            held.counted = (bytes, locks);
        }
        let charged = self.charged.as_ref().map_or(0, |charged| charged.bytes());
        let grown = self.bytes > charged + STEP_BYTES;
        if grown || (charged > 0 && self.bytes < charged / 2) {
            self.charge_step(charged, grown);
        }
    }

    #[cold]
    fn charge_step(&mut self, charged: u64, grown: bool) {
        let step = STEP_BYTES.max(self.bytes / 16);
        let target = if self.bytes < STEP_BYTES { 0 } else { self.bytes.next_multiple_of(step) };
        let all = &self.manager.counters.bytes;
        if target >= charged {
            all.fetch_add(target - charged, Ordering::Relaxed);
        } else {
            all.fetch_sub(charged - target, Ordering::Relaxed);
        }
        if target == 0 {
            self.charged = None;
        } else {
            let budget = &self.manager.budget;
            self.charged.get_or_insert_with(|| budget.reserve(Part::Locks, 0)).resize(target);
        }
        if grown && self.has_too_much() {
            self.escalate();
        }
    }

    fn has_too_much(&self) -> bool {
        let max = self.manager.bytes_max.load(Ordering::Relaxed);
        let all = self.manager.counters.bytes.load(Ordering::Relaxed);
        // Above the limit for all lockers, a smaller share applies, but lockers with few locks are
        // spared.
        let share = if all > max { max / SHARE / 16 } else { max / SHARE };
        self.bytes > share.max(self.escalate_at)
    }

    /// Packs the rows in the table with the most lock memory; joins them into ranges if that does
    /// not suffice.
    fn escalate(&mut self) {
        let tables = self.tables.iter_mut().enumerate();
        let Some((at, held)) = tables.max_by_key(|(_, held)| held.bytes()) else { return };
        let before = held.bytes();
        held.pack_rows(self.id);
        for mix in [false, true] {
            if self.may_join && held.bytes() > before / 2 {
                Counters::add(&self.manager.counters.escalations, u64::from(!mix));
                held.join_neighbours(self.id, &self.manager, mix);
            }
        }
        self.last = at;
        // The nested call does not escalate again: escalation only reduces the bytes.
        self.escalate_at = u64::MAX;
        self.charge();
        self.escalate_at = self.bytes * 2;
    }
}
