//! [`Locker`]: the locks of one transaction.
//!
//! A locker keeps a list of its rows, so that it can release all of them, and its ranges in order
//! (`held.rs`, `own.rs`). Only the locker's thread uses these lists, so they need no lock.
//! `request.rs` describes how a locker requests locks, `wait.rs` how it waits, and `escalate.rs`
//! how its memory is bounded.

use std::time::Duration;

use frondb_core::budget::Reservation;
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use frondb_core::sync::{Arc, OnceLock};
use smallvec::SmallVec;

use crate::bounds::Bounds;
use crate::graph::{WaitState, Waker};
use crate::held::HeldLocks;
use crate::key::Key;
use crate::manager::LockManager;
use crate::table::LockTable;

/// How long a request may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockWait {
    /// At most this long; then the request fails with `LockTimeout`.
    Upto(Duration),
    /// Until the request is granted or cancelled, or its transaction is the victim of a deadlock.
    Forever,
    /// Not at all: a request that would have to wait fails with `Busy`. For example for reads that
    /// skip locked rows.
    NoWait,
}

/// The outcome of a successful request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Acquired {
    /// Whether the request had to wait. Data read before the request may then be out of date.
    pub waited: bool,
    /// Whether the locker already held this lock or a stronger one. A caller that unlocks rows
    /// ([`Locker::unlock_row`]) must keep such rows locked.
    pub was_held: bool,
}

/// The locks of one transaction.
///
/// Used by one thread at a time; may move between threads. The locks of one locker never conflict
/// with each other. Dropping the locker releases all its locks. A failed request leaves all earlier
/// locks held. After a `Deadlock` the caller should roll back and release all locks, because other
/// transactions wait for them.
pub struct Locker {
    pub(crate) manager: Arc<LockManager>,
    pub(crate) id: u64,
    /// Number of locks that were granted, and of writes that the transaction has counted.
    work: AtomicU64,
    pub(crate) waker: OnceLock<Arc<Waker>>,
    pub(crate) tables: SmallVec<[HeldLocks; 1]>,
    /// Index of the table used last.
    pub(crate) last: usize,
    /// Bytes of the locker's locks.
    pub(crate) bytes: u64,
    /// Number of the locker's locks.
    pub(crate) locks: u64,
    pub(crate) charged: Option<Reservation>,
    pub(crate) bounds: Bounds,
    /// Whether rows may be joined into ranges.
    pub(crate) may_join: bool,
}

impl LockManager {
    /// Creates a locker for the transaction `id`. Ids must ascend in the order in which
    /// transactions begin: if all transactions of a deadlock have done equal work, the one with the
    /// largest id, the youngest, becomes the victim. No two live lockers may have the same id.
    ///
    /// Cheap: takes no lock and allocates nothing.
    #[must_use]
    pub fn locker(self: &Arc<Self>, id: u64) -> Locker {
        Locker::new(Arc::clone(self), id)
    }
}

impl Locker {
    pub(crate) fn new(manager: Arc<LockManager>, id: u64) -> Self {
        Self {
            manager,
            id,
            work: AtomicU64::new(0),
            waker: OnceLock::new(),
            tables: SmallVec::new(),
            last: 0,
            bytes: 0,
            locks: 0,
            charged: None,
            bounds: Bounds::default(),
            may_join: true,
        }
    }

    /// Makes this locker never lock a key that it did not request: its rows are packed when they
    /// take too much memory, but not joined into ranges. For a restart, where prepared transactions
    /// get their locks one after the other: a later transaction may own keys between the rows of
    /// this one.
    #[must_use]
    pub fn without_joins(mut self) -> Self {
        self.may_join = false;
        self
    }

    /// Returns the transaction's id.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Turns this locker into the locker of another transaction, as a new one from
    /// [`LockManager::locker`], but keeps its memory. Releases all locks first. Cancellers of the
    /// old transaction have no effect from now on.
    pub fn renew(&mut self, id: u64) {
        self.release_all();
        self.id = id;
        self.work = AtomicU64::new(0);
        match self.waker.get_mut().map(Arc::get_mut) {
            None => {}
            Some(Some(own)) => own.cancelled = AtomicBool::new(false),
            // A canceller of the old transaction still refers to this waker.
            Some(None) => self.waker = OnceLock::new(),
        }
    }

    /// As [`renew`](Self::renew), and turns `canceller`, a canceller of the old transaction, into a
    /// canceller of the new one. Allocates nothing if there is no other canceller.
    pub fn renew_with(&mut self, canceller: &mut Canceller, id: u64) {
        let own = self.waker.get().filter(|own| Arc::ptr_eq(own, &canceller.waker));
        // No other thread can clone either of the two references, the locker's and the canceller's.
        if own.is_some_and(|own| Arc::strong_count(own) == 2) {
            self.release_all();
            self.id = id;
            self.work = AtomicU64::new(0);
            canceller.locker = id;
            canceller.waker.cancelled.store(false, Ordering::Relaxed);
            return;
        }
        self.renew(id);
        *canceller = self.canceller();
    }

    /// Releases the lock of a row that a statement read but does not need. Only for rows whose
    /// [`Acquired::was_held`] was false, because a row that was locked twice counts as one lock.
    /// Does nothing if the row is locked as part of a range (a scan, escalation) or has been
    /// packed, or if its lock was upgraded from shared; an upgraded lock stays exclusive.
    pub fn unlock_row(&mut self, table: &Arc<LockTable>, key: &[u8]) {
        let Some(at) = self.find(table) else { return };
        self.last = at;
        let key = Key::new(key);
        let held = &mut self.tables[at];
        let mut state = table.state.lock();
        let given = state.rows.get(&key).is_some_and(|row| !row.upgraded)
            && state.release_row(self.id, &key);
        if !given {
            return;
        }
        if !state.waiters.is_empty() {
            let mut graph = self.manager.graph.lock();
            state.grant_waiters(self.id, true, &mut graph);
        }
        held.forget_row(&key, self.id, &mut state);
        drop(state);
        self.charge();
    }

    /// Turns the exclusive lock of a row into a shared lock, for a caller that does not write the
    /// row after all. Only for rows whose [`Acquired::was_held`] was false. A row that is locked as
    /// part of a range, or has been packed, stays exclusive.
    pub fn share_row(&mut self, table: &Arc<LockTable>, key: &[u8]) {
        let mut state = table.state.lock();
        if state.share_row(self.id, &Key::new(key)) && !state.waiters.is_empty() {
            let mut graph = self.manager.graph.lock();
            state.grant_waiters(self.id, true, &mut graph);
        }
    }

    /// Releases all locks. The locker can then be used again.
    pub fn release_all(&mut self) {
        for mut held in self.tables.drain(..) {
            held.release(self.id, &self.manager.graph);
        }
        self.last = 0;
        self.bytes = 0;
        self.locks = 0;
        self.bounds = Bounds::default();
        self.charge();
    }

    /// Number of locks held: rows, gaps and ranges; a scanned range counts once.
    #[must_use]
    pub fn lock_count(&self) -> u64 {
        self.locks
    }

    /// Counts `n` writes: the victim of a deadlock is the transaction with the fewest writes and
    /// locks.
    #[inline]
    pub fn add_work(&self, n: u64) {
        // Only the locker's own thread changes this counter.
        self.work.store(self.work.load(Ordering::Relaxed).saturating_add(n), Ordering::Relaxed);
    }

    /// Sets the number of writes and locks that decides which locker is the victim of a deadlock.
    /// For a locker that can lock again at no cost, and so should be the victim.
    pub fn set_work(&mut self, n: u64) {
        self.work.store(n, Ordering::Relaxed);
    }

    /// Discards a pending cancellation: one that arrived while this locker did not wait, and that
    /// no wait has consumed. Later cancellations remain effective.
    pub fn forget_cancel(&self) {
        if let Some(waker) = self.waker.get() {
            waker.cancelled.store(false, Ordering::Relaxed);
        }
    }

    /// Consumes a pending cancellation, if any. Returns whether there was one. For threads that
    /// wait for something other than a lock and poll from time to time.
    #[must_use]
    pub fn take_cancel(&self) -> bool {
        self.waker.get().is_some_and(|waker| waker.cancelled.swap(false, Ordering::Relaxed))
    }

    /// Returns a handle with which any thread can make the current wait of this locker, or its next
    /// one, fail with `Cancelled`.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        Canceller {
            manager: Arc::clone(&self.manager),
            locker: self.id,
            waker: Arc::clone(self.waker()),
        }
    }

    pub(crate) fn waker(&self) -> &Arc<Waker> {
        self.waker.get_or_init(|| Arc::new(Waker::default()))
    }

    pub(crate) fn work(&self) -> u64 {
        self.work.load(Ordering::Relaxed)
    }

    fn find(&self, table: &Arc<LockTable>) -> Option<usize> {
        let is = |held: &HeldLocks| Arc::ptr_eq(&held.table, table);
        if self.tables.get(self.last).is_some_and(is) {
            return Some(self.last);
        }
        self.tables.iter().position(is)
    }

    /// Returns the index of a table in the locker's list. The first use of a table enters its batch
    /// latch.
    pub(crate) fn enter(&mut self, table: &Arc<LockTable>) -> usize {
        let at = self.find(table).unwrap_or_else(|| {
            table.batch_latch.enter();
            self.tables.push(HeldLocks::new(Arc::clone(table)));
            self.tables.len() - 1
        });
        self.last = at;
        at
    }

    /// Counts a granted lock and charges its memory.
    #[inline]
    pub(crate) fn count_grant(&mut self) {
        self.add_work(1);
        self.charge();
    }
}

impl Drop for Locker {
    fn drop(&mut self) {
        self.release_all();
    }
}

impl std::fmt::Debug for Locker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Locker({} in {} trees)", self.id, self.tables.len())
    }
}

/// Cancels the wait of a locker from any thread. See `Locker::canceller`.
#[derive(Clone)]
pub struct Canceller {
    manager: Arc<LockManager>,
    locker: u64,
    waker: Arc<Waker>,
}

impl Canceller {
    /// Makes the locker's current wait fail with `Cancelled`. If the locker is not waiting, its
    /// next wait fails, however late it begins, unless the locker discards the cancellation first
    /// (`Locker::forget_cancel`; a transaction does so when a statement begins). A lock that is
    /// granted immediately is not a wait.
    pub fn cancel(&self) {
        let mut graph = self.manager.graph.lock();
        let ours = graph.get(self.locker).is_some_and(|wait| Arc::ptr_eq(&wait.waker, &self.waker));
        if !ours || !graph.decide(self.locker, WaitState::Cancelled) {
            self.waker.cancelled.store(true, Ordering::Relaxed);
        }
    }
}

impl std::fmt::Debug for Canceller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Canceller(of {})", self.locker)
    }
}
