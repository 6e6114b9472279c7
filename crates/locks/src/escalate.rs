//! The memory of locks: charged to the budget in steps, and bounded by three measures.
//!
//! ```text
//!   own:      r1 r2 r3    r5  r6 [r7, r9)      of another locker: r4
//!   packed:   r1 r2 r3    r5  r6 in a few bytes each, and [r7, r9): locks the same keys as before
//!   joined:   [r1 ... r3] [r5 ......... r9)    r4 lies between, so two ranges
//! ```
//!
//! A transaction's *share* is a quarter of what the locks of the other transactions leave of the
//! limit for all locks. So the shares of any number of transactions add up to no more than the
//! limit, and the first transaction gets a quarter of the limit. Each share has at least
//! [`LEAST_BYTES`], or a quarter of the limit if that is less, even if the sum is then above the
//! limit.
//!
//! 1. A transaction above its share packs its rows (`packs.rs`), except in trees with few of them,
//!    to about 1/30 of their size in the tables.
//! 2. If the packed rows and the ranges take more than half of the share, neighbours are joined
//!    (lock escalation), in the tree with the most lock memory first, until they take half. A range
//!    that replaces locks covers all of them and the keys between them. Locks are joined only where
//!    that saves memory, and only if no other transaction has a conflicting lock there, or waits
//!    for one that it would otherwise get.
//! 3. Locks of a transaction stay packed if other transactions have locks between them. Once all
//!    locks together take [`FULL`] times their limit, requests of the transactions above their
//!    share fail.

mod group;
mod join;
mod packs;
mod stream;

use crate::held::HeldLocks;
use crate::locker::Locker;
use crate::manager::Counters;
use crate::table_state::ROW_BYTES;
use frondb_core::budget::Part;
use frondb_core::sync::atomic::Ordering;
use frondb_core::{Error, ErrorKind, Result};

/// Maximum uncharged bytes of a locker, and the least that it charges at a time.
const STEP_BYTES: u64 = 4096;

/// Divisor of a share: a transaction may use 1/`SHARE` of what the others leave of the limit.
const SHARE: u64 = 4;

/// Bytes that a transaction may always use, if they are at most 1/`SHARE` of the limit.
const LEAST_BYTES: u64 = 8 << 10;

/// Locks that cannot be joined may take this many times the limit for all locks: a quarter of the
/// memory.
const FULL: u64 = 8;

impl HeldLocks {
    pub(crate) fn bytes(&self) -> u64 {
        self.row_bytes() + self.packed.1 + self.ranges.bytes()
    }

    /// Bytes of the rows that are not packed.
    fn row_bytes(&self) -> u64 {
        self.rows.len() as u64 * ROW_BYTES + self.key_bytes
    }

    fn locks(&self) -> u64 {
        (self.rows.len().saturating_sub(self.stale) + self.ranges.len()) as u64 + self.packed.0
    }
}

impl Locker {
    /// Charges changes of the locker's memory in steps. Packs and joins locks when they take too
    /// much memory.
    #[inline]
    pub(crate) fn charge(&mut self) {
        self.count_table(self.last);
        let charged = self.charged.as_ref().map_or(0, |charged| charged.bytes());
        let grown = self.bytes > charged + STEP_BYTES;
        if grown || (charged > 0 && self.bytes < charged / 2) {
            self.charge_step(charged, grown);
        }
    }

    /// Updates the locker's totals with the current size of its locks in table `at`.
    #[inline]
    fn count_table(&mut self, at: usize) {
        if let Some(held) = self.tables.get_mut(at) {
            let (bytes, locks) = (held.bytes(), held.locks());
            self.bytes = self.bytes - held.counted.0 + bytes;
            self.locks = self.locks - held.counted.1 + locks;
            held.counted = (bytes, locks);
        }
    }

    #[cold]
    fn charge_step(&mut self, charged: u64, grown: bool) {
        self.charge_to_budget(charged);
        if !grown {
            return;
        }
        let share = self.share();
        if self.bytes > share.max(self.pack_at(share)) {
            self.escalate(share);
            self.note_full(share);
        }
    }

    fn charge_to_budget(&mut self, charged: u64) {
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
    }

    /// Bytes that the locks of this locker may take: its share.
    fn share(&self) -> u64 {
        let max = self.manager.bytes_max.load(Ordering::Relaxed);
        (max.saturating_sub(self.others_bytes()) / SHARE).max(LEAST_BYTES.min(max / SHARE))
    }

    fn others_bytes(&self) -> u64 {
        let own = self.charged.as_ref().map_or(0, |charged| charged.bytes());
        self.all_bytes().saturating_sub(own)
    }

    fn all_bytes(&self) -> u64 {
        self.manager.counters.bytes.load(Ordering::Relaxed)
    }

    fn full_bytes(&self) -> u64 {
        self.manager.bytes_max.load(Ordering::Relaxed).saturating_mul(FULL)
    }

    /// Packs the rows, and joins locks into ranges if packing does not suffice.
    fn escalate(&mut self, share: u64) {
        // The new packs are built before the old packs and the rows are freed.
        let _packing = self.manager.budget.reserve(Part::Work, self.packed_bytes() + share / 16);
        self.pack();
        if self.may_join && self.bytes > share / 2 && self.bytes >= self.join_at() {
            let before = self.bytes;
            self.join(share / 2);
            self.bounds.left = if self.bytes > share / 2 { self.bytes } else { 0 };
            let in_vain = self.bytes > before / 8 * 7;
            self.bounds.in_vain = in_vain.then(|| self.others_bytes());
        }
        self.bounds.packed = self.bytes;
        let charged = self.charged.as_ref().map_or(0, |charged| charged.bytes());
        self.charge_to_budget(charged);
    }

    /// Returns the bytes above which the rows are packed again. They depend on the present share,
    /// because the limit for all locks, or the memory of other lockers, may have changed since the
    /// rows were packed.
    fn pack_at(&self, share: u64) -> u64 {
        let packed = self.bounds.packed;
        packed + (share / 4).max(packed / 8)
    }

    /// Returns the bytes above which neighbours are joined again. An attempt visits all locks of
    /// this locker and searches the locks of all others, so it is worthwhile only once this locker
    /// has many more locks. If the last attempt saved hardly anything because of the locks of
    /// others, the next attempt can wait until the others release some locks or memory is short.
    fn join_at(&self) -> u64 {
        let can_wait = self.bounds.in_vain.is_some_and(|others| {
            self.others_bytes() > others / 16 * 15 && self.all_bytes() <= self.full_bytes()
        });
        if can_wait { self.bounds.left * 4 } else { self.bounds.left / 2 * 3 }
    }

    fn packed_bytes(&self) -> u64 {
        self.tables.iter().map(|held| held.packed.1).sum()
    }

    /// Packs the rows of all trees, except of trees with too few rows.
    fn pack(&mut self) {
        let rows: u64 = self.tables.iter().map(HeldLocks::row_bytes).sum();
        let few = rows / (4 * self.tables.len().max(1) as u64);
        for at in 0..self.tables.len() {
            if self.tables[at].row_bytes() > few {
                self.tables[at].pack_rows(self.id);
                self.count_table(at);
            }
        }
    }

    /// Joins locks into ranges, tree by tree, until this locker's locks take at most `enough`
    /// bytes. In each tree, joins locks of equal mode first.
    fn join(&mut self, enough: u64) {
        let mut order: Vec<usize> = (0..self.tables.len()).collect();
        order.sort_by_key(|at| std::cmp::Reverse(self.tables[*at].bytes()));
        let mut has_joined = false;
        for at in order {
            if self.bytes <= enough {
                break;
            }
            let held = &mut self.tables[at];
            held.pack_rows(self.id);
            let before = held.bytes();
            let joined = held.join_neighbours(self.id, &self.manager, false);
            has_joined |= joined.any;
            if held.bytes() > before / 2 && joined.met_other_class {
                has_joined |= held.join_neighbours(self.id, &self.manager, true).any;
            }
            self.count_table(at);
        }
        Counters::add(&self.manager.counters.escalations, u64::from(has_joined));
    }

    /// Notes whether the next requests must fail: see [`check_full`](Self::check_full).
    fn note_full(&mut self, share: u64) {
        let all = self.all_bytes();
        let is_full = self.may_join && self.bytes > share && all > self.full_bytes();
        self.bounds.full_at = if is_full { all } else { 0 };
    }

    /// Fails if this locker must not get more locks, because all locks together take too much
    /// memory and the locks of this locker cannot be joined.
    #[inline]
    pub(crate) fn check_full(&mut self) -> Result<()> {
        if self.bounds.full_at == 0 { Ok(()) } else { self.try_again() }
    }

    #[cold]
    fn try_again(&mut self) -> Result<()> {
        let all = self.all_bytes();
        if all <= self.full_bytes() {
            self.bounds.full_at = 0;
        } else if all <= self.bounds.full_at / 16 * 15 {
            // Other lockers have released locks, perhaps locks between the locks of this locker.
            let share = self.share();
            self.bounds.left = 0;
            self.escalate(share);
            self.note_full(share);
        }
        if self.bounds.full_at == 0 {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::TooManyLocks,
            format!(
                "the locks of all transactions take {} bytes of at most {}, {} of them those of \
                 transaction {}, which cannot become ranges because locks of other transactions \
                 lie between: end it or the others, lock fewer rows at a time, or give more memory",
                self.bounds.full_at,
                self.full_bytes(),
                self.bytes,
                self.id
            ),
        ))
    }
}
