//! [`Graph`]: the wait-for graph over all trees, and the search for cycles.
//!
//! A cycle can close only when a wait begins: only then does a locker for which others wait get an
//! edge of its own, and an edge to a running locker closes no cycle. So a search is necessary only
//! when a wait begins, and only if another locker waits for the locker that begins to wait. The
//! search starts from this locker, and is repeated until it finds no cycle.
//!
//! Invariants
//! - A waiting locker has edges to exactly the lockers for which it waits: holders of conflicting
//!   locks, and lockers whose conflicting requests go before its own (earlier ones, and upgrades),
//!   except lockers that already waited for this locker when its wait began. Edges change under the
//!   lock of the table *and* the lock of the graph, before the locker that caused the change can
//!   begin to wait. So an edge that is briefly out of date points to a running locker, and is in no
//!   cycle.
//! - The graph decides the state of a wait, once: granted, victim, cancelled or timed out,
//!   whichever comes first.
//!
//! A mutex of the manager guards the graph. A locker that does not wait takes this mutex only in a
//! table that has waiters.

use std::collections::{BTreeMap, HashMap, HashSet};

use frondb_core::TreeId;
use frondb_core::clock::Nanos;
use frondb_core::sync::atomic::AtomicBool;
use frondb_core::sync::{Arc, Condvar};

use crate::class::LockMode;
use crate::key::Area;

/// The outcome of a wait.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum WaitState {
    Waiting,
    Granted,
    /// Chosen as the victim of a deadlock. Contains the cycle, beginning with the locker whose wait
    /// closed the cycle.
    Victim(Vec<u64>),
    Cancelled,
    TimedOut,
}

/// The part of a locker that other threads use. Created at the locker's first wait, or with its
/// first canceller.
#[derive(Default)]
pub(crate) struct Waker {
    /// Signals that the wait was decided, or got more blockers. Used with the graph's lock.
    pub(crate) changed: Condvar,
    /// Makes the next wait fail. Set under the graph's lock.
    pub(crate) cancelled: AtomicBool,
}

pub(crate) struct Wait {
    pub(crate) state: WaitState,
    /// Ids of the lockers for which this locker waits, ascending. Kept for messages after the wait
    /// is decided.
    pub(crate) blockers: Vec<u64>,
    /// Number of writes and locks of the locker. The victim of a deadlock is the locker with the
    /// fewest.
    pub(crate) work: u64,
    pub(crate) since: Nanos,
    pub(crate) waker: Arc<Waker>,
    /// The requested lock, for the status.
    pub(crate) tree: TreeId,
    pub(crate) wanted: Area,
    pub(crate) mode: LockMode,
    /// Whether there are blockers of which the wait hook was not notified.
    pub(crate) has_new_blockers: bool,
}

impl Wait {
    pub(crate) fn is_open(&self) -> bool {
        self.state == WaitState::Waiting
    }
}

#[derive(Default)]
pub(crate) struct Graph {
    waits: BTreeMap<u64, Wait>,
    /// For each locker, the number of lockers that wait for it.
    awaited: HashMap<u64, u32>,
}

impl Graph {
    pub(crate) fn get(&self, locker: u64) -> Option<&Wait> {
        self.waits.get(&locker)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.open_waits().count()
    }

    /// Returns the waits that are not decided yet, by locker.
    pub(crate) fn open_waits(&self) -> impl Iterator<Item = (u64, &Wait)> {
        self.waits.iter().filter(|(_, wait)| wait.is_open()).map(|(locker, wait)| (*locker, wait))
    }

    fn is_waiting(&self, locker: u64) -> bool {
        self.waits.get(&locker).is_some_and(Wait::is_open)
    }

    pub(crate) fn begin(&mut self, locker: u64, wait: Wait) {
        for blocker in &wait.blockers {
            *self.awaited.entry(*blocker).or_insert(0) += 1;
        }
        let before = self.waits.insert(locker, wait);
        assert!(before.is_none(), "transaction {locker} waits twice: two lockers have one id");
    }

    /// Decides a wait that is still open; returns `false` if the wait is not open. The edges of the
    /// wait no longer count, but its list of blockers is kept.
    pub(crate) fn decide(&mut self, locker: u64, state: WaitState) -> bool {
        let Some(wait) = self.waits.get_mut(&locker) else { return false };
        if wait.state != WaitState::Waiting {
            return false;
        }
        wait.state = state;
        wait.waker.changed.notify_all();
        for blocker in &wait.blockers {
            forget_edge(&mut self.awaited, *blocker);
        }
        true
    }

    /// Removes a decided wait.
    pub(crate) fn end(&mut self, locker: u64) -> Option<Wait> {
        self.waits.remove(&locker)
    }

    /// Adds an edge from the waiting `locker` to `blocker`.
    pub(crate) fn add_edge(&mut self, locker: u64, blocker: u64) {
        let Some(wait) = self.waits.get_mut(&locker) else { return };
        if wait.state != WaitState::Waiting {
            return;
        }
        if let Err(at) = wait.blockers.binary_search(&blocker) {
            wait.blockers.insert(at, blocker);
            wait.has_new_blockers = true;
            wait.waker.changed.notify_all();
            *self.awaited.entry(blocker).or_insert(0) += 1;
        }
    }

    /// Returns the blockers of `locker` and marks them as notified; `None` if the hook was already
    /// notified of all of them.
    pub(crate) fn take_new_blockers(&mut self, locker: u64) -> Option<Vec<u64>> {
        let wait = self.waits.get_mut(&locker)?;
        let is_new = std::mem::take(&mut wait.has_new_blockers);
        (is_new && wait.is_open()).then(|| wait.blockers.clone())
    }

    /// Removes the edge from `locker` to `blocker`. Returns whether `locker` waits for no locker
    /// any more.
    pub(crate) fn remove_edge(&mut self, locker: u64, blocker: u64) -> bool {
        let Some(wait) = self.waits.get_mut(&locker) else { return false };
        if wait.state != WaitState::Waiting {
            return false;
        }
        if let Ok(at) = wait.blockers.binary_search(&blocker) {
            wait.blockers.remove(at);
            forget_edge(&mut self.awaited, blocker);
        }
        wait.blockers.is_empty()
    }

    /// Whether `locker` waits and has an edge to `blocker`.
    pub(crate) fn has_edge(&self, locker: u64, blocker: u64) -> bool {
        let Some(wait) = self.waits.get(&locker) else { return false };
        wait.state == WaitState::Waiting && wait.blockers.binary_search(&blocker).is_ok()
    }

    /// Whether the waiting locker `from` waits for `to`, directly or through other waiting lockers.
    pub(crate) fn reaches(&self, from: u64, to: u64) -> bool {
        if !self.is_awaited(to) {
            return false;
        }
        let (mut seen, mut rest) = (HashSet::new(), vec![from]);
        while let Some(locker) = rest.pop() {
            let Some(wait) = self.waits.get(&locker).filter(|wait| wait.is_open()) else {
                continue;
            };
            if wait.blockers.binary_search(&to).is_ok() {
                return true;
            }
            rest.extend(wait.blockers.iter().filter(|blocker| seen.insert(**blocker)));
        }
        false
    }

    /// Whether any locker waits for `locker`.
    pub(crate) fn is_awaited(&self, locker: u64) -> bool {
        self.awaited.contains_key(&locker)
    }

    /// Returns the first cycle through `from`, beginning with `from`, found by a depth-first search
    /// that follows edges in the order of ids.
    pub(crate) fn find_cycle(&self, from: u64) -> Option<Vec<u64>> {
        if !self.is_awaited(from) {
            return None;
        }
        let mut seen = HashSet::new();
        let mut path = vec![(from, 0)];
        while let Some((locker, next)) = path.last_mut() {
            let Some(&to) = self.waits.get(locker).and_then(|wait| wait.blockers.get(*next)) else {
                path.pop();
                continue;
            };
            *next += 1;
            if to == from {
                return Some(path.into_iter().map(|(locker, _)| locker).collect());
            }
            if self.is_waiting(to) && seen.insert(to) {
                path.push((to, 0));
            }
        }
        None
    }

    /// Returns the member of a cycle that has done the least work; the youngest if several have
    /// done equally little.
    pub(crate) fn victim(&self, cycle: &[u64]) -> u64 {
        let work = |locker: &u64| self.waits.get(locker).map_or(u64::MAX, |wait| wait.work);
        let least = cycle.iter().min_by_key(|locker| (work(locker), std::cmp::Reverse(**locker)));
        least.copied().unwrap_or(u64::MAX)
    }
}

fn forget_edge(awaited: &mut HashMap<u64, u32>, blocker: u64) {
    if let Some(count) = awaited.get_mut(&blocker) {
        *count -= 1;
        if *count == 0 {
            awaited.remove(&blocker);
        }
    }
}
