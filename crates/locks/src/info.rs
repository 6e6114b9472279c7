//! What is locked and who waits, to be looked at: for the status and for messages. Never needed
//! for locking itself.

use std::fmt::Write;
use std::ops::Bound;
use std::time::Duration;

use frondb_core::TreeId;
use frondb_core::sync::atomic::{AtomicU64, Ordering};

use crate::class::{Class, LockMode};
use crate::escalate::{RANGE_BYTES, ROW_BYTES};
use crate::key::{Area, Extent, Hi, Key};
use crate::manager::LockManager;
use crate::table::{LockTable, Want};

/// Bytes of a key that a message shows.
const SHOWN_BYTES: usize = 48;

/// Rows that are listed under one hold of a table's lock.
const LISTED_ROWS: usize = 1024;

/// What a lock is on. Ranges are half-open: `hi` is the first key behind, none if there is none.
/// The first key after a key is the same with a zero byte behind it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Locked {
    /// One key.
    Row {
        /// The key.
        key: Vec<u8>,
    },
    /// Keys where a locking read found no row.
    Gap {
        /// First key.
        lo: Vec<u8>,
        /// First key behind.
        hi: Option<Vec<u8>>,
    },
    /// What a locking scan passed, rows and gaps.
    Scanned {
        /// First key.
        lo: Vec<u8>,
        /// First key behind.
        hi: Option<Vec<u8>>,
    },
    /// All keys: a range lock that was asked for, or what became of many rows.
    Range {
        /// First key.
        lo: Vec<u8>,
        /// First key behind.
        hi: Option<Vec<u8>>,
    },
}

/// A lock that somebody holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockInfo {
    /// Id of the transaction.
    pub transaction: u64,
    /// The tree.
    pub tree: TreeId,
    /// What is locked.
    pub locked: Locked,
    /// How.
    pub mode: LockMode,
}

/// A lock that somebody waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitInfo {
    /// Id of the transaction that waits.
    pub transaction: u64,
    /// The tree.
    pub tree: TreeId,
    /// What it wants to lock.
    pub wanted: Locked,
    /// How.
    pub mode: LockMode,
    /// Ids of the transactions it waits for, ascending: they hold what conflicts, or asked before.
    pub blockers: Vec<u64>,
    /// For how long.
    pub waited: Duration,
}

/// What a lock manager has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LockCounts {
    /// Requests that had to wait.
    pub waits: u64,
    /// Transactions chosen as the victim of a deadlock.
    pub deadlocks: u64,
    /// Waits that were given up because they took too long.
    pub timeouts: u64,
    /// Times that a transaction's row locks were made ranges for want of memory.
    pub escalations: u64,
    /// Time spent in waits that have ended, all together.
    pub waited: Duration,
}

/// What a lock manager has done and holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LockStats {
    /// Requests that had to wait.
    pub waits: u64,
    /// Transactions chosen as the victim of a deadlock.
    pub deadlocks: u64,
    /// Waits that were given up because they took too long.
    pub timeouts: u64,
    /// Times that a transaction's row locks were made ranges for want of memory.
    pub escalations: u64,
    /// Time spent in waits that have ended, all together.
    pub waited: Duration,
    /// Requests that wait now.
    pub waiting: u64,
    /// Keys locked now as rows; one that several share counts once.
    pub rows: u64,
    /// Gaps and ranges locked now.
    pub ranges: u64,
    /// Bytes they take, about, without what is long of keys.
    pub bytes: u64,
}

impl LockManager {
    /// Who holds what: rows first, those of transactions with very many behind the others, then ranges, of
    /// each tree in key order. Not one moment: locks
    /// come and go while it is made. It copies every key, so it is for people.
    #[must_use]
    pub fn locks(&self) -> Vec<LockInfo> {
        let mut locks = Vec::new();
        for table in self.tables() {
            list_rows(&table, &mut locks);
            list_packs(&table, &mut locks);
            table.state.lock().ranges.for_each(&mut |range| {
                let (lo, hi) = (range.lo.clone(), range.hi.clone());
                locks.push(info(range.locker, table.tree, Area::range(lo, hi, range.class)));
            });
        }
        locks
    }

    /// Who waits for what, of each tree in the order they came.
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
                // One that was decided is on its way out of the queue.
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

    /// Ids of those who wait just now, ascending, and for how long each has.
    #[must_use]
    pub fn waiting(&self) -> Vec<(u64, Duration)> {
        let now = self.clock.now();
        self.graph.lock().open_waits().map(|(id, wait)| (id, now.since(wait.since))).collect()
    }

    /// What was done so far: a few loads, however many tables there are.
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

    /// What was done so far and what is held now: a look at every table.
    #[must_use]
    pub fn stats(&self) -> LockStats {
        let LockCounts { waits, deadlocks, timeouts, escalations, waited } = self.counts();
        let mut stats = LockStats {
            waits,
            deadlocks,
            timeouts,
            escalations,
            waited,
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
}

/// Adds the rows of a table, in pieces.
fn list_rows(table: &LockTable, locks: &mut Vec<LockInfo>) {
    let mut from = Bound::Unbounded;
    loop {
        let state = table.state.lock();
        let mut last = None;
        for (key, row) in state.rows.range((from, Bound::Unbounded)).take(LISTED_ROWS) {
            for holder in &row.holders {
                let area = Area::row(key.clone(), Class::row(row.mode));
                locks.push(info(*holder, table.tree, area));
            }
            last = Some(key.clone());
        }
        let Some(last) = last else { return };
        from = Bound::Excluded(last);
    }
}

/// Adds the rows that are packed.
fn list_packs(table: &LockTable, locks: &mut Vec<LockInfo>) {
    // They never change, so the lock is not held meanwhile.
    let packs = table.state.lock().packs.clone();
    for pack in packs {
        let mut keys = pack.keys.keys();
        while let Some(key) = keys.next_key() {
            let area = Area::row(Key::new(key), Class::row(pack.mode));
            locks.push(info(pack.locker, table.tree, area));
        }
    }
}

fn info(transaction: u64, tree: TreeId, area: Area) -> LockInfo {
    let mode = area.class.mode();
    LockInfo { transaction, tree, locked: locked(area), mode }
}

pub(crate) fn locked(area: Area) -> Locked {
    let lo = area.lo.as_slice().to_vec();
    let hi = match area.extent {
        Extent::Row => return Locked::Row { key: lo },
        Extent::To(hi) => hi.map(|hi| hi.as_slice().to_vec()),
    };
    match area.class {
        Class::Gap => Locked::Gap { lo, hi },
        Class::ScanShared | Class::ScanExclusive => Locked::Scanned { lo, hi },
        _ => Locked::Range { lo, hi },
    }
}

/// What is wanted, in words: `exclusive lock on row "abc" of tree 3`.
pub(crate) fn describe(tree: TreeId, want: &Want) -> String {
    let mode = want.mode().name();
    let on = match want {
        Want::Row { key, .. } => format!("row {}", show(key)),
        Want::Step { row, lo, hi, .. } => format!("row {} and {}", show(row), show_range(lo, hi)),
        Want::Range { lo, hi, class: Class::Gap } => format!("gap {}", show_range(lo, hi)),
        Want::Range { lo, hi, .. } => format!("range {}", show_range(lo, hi)),
    };
    format!("{mode} lock on {on} of tree {tree}")
}

fn show_range(lo: &Key, hi: &Hi) -> String {
    match hi {
        Some(hi) => format!("[{}, {})", show(lo), show(hi)),
        None => format!("[{}, end)", show(lo)),
    }
}

/// A key in quotes, escaped, cut if it is long.
fn show(key: &Key) -> String {
    let bytes = key.as_slice();
    let shown = &bytes[..bytes.len().min(SHOWN_BYTES)];
    let mut text = format!("\"{}\"", shown.escape_ascii());
    if shown.len() < bytes.len() {
        // Writing to a string does not fail.
        let _ = write!(text, "... ({} bytes)", bytes.len());
    }
    text
}

/// Ids in a row, the first few.
pub(crate) fn ids(ids: &[u64]) -> String {
    let shown: Vec<String> = ids.iter().take(8).map(u64::to_string).collect();
    let more = ids.len() - shown.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    shown.join(", ") + &more
}
