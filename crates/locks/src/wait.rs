//! How a locker waits: it enters the queue, searches for cycles, and sleeps until its wait is
//! decided.
//!
//! ```text
//!   begin_wait: [table's lock [graph's lock: enter both, search cycles, choose victims]]
//!   finish:     [graph's lock: sleep until the wait is decided]
//!               granted: the lock is in the table already
//!               else:    [table's lock: leave the queue [graph's lock: grant other waiters]]
//! ```
//!
//! Grants, deadlocks, cancellations and timeouts race; the first to take the graph's lock wins (see
//! `graph.rs`).

use std::time::Duration;

use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_core::{Error, ErrorKind, Result};

use crate::deadlock::LastDeadlock;
use crate::graph::{Graph, Wait, WaitState};
use crate::held::HeldLocks;
use crate::info::{describe, ids};
use crate::key::Extent;
use crate::lazy_state::StateGuard;
use crate::locker::{Acquired, LockWait, Locker};
use crate::manager::Counters;
use crate::queue::{Request, RequestParts, Waiter};
use crate::wait_hook::WaitNotice;

/// The state of a request that did not fail.
pub(crate) enum Requested {
    Done(Acquired),
    /// The request is in the queue of a table.
    Waits(Box<Pending>),
}

pub(crate) struct Pending {
    at: usize,
    entry: u64,
    want: Request,
    /// Whether the request is for a row that is not in the locker's list of rows yet.
    is_new_row: bool,
}

impl Requested {
    pub(crate) fn held() -> Self {
        Self::Done(Acquired { waited: false, was_held: true })
    }

    pub(crate) fn granted() -> Self {
        Self::Done(Acquired { waited: false, was_held: false })
    }
}

impl Locker {
    /// Puts a request into the queue. Fails if the request may not wait, or is cancelled.
    pub(crate) fn begin_wait(
        &self,
        at: usize,
        mut state: StateGuard<'_>,
        want: Request,
        parts: RequestParts,
        blockers: Vec<u64>,
        wait: LockWait,
    ) -> Result<Requested> {
        let tree = self.tables[at].table.tree;
        match wait {
            LockWait::NoWait => return Err(busy(&want, &blockers)),
            // Do not enter the queue: the request would block others there, and could close cycles.
            LockWait::Upto(timeout) if timeout.is_zero() => {
                return Err(self.timed_out(&want, timeout, &blockers));
            }
            LockWait::Upto(_) | LockWait::Forever => {}
        }
        let waker = self.waker();
        let mut graph = self.manager.graph.lock();
        if waker.cancelled.swap(false, Ordering::Relaxed) {
            return Err(self.cancelled(&want));
        }
        Counters::add(&self.manager.counters.waits, 1);
        let since = self.manager.clock.now();
        let (work, waker) = (self.work(), Arc::clone(waker));
        let (wanted, mode) = (want.held(), want.mode());
        graph.begin(
            self.id,
            Wait {
                state: WaitState::Waiting,
                blockers,
                work,
                since,
                waker,
                tree,
                wanted,
                mode,
                has_new_blockers: true,
            },
        );
        let entry = state.next_entry;
        let is_new_row =
            matches!(&want, Request::Row { key, .. } if state.lists_row(self.id, key).is_none());
        state.next_entry += 1;
        state.enqueue(Waiter { locker: self.id, entry, want: want.clone(), parts }, &mut graph);
        self.break_cycles(&mut graph);
        Ok(Requested::Waits(Box::new(Pending { at, entry, want, is_new_row })))
    }

    /// Breaks every cycle that this wait has closed.
    fn break_cycles(&self, graph: &mut Graph) {
        while let Some(cycle) = graph.find_cycle(self.id) {
            let victim = graph.victim(&cycle);
            Counters::add(&self.manager.counters.deadlocks, 1);
            let now = self.manager.clock.now();
            let last = LastDeadlock::new(graph, &cycle, victim, now);
            *self.manager.last_deadlock.lock() = Some(last);
            graph.decide(victim, WaitState::Victim(cycle));
            if victim == self.id {
                break;
            }
        }
    }

    /// Waits for the outcome of a request.
    pub(crate) fn finish(&mut self, requested: Requested, wait: LockWait) -> Result<Acquired> {
        let pending = match requested {
            Requested::Done(acquired) => return Ok(acquired),
            Requested::Waits(pending) => pending,
        };
        self.sleep(wait);
        self.conclude(pending, wait)
    }

    /// Sleeps until the wait is decided.
    fn sleep(&self, wait: LockWait) {
        let waker = self.waker();
        let mut graph = self.manager.graph.lock();
        while graph.get(self.id).is_some_and(|wait| wait.state == WaitState::Waiting) {
            if self.manager.wait_hook.is_set()
                && let Some(blockers) = graph.take_new_blockers(self.id)
            {
                drop(graph);
                self.manager.wait_hook.call(WaitNotice { waiter: self.id, blockers: &blockers });
                graph = self.manager.graph.lock();
                continue;
            }
            match wait {
                LockWait::Upto(timeout) => {
                    let left = timeout.saturating_sub(self.waited(&graph));
                    if waker.changed.wait_for(&mut graph, left).timed_out() {
                        graph.decide(self.id, WaitState::TimedOut);
                    }
                }
                LockWait::Forever | LockWait::NoWait => waker.changed.wait(&mut graph),
            }
        }
    }

    /// Returns how long the wait has lasted.
    fn waited(&self, graph: &Graph) -> Duration {
        let now = self.manager.clock.now();
        graph.get(self.id).map_or(Duration::ZERO, |wait| now.since(wait.since))
    }

    /// Cleans up after a decided wait and returns its outcome.
    pub(crate) fn conclude(&mut self, pending: Box<Pending>, wait: LockWait) -> Result<Acquired> {
        let Some(ended) = self.manager.graph.lock().end(self.id) else {
            return Err(Error::internal("a wait was ended by another thread"));
        };
        let waited = self.manager.clock.now().since(ended.since);
        let waited_ns = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
        Counters::add(&self.manager.counters.waited_ns, waited_ns);
        if ended.state == WaitState::Granted {
            self.last = pending.at;
            self.tables[pending.at].take_granted(self.id, *pending);
            self.count_grant();
            return Ok(Acquired { waited: true, was_held: false });
        }
        self.leave_queue(pending.at);
        Err(self.failed(&pending, &ended, wait))
    }

    fn leave_queue(&self, at: usize) {
        let mut state = self.tables[at].table.state.lock();
        state.dequeue(self.id);
        if !state.waiters.is_empty() {
            let mut graph = self.manager.graph.lock();
            state.grant_waiters(self.id, true, &mut graph);
        }
    }

    fn failed(&self, pending: &Pending, ended: &Wait, wait: LockWait) -> Error {
        let what = describe(&pending.want);
        match &ended.state {
            WaitState::Victim(cycle) => Error::new(
                ErrorKind::Deadlock,
                format!(
                    "transaction {} waited for the {what}, and transactions {} wait for each \
                     other in a cycle; it has done the least work: roll it back and retry it",
                    self.id,
                    ids(cycle)
                ),
            ),
            WaitState::TimedOut => {
                let timeout = match wait {
                    LockWait::Upto(timeout) => timeout,
                    LockWait::Forever | LockWait::NoWait => Duration::ZERO,
                };
                self.timed_out(&pending.want, timeout, &ended.blockers)
            }
            WaitState::Waiting | WaitState::Granted | WaitState::Cancelled => {
                self.cancelled(&pending.want)
            }
        }
    }

    fn timed_out(&self, want: &Request, timeout: Duration, blockers: &[u64]) -> Error {
        Counters::add(&self.manager.counters.timeouts, 1);
        let message = format!(
            "transaction {} waited {timeout:?} for the {}, which transactions {} hold or \
             requested earlier: retry, or wait longer",
            self.id,
            describe(want),
            ids(blockers)
        );
        Error::new(ErrorKind::LockTimeout, message)
    }

    fn cancelled(&self, want: &Request) -> Error {
        let what = describe(want);
        let message =
            format!("transaction {} was cancelled while it waited for the {what}", self.id);
        Error::new(ErrorKind::Cancelled, message)
    }
}

impl HeldLocks {
    /// Enters a granted lock into the locker's own lists. The thread that granted the lock has
    /// entered it into the table already.
    fn take_granted(&mut self, locker: u64, pending: Pending) {
        let held = pending.want.held();
        let Extent::To(hi) = held.extent else {
            if pending.is_new_row {
                self.add_row(held.lo);
            }
            return;
        };
        let table = Arc::clone(&self.table);
        let mut state = table.state.lock();
        state.ranges.remove(&held.lo, pending.entry);
        self.add_range(locker, &mut state, held.lo, hi, held.class);
    }
}

fn busy(want: &Request, blockers: &[u64]) -> Error {
    Error::new(
        ErrorKind::Busy,
        format!(
            "the {} is held or requested by transactions {}: skip it, or wait",
            describe(want),
            ids(blockers)
        ),
    )
}
