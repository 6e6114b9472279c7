//! Lists the locks, the waits and the counters of a [`LockManager`], for the status and for
//! information tables.

use std::ops::Bound;
use std::time::Duration;

use frondb_core::TreeId;
use frondb_core::sync::atomic::{AtomicU64, Ordering};

use crate::class::Class;
use crate::deadlock::DeadlockInfo;
use crate::info::{LockCounts, LockInfo, LockStats, WaitInfo, locked};
use crate::key::{Area, Key};
use crate::manager::LockManager;
use crate::table::LockTable;
use crate::table_state::{RANGE_BYTES, ROW_BYTES};

/// Number of rows listed under one hold of a table's lock.
const LISTED_ROWS: usize = 1024;

impl LockManager {
    /// Returns the first `max` locks, tree by tree: rows, then the packed rows (pack by pack) of
    /// transactions with very many rows, then ranges, each in key order. Not a consistent view,
    /// because locks are taken and released while the list is built. Copies every key, so it is
    /// meant for display.
    #[must_use]
    pub fn locks(&self, max: usize) -> Vec<LockInfo> {
        let mut list = List { locks: Vec::new(), max };
        for table in self.tables() {
            list.add_rows(&table);
            list.add_packs(&table);
            list.add_ranges(&table);
            if list.is_full() {
                break;
            }
        }
        list.locks
    }

    /// Returns all waits, tree by tree, in the order in which they were queued.
    #[must_use]
    pub fn waits(&self) -> Vec<WaitInfo> {
        let now = self.clock.now();
        let mut waits = Vec::new();
        for table in self.tables() {
            let state = table.state.lock();
            if state.waiters.is_empty() {
                continue;
            }
            let graph = self.graph.lock();
            for waiter in &state.waiters {
                // A decided wait is about to leave the queue.
                if let Some(wait) = graph.get(waiter.locker).filter(|wait| wait.is_open()) {
                    waits.push(WaitInfo {
                        transaction: waiter.locker,
                        tree: table.tree,
                        wanted: locked(waiter.want.held()),
                        mode: waiter.want.mode(),
                        blockers: wait.blockers.clone(),
                        waited: now.since(wait.since),
                    });
                }
            }
        }
        waits
    }

    /// Returns the ids of the transactions that wait now, ascending, and how long each has waited.
    #[must_use]
    pub fn waiting(&self) -> Vec<(u64, Duration)> {
        let now = self.clock.now();
        self.graph.lock().open_waits().map(|(id, wait)| (id, now.since(wait.since))).collect()
    }

    /// Returns the counters. Costs a few loads, whatever the number of tables is.
    #[must_use]
    pub fn counts(&self) -> LockCounts {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.counters;
        LockCounts {
            waits: count(&counters.waits),
            deadlocks: count(&counters.deadlocks),
            timeouts: count(&counters.timeouts),
            escalations: count(&counters.escalations),
            waited: Duration::from_nanos(count(&counters.waited_ns)),
        }
    }

    /// Returns the counters and the number of locks held now. Visits every table.
    #[must_use]
    pub fn stats(&self) -> LockStats {
        let mut stats = LockStats {
            counts: self.counts(),
            waiting: self.graph.lock().waiting() as u64,
            ..LockStats::default()
        };
        for table in self.tables() {
            let state = table.state.lock();
            stats.rows += state.rows.len() as u64;
            stats.ranges += state.ranges.len() as u64;
            stats.bytes += state.rows.len() as u64 * ROW_BYTES;
            for pack in &state.packs {
                stats.rows += pack.keys.len() as u64;
                stats.bytes += pack.keys.memory_bytes();
            }
        }
        stats.bytes += stats.ranges * RANGE_BYTES;
        stats
    }

    /// Returns the last deadlock that was found; `None` if there was none.
    #[must_use]
    pub fn last_deadlock(&self) -> Option<DeadlockInfo> {
        let now = self.clock.now();
        let last = self.last_deadlock.lock();
        let last = last.as_ref()?;
        Some(DeadlockInfo { ago: now.since(last.at), ..last.info.clone() })
    }
}

struct List {
    locks: Vec<LockInfo>,
    max: usize,
}

impl List {
    fn is_full(&self) -> bool {
        self.locks.len() >= self.max
    }

    fn add(&mut self, transaction: u64, tree: TreeId, area: Area) {
        if self.is_full() {
            return;
        }
        let mode = area.class.mode();
        self.locks.push(LockInfo { transaction, tree, locked: locked(area), mode });
    }

    /// Adds the rows of a table, in pieces.
    fn add_rows(&mut self, table: &LockTable) {
        let mut from = Bound::Unbounded;
        while !self.is_full() {
            let state = table.state.lock();
            let mut last = None;
            for (key, row) in state.rows.range((from, Bound::Unbounded)).take(LISTED_ROWS) {
                for holder in &row.holders {
                    self.add(*holder, table.tree, Area::row(key.clone(), Class::row(row.mode)));
                }
                last = Some(key.clone());
            }
            let Some(last) = last else { return };
            from = Bound::Excluded(last);
        }
    }

    fn add_packs(&mut self, table: &LockTable) {
        // Packs never change, so the lock is not held while they are read.
        let packs = table.state.lock().packs.clone();
        for pack in packs {
            let mut keys = pack.keys.keys();
            while !self.is_full()
                && let Some(key) = keys.next_key()
            {
                let area = Area::row(Key::new(key), Class::row(pack.mode));
                self.add(pack.locker, table.tree, area);
            }
        }
    }

    fn add_ranges(&mut self, table: &LockTable) {
        table.state.lock().ranges.for_each(&mut |range| {
            let (lo, hi) = (range.lo.clone(), range.hi.clone());
            self.add(range.locker, table.tree, Area::range(lo, hi, range.class));
        });
    }
}
