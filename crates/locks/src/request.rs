//! How a [`Locker`] requests locks.
//!
//! ```text
//!   covered by an own range? ------------------------------------> was_held
//!   the row alone decides (no ranges, waiters, others' packs)? --> granted
//!   no other locker holds or requested a conflicting lock? ------> granted
//!   else wait (wait.rs), in the queue of the table
//! ```

use std::ops::Bound;

use frondb_core::Result;
use frondb_core::sync::Arc;

use crate::class::{Class, LockMode};
use crate::key::{Key, hi_of, lo_of};
use crate::locker::{Acquired, LockWait, Locker};
use crate::queue::Request;
use crate::table::LockTable;
use crate::table_state::RowAttempt;
use crate::wait::Requested;

impl Locker {
    /// Locks a row, whether or not it exists. An exclusive request for a row that the locker holds
    /// in shared mode is an upgrade, and goes before all waiters.
    ///
    /// # Errors
    /// `Busy` (the request would wait, and `wait` is [`LockWait::NoWait`]), `LockTimeout`,
    /// `Deadlock`, `Cancelled`; `TooManyLocks` if all locks together take more than eight times
    /// their limit, and this locker has many locks that cannot be joined. A call that fails locks
    /// nothing.
    pub fn lock_row(
        &mut self,
        table: &Arc<LockTable>,
        key: &[u8],
        mode: LockMode,
        wait: LockWait,
    ) -> Result<Acquired> {
        let requested = self.request_row(table, key, mode, wait)?;
        self.finish(requested, wait)
    }

    /// Locks a range in which a locking read found no row: other transactions may not write there,
    /// but may lock the same gap. An empty range locks nothing.
    ///
    /// # Errors
    /// Like [`lock_row`](Self::lock_row).
    pub fn lock_gap(
        &mut self,
        table: &Arc<LockTable>,
        lo: Bound<&[u8]>,
        hi: Bound<&[u8]>,
        wait: LockWait,
    ) -> Result<Acquired> {
        let want = Request::Range { lo: lo_of(lo), hi: hi_of(hi), class: Class::Gap };
        let requested = self.request(table, want, wait)?;
        self.finish(requested, wait)
    }

    /// Locks the keys that one step of a locking scan passed: the gap, and `row` at one of its ends
    /// (the upper end in a forward scan, the lower end in a backward scan). These locks and the
    /// earlier locks of the scan become one range, however many rows the scan passes.
    ///
    /// ```text
    ///   forward:  (previous row, row) + row     backward: (row, previous row) + row
    /// ```
    ///
    /// A row locked this way stays locked until the transaction ends.
    ///
    /// # Errors
    /// Like [`lock_row`](Self::lock_row).
    pub fn lock_next(
        &mut self,
        table: &Arc<LockTable>,
        gap_lo: Bound<&[u8]>,
        gap_hi: Bound<&[u8]>,
        row: &[u8],
        mode: LockMode,
        wait: LockWait,
    ) -> Result<Acquired> {
        let requested = self.request(table, step(gap_lo, gap_hi, row, mode), wait)?;
        self.finish(requested, wait)
    }

    /// Locks the range `[lo, hi)`, or everything from `lo` on if `hi` is `None`: existing rows and
    /// all keys without a row. An empty range locks nothing.
    ///
    /// # Errors
    /// Like [`lock_row`](Self::lock_row).
    pub fn lock_range(
        &mut self,
        table: &Arc<LockTable>,
        lo: &[u8],
        hi: Option<&[u8]>,
        mode: LockMode,
        wait: LockWait,
    ) -> Result<Acquired> {
        // A range of one key becomes a row lock, which excludes the same requests and can be
        // packed.
        if let Some((0, key)) = hi.and_then(|hi| hi.split_last())
            && key == lo
        {
            return self.lock_row(table, lo, mode, wait);
        }
        let want =
            Request::Range { lo: Key::new(lo), hi: hi.map(Key::new), class: Class::range(mode) };
        let requested = self.request(table, want, wait)?;
        self.finish(requested, wait)
    }

    pub(crate) fn request_row(
        &mut self,
        table: &Arc<LockTable>,
        key: &[u8],
        mode: LockMode,
        wait: LockWait,
    ) -> Result<Requested> {
        self.check_full()?;
        let at = self.enter(table);
        let held = &mut self.tables[at];
        let key = Key::new(key);
        if !held.ranges.is_empty() && held.ranges.covers_row(&key, Class::row(mode)) {
            return Ok(Requested::held());
        }
        let tried = table.state.lock().try_row(self.id, &key, mode);
        match tried {
            RowAttempt::Held => return Ok(Requested::held()),
            RowAttempt::New => held.add_row(key),
            RowAttempt::Upgraded => {}
            RowAttempt::Unclear => return self.request_at(at, Request::Row { key, mode }, wait),
        }
        self.count_grant();
        Ok(Requested::granted())
    }

    pub(crate) fn request(
        &mut self,
        table: &Arc<LockTable>,
        want: Request,
        wait: LockWait,
    ) -> Result<Requested> {
        self.check_full()?;
        let at = self.enter(table);
        self.request_at(at, want, wait)
    }

    fn request_at(&mut self, at: usize, want: Request, wait: LockWait) -> Result<Requested> {
        let held = &mut self.tables[at];
        let table = Arc::clone(&held.table);
        let mut state = table.state.lock();
        let Some(parts) = held.parts(self.id, &state, &want) else { return Ok(Requested::held()) };
        let blockers = state.blockers(self.id, &parts, &self.manager.graph);
        if !blockers.is_empty() {
            return self.begin_wait(at, state, want, parts, blockers, wait);
        }
        if !state.waiters.is_empty() {
            let mut graph = self.manager.graph.lock();
            state.add_edges_to_holder(self.id, &want.held(), &mut graph);
        }
        held.take(self.id, &mut state, want);
        drop(state);
        self.count_grant();
        Ok(Requested::granted())
    }
}

pub(crate) fn step(
    gap_lo: Bound<&[u8]>,
    gap_hi: Bound<&[u8]>,
    row: &[u8],
    mode: LockMode,
) -> Request {
    let (gap_lo, gap_hi) = (lo_of(gap_lo), hi_of(gap_hi));
    let (row, after) = (Key::new(row), Key::after(row));
    let lo = gap_lo.clone().min(row.clone());
    let hi = gap_hi.clone().map(|hi| hi.max(after));
    Request::Step { gap_lo, gap_hi, row, mode, lo, hi }
}
