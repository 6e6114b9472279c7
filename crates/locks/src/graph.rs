//! [`Graph`]: who waits for whom, over all trees, and the search for circles.
//!
//! A circle can close only when a wait begins: only then does somebody who waits get an arrow from
//! himself, and an arrow to somebody who runs closes nothing. So the search runs once for each
//! wait, from the one that begins, and only if somebody waits for him.
//!
//! Invariants
//! - A waiting locker has arrows to exactly those it waits for: who holds what conflicts, and who
//!   asked before and conflicts. They are changed under the lock of the tree's locks *and* that of
//!   the graph, before whoever caused the change can begin to wait. So an arrow that is out of date
//!   for a moment points to a locker that runs, and no circle goes through it.
//! - The state of a wait is decided here, once: granted, doomed, cancelled or given up, whatever
//!   comes first.
//!
//! Guarded by the one lock of the manager that is for waits; never touched by who does not wait
//! and does not let go of what others wait for.

use std::collections::{BTreeMap, HashMap, HashSet};

use frondb_core::TreeId;
use frondb_core::clock::Nanos;
use frondb_core::sync::atomic::AtomicBool;
use frondb_core::sync::{Arc, Condvar};

use crate::class::LockMode;
use crate::key::Area;

/// What has become of a wait.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum WaitState {
    Waiting,
    Granted,
    /// Chosen as the victim: the circle, beginning with the locker whose wait closed it.
    Victim(Vec<u64>),
    Cancelled,
    TimedOut,
}

/// What others need of a locker: made when it waits for the first time or a canceller is made.
#[derive(Default)]
pub(crate) struct Waker {
    /// Its wait was decided. Goes with the graph's lock.
    pub(crate) changed: Condvar,
    /// The next wait fails. Set under the graph's lock.
    pub(crate) cancelled: AtomicBool,
}

pub(crate) struct Wait {
    pub(crate) state: WaitState,
    /// Ids of those it waits for, ascending. Kept when it is no longer waiting, for messages.
    pub(crate) blockers: Vec<u64>,
    /// Writes and locks so far: the least goes.
    pub(crate) work: u64,
    pub(crate) since: Nanos,
    pub(crate) waker: Arc<Waker>,
    /// What it waits for, to be looked at.
    pub(crate) tree: TreeId,
    pub(crate) wanted: Area,
    pub(crate) mode: LockMode,
    /// It waits for somebody of whom the hook has not been told.
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
    /// How many waiting lockers wait for a locker.
    awaited: HashMap<u64, u32>,
}

impl Graph {
    pub(crate) fn get(&self, locker: u64) -> Option<&Wait> {
        self.waits.get(&locker)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.open_waits().count()
    }

    /// Those that are not decided, by locker.
    pub(crate) fn open_waits(&self) -> impl Iterator<Item = (u64, &Wait)> {
        self.waits.iter().filter(|(_, wait)| wait.is_open()).map(|(locker, wait)| (*locker, wait))
    }

    fn is_waiting(&self, locker: u64) -> bool {
        self.waits.get(&locker).is_some_and(Wait::is_open)
    }

    /// A locker begins to wait.
    pub(crate) fn begin(&mut self, locker: u64, wait: Wait) {
        for blocker in &wait.blockers {
            *self.awaited.entry(*blocker).or_insert(0) += 1;
        }
        let before = self.waits.insert(locker, wait);
        assert!(before.is_none(), "transaction {locker} waits twice: two lockers have one id");
    }

    /// Decides what becomes of a wait, if that is open. Its arrows go, its list of blockers stays.
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

    /// Forgets a wait that was decided.
    pub(crate) fn end(&mut self, locker: u64) -> Option<Wait> {
        self.waits.remove(&locker)
    }

    /// `locker`, which waits, waits for `blocker` too.
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

    /// Whom `locker` waits for, if the hook has not been told of all of them; from now on it has.
    pub(crate) fn take_new_blockers(&mut self, locker: u64) -> Option<Vec<u64>> {
        let wait = self.waits.get_mut(&locker)?;
        let is_new = std::mem::take(&mut wait.has_new_blockers);
        (is_new && wait.is_open()).then(|| wait.blockers.clone())
    }

    /// `locker` does not wait for `blocker` any more. Returns whether it waits for nobody now.
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

    /// Whether `locker` waits, for `blocker` among others.
    pub(crate) fn has_edge(&self, locker: u64, blocker: u64) -> bool {
        let Some(wait) = self.waits.get(&locker) else { return false };
        wait.state == WaitState::Waiting && wait.blockers.binary_search(&blocker).is_ok()
    }

    /// Whether anybody waits for `locker`.
    pub(crate) fn is_awaited(&self, locker: u64) -> bool {
        self.awaited.contains_key(&locker)
    }

    /// A circle through `from`, beginning with it: the first of a search in the order of ids.
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

    /// Who in a circle has done the least: the youngest if several have.
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
