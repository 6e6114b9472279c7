//! [`Locker`]: the locks of one transaction, and how it asks for more.
//!
//! ```text
//!   covered by an own range? ------------------------------------> was_held
//!   the row alone tells (no ranges, nobody waits)? --------------> granted
//!   nobody holds or wants what conflicts? -----------------------> granted
//!   else wait (wait.rs), in the queue of the table
//! ```
//!
//! It keeps a list of what it holds, so that all of it can be given back, and its ranges in
//! order (`own.rs`). Both belong to its thread: no lock.

use std::ops::Bound;

use frondb_core::Result;
use frondb_core::budget::Reservation;
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use frondb_core::sync::{Arc, Condvar, OnceLock};
use smallvec::SmallVec;

use crate::class::{Class, LockMode};
use crate::graph::Fate;
use crate::key::{Hi, Key, hi_of, lo_of};
use crate::manager::{Acquired, LockManager, LockWait};
use crate::own::{OwnRanges, Piece, Place};
use crate::table::{Ask, Asks, LockTable, State, Try, Want};
use crate::wait::Asked;

/// Rows that are given back under one hold of a table's lock.
const RELEASE_ROWS: usize = 256;

/// What others need of a locker: made when it waits for the first time or a canceller is made.
#[derive(Default)]
pub(crate) struct Waker {
    /// Its wait was decided. Goes with the graph's lock.
    pub(crate) changed: Condvar,
    /// The next wait fails. Set under the graph's lock.
    pub(crate) cancelled: AtomicBool,
}

/// What a locker holds in one table.
pub(crate) struct Held {
    pub(crate) table: Arc<LockTable>,
    /// The rows, in the order they were locked. May name rows that were given up since.
    pub(crate) rows: SmallVec<[Key; 1]>,
    /// How many of `rows` were given up.
    pub(crate) stale: usize,
    pub(crate) ranges: OwnRanges,
    /// Rows of it that are packed in the table, and the bytes they take.
    pub(crate) packed: (u64, u64),
    /// Bytes outside of the structures of fixed size.
    pub(crate) key_bytes: u64,
    /// What of this is in the locker's sums: bytes, and locks.
    pub(crate) counted: (u64, u64),
}

/// The locks of one transaction.
///
/// One thread at a time; it may move between threads. Its own locks never conflict with each
/// other. Dropping it releases all. A request that fails leaves all that was held before; after a
/// `Deadlock` the caller should roll back and release all, or others wait on.
pub struct Locker {
    pub(crate) manager: Arc<LockManager>,
    pub(crate) id: u64,
    /// Locks granted and writes done.
    work: AtomicU64,
    pub(crate) waker: OnceLock<Arc<Waker>>,
    pub(crate) tables: SmallVec<[Held; 1]>,
    /// The table that was used last.
    pub(crate) last: usize,
    /// Bytes of its locks.
    pub(crate) bytes: u64,
    /// How many they are.
    pub(crate) locks: u64,
    pub(crate) charged: Option<Reservation>,
    /// Bytes at which rows become ranges, if an escalation left more than the share.
    pub(crate) escalate_at: u64,
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
            escalate_at: 0,
        }
    }

    /// The transaction's id.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Makes it the locker of another transaction, as [`LockManager::locker`] would, but keeps the
    /// memory that it has. Releases all locks first. Cancellers that were made of it are without
    /// effect from now on.
    pub fn renew(&mut self, id: u64) {
        self.release_all();
        self.id = id;
        self.work = AtomicU64::new(0);
        match self.waker.get_mut().map(Arc::get_mut) {
            None => {}
            Some(Some(own)) => own.cancelled = AtomicBool::new(false),
            // Somebody else knows it, so it is the other transaction's.
            Some(None) => self.waker = OnceLock::new(),
        }
    }

    /// Locks a row, whether it exists or not. Held shared and wanted exclusive is an upgrade: it
    /// goes before all who wait.
    ///
    /// # Errors
    /// `Busy` (would wait, and `wait` is [`LockWait::NoWait`]), `LockTimeout`, `Deadlock`,
    /// `Cancelled`: nothing was locked.
    pub fn lock_row(
        &mut self,
        table: &Arc<LockTable>,
        key: &[u8],
        mode: LockMode,
        wait: LockWait,
    ) -> Result<Acquired> {
        let asked = self.ask_row(table, key, mode, wait)?;
        self.finish(asked, wait)
    }

    /// Locks a range in which a locking read found no row: nobody else writes there, others may
    /// lock the same gap. An empty range locks nothing.
    ///
    /// # Errors
    /// As [`lock_row`](Self::lock_row).
    pub fn lock_gap(
        &mut self,
        table: &Arc<LockTable>,
        lo: Bound<&[u8]>,
        hi: Bound<&[u8]>,
        wait: LockWait,
    ) -> Result<Acquired> {
        let want = Want::Range { lo: lo_of(lo), hi: hi_of(hi), class: Class::Gap };
        let asked = self.ask(table, want, wait)?;
        self.finish(asked, wait)
    }

    /// Locks what one step of a locking scan passed: the gap, and `row` at one of its ends (the
    /// upper one of a forward scan, the lower one of a backward scan). With what the scan locked
    /// before it becomes one range, however many rows there are.
    ///
    /// ```text
    ///   forward:  (row before, row) + row       backward: (row, row before) + row
    /// ```
    ///
    /// The row locked so is given up with the transaction only.
    ///
    /// # Errors
    /// As [`lock_row`](Self::lock_row).
    pub fn lock_next(
        &mut self,
        table: &Arc<LockTable>,
        gap_lo: Bound<&[u8]>,
        gap_hi: Bound<&[u8]>,
        row: &[u8],
        mode: LockMode,
        wait: LockWait,
    ) -> Result<Acquired> {
        let asked = self.ask(table, step(gap_lo, gap_hi, row, mode), wait)?;
        self.finish(asked, wait)
    }

    /// Locks all keys from `lo` to before `hi`, or to the end: rows and what lies between. An
    /// empty range locks nothing.
    ///
    /// # Errors
    /// As [`lock_row`](Self::lock_row).
    pub fn lock_range(
        &mut self,
        table: &Arc<LockTable>,
        lo: &[u8],
        hi: Option<&[u8]>,
        mode: LockMode,
        wait: LockWait,
    ) -> Result<Acquired> {
        // A range of one key is that row: what it excludes is the same, and rows can be packed.
        if let Some((0, key)) = hi.and_then(|hi| hi.split_last())
            && key == lo
        {
            return self.lock_row(table, lo, mode, wait);
        }
        let want =
            Want::Range { lo: Key::new(lo), hi: hi.map(Key::new), class: Class::range(mode) };
        let asked = self.ask(table, want, wait)?;
        self.finish(asked, wait)
    }

    /// Gives up a row lock: what a statement read and did not want. Only for rows whose
    /// [`Acquired::was_held`] was false; a row locked twice is locked once. Does nothing for a row
    /// that is not locked alone (a scanned range, escalation), nor for one that was upgraded from
    /// shared, which stays exclusive.
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
            state.let_pass(self.id, true, &mut graph);
        }
        held.forget_row(&key, self.id, &mut state);
        drop(state);
        self.charge();
    }

    /// Releases all locks. The locker can be used again.
    pub fn release_all(&mut self) {
        for mut held in self.tables.drain(..) {
            held.release(self.id, &self.manager);
        }
        self.last = 0;
        self.bytes = 0;
        self.locks = 0;
        self.escalate_at = 0;
        self.charge();
    }

    /// How many locks it holds: rows, gaps and ranges; a scanned range counts once.
    #[must_use]
    pub fn lock_count(&self) -> u64 {
        self.locks
    }

    /// Counts `n` writes: whoever has done least is the victim of a deadlock.
    #[inline]
    pub fn add_work(&self, n: u64) {
        // Only its own thread changes it.
        self.work.store(self.work.load(Ordering::Relaxed).saturating_add(n), Ordering::Relaxed);
    }

    /// Forgets a cancel that came while this locker did not wait and that no wait has met since: what
    /// it was meant for is over. One that comes later counts.
    pub fn forget_cancel(&self) {
        if let Some(waker) = self.waker.get() {
            waker.cancelled.store(false, Ordering::Relaxed);
        }
    }

    /// Whether a cancel came that no wait has met; it has met one then. For who waits for something else
    /// than a lock, and looks now and then.
    #[must_use]
    pub fn take_cancel(&self) -> bool {
        self.waker.get().is_some_and(|waker| waker.cancelled.swap(false, Ordering::Relaxed))
    }

    /// A handle with which any thread makes the present wait of this locker, or its next one,
    /// fail with `Cancelled`.
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
        let is = |held: &Held| Arc::ptr_eq(&held.table, table);
        if self.tables.get(self.last).is_some_and(is) {
            return Some(self.last);
        }
        self.tables.iter().position(is)
    }

    /// The place of a table in the list; the first time it passes the table's gate.
    fn enter(&mut self, table: &Arc<LockTable>) -> usize {
        let at = self.find(table).unwrap_or_else(|| {
            table.gate.enter();
            self.tables.push(Held::new(Arc::clone(table)));
            self.tables.len() - 1
        });
        self.last = at;
        at
    }

    pub(crate) fn ask_row(
        &mut self,
        table: &Arc<LockTable>,
        key: &[u8],
        mode: LockMode,
        wait: LockWait,
    ) -> Result<Asked> {
        let at = self.enter(table);
        let held = &mut self.tables[at];
        let key = Key::new(key);
        if !held.ranges.is_empty() && held.ranges.covers_row(&key, Class::row(mode)) {
            return Ok(Asked::held());
        }
        let tried = table.state.lock().try_row(self.id, &key, mode);
        match tried {
            Try::Held => return Ok(Asked::held()),
            Try::New => held.add_row(key),
            Try::Upgraded => {}
            Try::Unclear => return self.ask_at(at, Want::Row { key, mode }, wait),
        }
        self.count_grant();
        Ok(Asked::granted())
    }

    pub(crate) fn ask(
        &mut self,
        table: &Arc<LockTable>,
        want: Want,
        wait: LockWait,
    ) -> Result<Asked> {
        let at = self.enter(table);
        self.ask_at(at, want, wait)
    }

    fn ask_at(&mut self, at: usize, want: Want, wait: LockWait) -> Result<Asked> {
        let held = &mut self.tables[at];
        let table = Arc::clone(&held.table);
        let mut state = table.state.lock();
        let Some(asks) = held.asks(self.id, &state, &want) else { return Ok(Asked::held()) };
        let blockers = state.blockers(self.id, &asks);
        if !blockers.is_empty() {
            return self.begin_wait(at, state, want, asks, blockers, wait);
        }
        if !state.waiters.is_empty() {
            let mut graph = self.manager.graph.lock();
            state.point_at_holder(self.id, &want.held(), &mut graph);
        }
        held.take(self.id, &mut state, want);
        drop(state);
        self.count_grant();
        Ok(Asked::granted())
    }

    /// Counts a lock that was granted, and sees to the memory.
    #[inline]
    pub(crate) fn count_grant(&mut self) {
        self.add_work(1);
        self.charge();
    }
}

pub(crate) fn step(gap_lo: Bound<&[u8]>, gap_hi: Bound<&[u8]>, row: &[u8], mode: LockMode) -> Want {
    let (gap_lo, gap_hi) = (lo_of(gap_lo), hi_of(gap_hi));
    let (row, after) = (Key::new(row), Key::after(row));
    let lo = gap_lo.clone().min(row.clone());
    let hi = gap_hi.clone().map(|hi| hi.max(after));
    Want::Step { gap_lo, gap_hi, row, mode, lo, hi }
}

impl Held {
    fn new(table: Arc<LockTable>) -> Self {
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

    pub(crate) fn add_row(&mut self, key: Key) {
        self.key_bytes += 2 * key.heap_bytes();
        self.rows.push(key);
    }

    /// What has to be asked for; none if the locker holds it all.
    fn asks(&self, locker: u64, state: &State, want: &Want) -> Option<Asks> {
        let mut asks = Asks::new();
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
            asks.push(Ask { area, first });
        }
        (!covered).then_some(asks)
    }

    /// Enters into the table and the own lists what was granted at once.
    fn take(&mut self, locker: u64, state: &mut State, want: Want) {
        match want {
            Want::Row { key, mode } => {
                let new = state.lists_row(locker, &key).is_none();
                state.grant_row(locker, &key, mode);
                if new {
                    self.add_row(key);
                }
            }
            Want::Range { lo, hi, class } => self.add_range(locker, state, lo, hi, class),
            Want::Step { lo, hi, mode, .. } => {
                self.add_range(locker, state, lo, hi, Class::scan(mode));
            }
        }
    }

    pub(crate) fn add_range(
        &mut self,
        locker: u64,
        state: &mut State,
        lo: Key,
        hi: Hi,
        class: Class,
    ) {
        let mut place =
            Place { ranges: &mut state.ranges, next_entry: &mut state.next_entry, locker };
        self.ranges.add(Piece { lo, hi, class }, &mut place);
    }

    /// Takes a row that was given up out of the list, at once if it is one of the last.
    fn forget_row(&mut self, key: &Key, locker: u64, state: &mut State) {
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

    /// Gives back all: in pieces, so that others get at the table in between. Who waits goes on
    /// at the end.
    fn release(&mut self, locker: u64, manager: &LockManager) {
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
                    let mut graph = manager.graph.lock();
                    state.let_pass(locker, false, &mut graph);
                }
                break;
            }
        }
        self.table.gate.leave();
    }
}

fn want_end(extent: &crate::key::Extent) -> &Hi {
    match extent {
        crate::key::Extent::To(hi) => hi,
        crate::key::Extent::Row => &None,
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

/// Ends a wait of a locker from any thread. See [`Locker::canceller`].
#[derive(Clone)]
pub struct Canceller {
    manager: Arc<LockManager>,
    locker: u64,
    waker: Arc<Waker>,
}

impl Canceller {
    /// Makes the locker's present wait fail with `Cancelled`; if it does not wait, the next one,
    /// however late, unless the locker forgets it before ([`Locker::forget_cancel`]; a transaction
    /// does when a statement begins). A lock that is granted at once is not a wait.
    pub fn cancel(&self) {
        let mut graph = self.manager.graph.lock();
        let ours = graph.get(self.locker).is_some_and(|wait| Arc::ptr_eq(&wait.waker, &self.waker));
        if !ours || !graph.decide(self.locker, Fate::Cancelled) {
            self.waker.cancelled.store(true, Ordering::Relaxed);
        }
    }
}

impl std::fmt::Debug for Canceller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Canceller(of {})", self.locker)
    }
}
