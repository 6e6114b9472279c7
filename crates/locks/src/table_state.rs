//! [`TableState`]: the locks of one tree, and the requests that wait for them.
//!
//! ```text
//!   rows     ordered map: key --> mode, holders        a write or a point read: one entry
//!   packs    of one locker and mode: keys in order     rows of a locker with very many
//!   ranges   treap: [lo, hi) --> class, holder         scans, gaps, range deletes, escalation
//!   waiters  in order of arrival                       examined only if there are any
//! ```
//!
//! A request is granted if no row, pack, range or earlier waiter of another locker conflicts with
//! it. Waiters that themselves wait for the requesting locker do not count.
//!
//! All functions here run under the single lock of the table, which is held for a few map
//! operations. A thread that holds it waits only for the locks of the graph and of the last
//! deadlock, and allocates little. LOCK order: see `manager.rs`.

use std::collections::BTreeMap;
use std::ops::Bound;

use frondb_core::sync::{Arc, Mutex};
use smallvec::SmallVec;

use crate::class::{Class, LockMode};
use crate::graph::{Graph, WaitState};
use crate::key::{Area, Extent, Key};
use crate::packed::Packed;
use crate::queue::{Request, RequestPart, Waiter};
use crate::ranges::{Range, Ranges};

/// Bytes of a row lock of a short key: the key twice, an entry of a B-tree at its usual fill, and a
/// slot in a list that grows by doubling.
pub(crate) const ROW_BYTES: u64 = 184;
/// Bytes of a range lock of short keys: an entry in the locker's map and a node of the table's
/// treap.
pub(crate) const RANGE_BYTES: u64 = 352;

/// The holders of a row.
pub(crate) struct Row {
    pub(crate) mode: LockMode,
    /// Whether the exclusive holder locked the row in shared mode before.
    /// [`Locker::unlock_row`](crate::Locker::unlock_row) leaves such a row locked, because an
    /// earlier statement relies on it.
    pub(crate) upgraded: bool,
    pub(crate) holders: SmallVec<[u64; 2]>,
}

impl Row {
    fn new(locker: u64, mode: LockMode) -> Self {
        Self { mode, upgraded: false, holders: SmallVec::from_slice(&[locker]) }
    }

    pub(crate) fn is_held_by(&self, locker: u64) -> bool {
        self.holders.contains(&locker)
    }

    fn grant(&mut self, locker: u64, mode: LockMode) {
        let held = self.is_held_by(locker);
        if mode == LockMode::Exclusive {
            debug_assert!(
                self.holders.len() == usize::from(held),
                "an exclusive lock has one holder"
            );
            self.upgraded = held && self.mode == LockMode::Shared;
            self.mode = mode;
        }
        if !held {
            self.holders.push(locker);
        }
    }
}

/// Rows of one locker and one mode, in a few bytes each. A row of a shared pack is also in `rows`
/// for the same locker if it was upgraded to exclusive after it was packed.
#[derive(Clone)]
pub(crate) struct Pack {
    pub(crate) locker: u64,
    pub(crate) mode: LockMode,
    pub(crate) keys: Arc<Packed>,
}

impl Pack {
    /// Whether one of the rows of the pack lies in the area.
    fn meets(&self, area: &Area) -> bool {
        let lo = area.lo.as_slice();
        match &area.extent {
            Extent::Row => self.keys.contains(lo),
            Extent::To(hi) => {
                !area.is_empty() && self.keys.any_in(lo, hi.as_ref().map(Key::as_slice))
            }
        }
    }
}

/// Returns the mode in which a locker holds a row by its packs.
fn packed_mode(packs: &[Pack], locker: u64, key: &Key) -> Option<LockMode> {
    let own = packs.iter().filter(|pack| pack.locker == locker);
    own.filter(|pack| pack.keys.contains(key.as_slice())).map(|pack| pack.mode).max()
}

/// The outcome of an attempt to lock a row without examining ranges, waiters and packs of others.
pub(crate) enum RowAttempt {
    /// The locker already held the row.
    Held,
    New,
    Upgraded,
    /// The row and the locker's own packs do not decide the request.
    Unclear,
}

/// The locks of a tree. See the module documentation.
#[derive(Default)]
pub(crate) struct TableState {
    pub(crate) rows: BTreeMap<Key, Row>,
    pub(crate) packs: Vec<Pack>,
    pub(crate) ranges: Ranges,
    pub(crate) waiters: Vec<Waiter>,
    pub(crate) next_entry: u64,
}

impl TableState {
    /// Whether there are no locks and no requests.
    pub(crate) fn is_unused(&self) -> bool {
        let Self { rows, packs, ranges, waiters, next_entry: _ } = self;
        rows.is_empty() && packs.is_empty() && ranges.is_empty() && waiters.is_empty()
    }

    /// Locks a row if the row and the locker's own packs decide the request.
    pub(crate) fn try_row(&mut self, locker: u64, key: &Key, mode: LockMode) -> RowAttempt {
        use std::collections::btree_map::Entry;
        let others_pack = self.packs.iter().any(|pack| pack.locker != locker);
        let quiet = self.ranges.is_empty() && self.waiters.is_empty() && !others_pack;
        match self.rows.entry(key.clone()) {
            Entry::Vacant(row) if quiet => {
                // All packs of the table are the locker's own here. Examine them now, because a
                // large statement packs its rows early.
                match packed_mode(&self.packs, locker, key) {
                    Some(held) if held >= mode => return RowAttempt::Held,
                    Some(_) => return RowAttempt::Unclear,
                    None => row.insert(Row::new(locker, mode)),
                };
                RowAttempt::New
            }
            Entry::Vacant(_) => RowAttempt::Unclear,
            Entry::Occupied(row) => {
                let row = row.into_mut();
                match (row.is_held_by(locker), mode) {
                    (true, mode) if row.mode >= mode => RowAttempt::Held,
                    (true, _) if quiet && row.holders.len() == 1 => {
                        row.grant(locker, mode);
                        RowAttempt::Upgraded
                    }
                    (false, LockMode::Shared) if quiet && row.mode == LockMode::Shared => {
                        // If the locker has packed the row, this is not a new lock.
                        match packed_mode(&self.packs, locker, key) {
                            Some(_) => RowAttempt::Held,
                            None => {
                                row.grant(locker, mode);
                                RowAttempt::New
                            }
                        }
                    }
                    _ => RowAttempt::Unclear,
                }
            }
        }
    }

    pub(crate) fn holds_row(&self, locker: u64, key: &Key) -> Option<LockMode> {
        self.lists_row(locker, key).max(packed_mode(&self.packs, locker, key))
    }

    /// Returns the mode in which the locker holds a row by an entry in `rows`. The locker has the
    /// keys of such entries in its list, and releases them one by one.
    pub(crate) fn lists_row(&self, locker: u64, key: &Key) -> Option<LockMode> {
        self.rows.get(key).filter(|row| row.is_held_by(locker)).map(|row| row.mode)
    }

    /// Grants a row to a locker. REQUIRES: no lock of another locker conflicts with this.
    pub(crate) fn grant_row(&mut self, locker: u64, key: &Key, mode: LockMode) {
        match self.rows.get_mut(key) {
            Some(row) => row.grant(locker, mode),
            None => {
                let upgraded = packed_mode(&self.packs, locker, key).is_some();
                let row = Row { upgraded, ..Row::new(locker, mode) };
                self.rows.insert(key.clone(), row);
            }
        }
    }

    /// Releases a row of a locker. Returns whether the locker held it by an entry in `rows`.
    pub(crate) fn release_row(&mut self, locker: u64, key: &Key) -> bool {
        use std::collections::btree_map::Entry;
        let Entry::Occupied(mut row) = self.rows.entry(key.clone()) else { return false };
        let Some(at) = row.get().holders.iter().position(|holder| *holder == locker) else {
            return false;
        };
        if row.get().holders.len() == 1 {
            row.remove();
        } else {
            row.get_mut().holders.swap_remove(at);
        }
        true
    }

    /// Turns a locker's exclusive lock of a row into a shared lock. Returns whether there was one.
    pub(crate) fn share_row(&mut self, locker: u64, key: &Key) -> bool {
        match self.rows.get_mut(key) {
            Some(row) if row.mode == LockMode::Exclusive && row.is_held_by(locker) => {
                (row.mode, row.upgraded) = (LockMode::Shared, false);
                true
            }
            _ => false,
        }
    }

    /// Calls `found` with the holder of each lock of another locker that conflicts with `area`,
    /// until `found` returns `false`. May report a holder more than once. Returns `true` if `found`
    /// never returned `false`.
    pub(crate) fn holders_against(
        &self,
        locker: u64,
        area: &Area,
        found: &mut dyn FnMut(u64) -> bool,
    ) -> bool {
        let mut of_others = |holder: u64| holder == locker || found(holder);
        let mut look = |row: &Row| {
            !area.class.conflicts(Class::row(row.mode)) || row.holders.iter().all(|h| of_others(*h))
        };
        let free = match &area.extent {
            Extent::Row => self.rows.get(&area.lo).is_none_or(&mut look),
            Extent::To(hi) if !area.is_empty() && !self.rows.is_empty() => {
                let hi = hi.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
                self.rows.range((Bound::Included(&area.lo), hi)).all(|(_, row)| look(row))
            }
            Extent::To(_) => true,
        };
        let packs = self.packs.iter().filter(|pack| area.class.conflicts(Class::row(pack.mode)));
        let free = free
            && packs
                .filter(|pack| pack.locker != locker && pack.meets(area))
                .all(|pack| of_others(pack.locker));
        free && (self.ranges.is_empty()
            || self
                .ranges
                .overlapping(area, area.class.excludes(), &mut |range| of_others(range.locker)))
    }

    /// Returns the ids of the lockers for which a new request has to wait, ascending.
    ///
    /// A waiter that itself waits for `locker`, directly or through others, does not count: waiting
    /// for it would be a deadlock. If such a waiter is nevertheless granted first, because a locker
    /// between the two has given up, the waiter becomes a holder, and `locker` waits for it.
    pub(crate) fn blockers(
        &self,
        locker: u64,
        parts: &[RequestPart],
        graph: &Mutex<Graph>,
    ) -> Vec<u64> {
        let mut blockers = Vec::new();
        for ask in parts {
            self.holders_against(locker, &ask.area, &mut |holder| {
                // The same holder is often reported many times in a row.
                if blockers.last() != Some(&holder) {
                    blockers.push(holder);
                }
                true
            });
        }
        let earlier = |waiter: &&Waiter| waiter.locker != locker && waiter.holds_back(parts);
        let mut earlier = self.waiters.iter().filter(earlier).peekable();
        if earlier.peek().is_some() {
            let graph = graph.lock();
            let earlier = earlier.filter(|waiter| !graph.reaches(waiter.locker, locker));
            blockers.extend(earlier.map(|waiter| waiter.locker));
        }
        blockers.sort_unstable();
        blockers.dedup();
        blockers
    }

    /// Whether `locker` holds a lock for which `waiter` waits. If so, a request of `locker` goes
    /// before the waiter (see [`blockers`](Self::blockers)).
    fn holds_against(&self, locker: u64, waiter: &Waiter) -> bool {
        waiter.parts.iter().any(|ask| {
            !self.holders_against(waiter.locker, &ask.area, &mut |holder| holder != locker)
        })
    }

    /// Puts a request into the queue. Waiters that the request overtakes now wait for it, too.
    pub(crate) fn enqueue(&mut self, waiter: Waiter, graph: &mut Graph) {
        for other in &self.waiters {
            if other.locker != waiter.locker
                && other.yields_to(&waiter.parts)
                && !self.holds_against(other.locker, &waiter)
            {
                graph.add_edge(other.locker, waiter.locker);
            }
        }
        self.waiters.push(waiter);
    }

    pub(crate) fn dequeue(&mut self, locker: u64) {
        self.waiters.retain(|waiter| waiter.locker != locker);
    }

    /// Records that `locker` has been granted `held`: waiters whose requests conflict with this
    /// lock now wait for `locker`, too.
    pub(crate) fn add_edges_to_holder(&self, locker: u64, held: &Area, graph: &mut Graph) {
        for waiter in self.waiters.iter().filter(|waiter| waiter.locker != locker) {
            if waiter.parts.iter().any(|ask| ask.area.conflicts(held)) {
                graph.add_edge(waiter.locker, locker);
            }
        }
    }

    /// Grants the requests that no longer wait for any locker, in the order of the queue, after
    /// `locker` has released locks or left the queue. `has_more` says whether `locker` may still
    /// hold locks here or be in the queue.
    ///
    /// A granted step of a scan excludes less than the request did: the row of the request excludes
    /// gaps, the scanned range does not. So the requests that waited for the step are examined
    /// again.
    pub(crate) fn grant_waiters(&mut self, locker: u64, has_more: bool, graph: &mut Graph) {
        let mut let_go = SmallVec::<[(u64, bool); 4]>::from_slice(&[(locker, has_more)]);
        let mut at = 0;
        while let Some(waiter) = self.waiters.get(at) {
            let free = let_go.iter().fold(false, |free, (locker, has_more)| {
                let passes = graph.has_edge(waiter.locker, *locker)
                    && !(*has_more && self.still_blocks(*locker, waiter));
                free | (passes && graph.remove_edge(waiter.locker, *locker))
            });
            if !free || !graph.decide(waiter.locker, WaitState::Granted) {
                at += 1;
                continue;
            }
            let waiter = self.waiters.remove(at);
            if matches!(waiter.want, Request::Step { .. }) {
                let_go.push((waiter.locker, true));
                at = 0;
            }
            self.grant(waiter, graph);
        }
    }

    fn still_blocks(&self, locker: u64, waiter: &Waiter) -> bool {
        let goes_before = |other: &Waiter| {
            let is_earlier = other.entry < waiter.entry;
            match is_earlier {
                true => other.holds_back(&waiter.parts),
                false => waiter.yields_to(&other.parts),
            }
        };
        self.holds_against(locker, waiter)
            || self.waiters.iter().any(|other| {
                other.locker == locker
                    && goes_before(other)
                    && !self.holds_against(waiter.locker, other)
            })
    }

    /// Grants a waiter its request. When the waiter wakes, its own thread merges a granted range
    /// with the other ranges of the locker.
    fn grant(&mut self, waiter: Waiter, graph: &mut Graph) {
        let held = waiter.want.held();
        match &held.extent {
            Extent::Row => self.grant_row(waiter.locker, &held.lo, held.class.mode()),
            Extent::To(hi) => self.ranges.insert(Range {
                lo: held.lo.clone(),
                hi: hi.clone(),
                class: held.class,
                locker: waiter.locker,
                entry: waiter.entry,
            }),
        }
        self.add_edges_to_holder(waiter.locker, &held, graph);
    }
}
