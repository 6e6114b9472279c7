//! The memory of locks: charged to the budget in steps, and bounded by making ranges of rows.
//!
//! ```text
//!   own:      r1 r2 r3    r5  r6 [r7, r9)      another's: r4
//!   becomes:  [r1 ... r3] [r5 ......... r9)    r4 lies between, so two ranges
//! ```
//!
//! A range that replaces locks covers all of them and more: the keys between. It may do so where
//! nobody else has a lock that conflicts, or waits for one that he would otherwise get. Locks are
//! never given up for want of memory, and no request fails for it: where others' locks lie between
//! all rows, the rows stay, and the next attempt comes when there are twice as many.

use crate::class::{Class, LockMode};
use crate::graph::Graph;
use crate::key::{Area, Hi, Key, cmp_ends};
use crate::locker::{Held, Locker};
use crate::manager::{Counters, LockManager};
use crate::table::{Ask, State};
use frondb_core::budget::Part;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;

/// Bytes of a row lock of a short key: twice the key, an entry of a B-tree at usual fill, and a
/// place in a list that grows by doubling.
pub(crate) const ROW_BYTES: u64 = 184;
/// Bytes of a range lock: an entry in the locker's map and a node of the table's treap.
pub(crate) const RANGE_BYTES: u64 = 352;

/// What a locker may have uncharged, and the least it charges at once.
const STEP_BYTES: u64 = 4096;

/// Locks that are looked at under one hold of a table's lock.
const JOIN_LOCKS: usize = 256;

/// A transaction alone has this part of all the memory for locks.
const SHARE: u64 = 4;

impl Held {
    pub(crate) fn bytes(&self) -> u64 {
        self.rows.len() as u64 * ROW_BYTES + self.key_bytes + self.ranges.len() as u64 * RANGE_BYTES
    }
}

impl Held {
    fn locks(&self) -> u64 {
        (self.rows.len().saturating_sub(self.stale) + self.ranges.len()) as u64
    }
}

impl Locker {
    /// Charges what has changed, in steps; makes ranges of rows when it has come to be too much.
    #[inline]
    pub(crate) fn charge(&mut self) {
        if let Some(held) = self.tables.get_mut(self.last) {
            let (bytes, locks) = (held.bytes(), held.locks());
            self.bytes = self.bytes - held.counted.0 + bytes;
            self.locks = self.locks - held.counted.1 + locks;
            held.counted = (bytes, locks);
        }
        let charged = self.charged.as_ref().map_or(0, |charged| charged.bytes());
        let grown = self.bytes > charged + STEP_BYTES;
        if grown || (charged > 0 && self.bytes < charged / 2) {
            self.charge_step(charged, grown);
        }
    }

    #[cold]
    fn charge_step(&mut self, charged: u64, grown: bool) {
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
        if grown && self.has_too_much() {
            self.escalate();
        }
    }

    fn has_too_much(&self) -> bool {
        let max = self.manager.bytes_max.load(Ordering::Relaxed);
        let all = self.manager.counters.bytes.load(Ordering::Relaxed);
        // Who has next to nothing need not pay for what others have.
        let share = if all > max { max / SHARE / 16 } else { max / SHARE };
        self.bytes > share.max(self.escalate_at)
    }

    /// Makes ranges of the locks in the table where most are.
    fn escalate(&mut self) {
        let tables = self.tables.iter_mut().enumerate();
        let Some((at, held)) = tables.max_by_key(|(_, held)| held.bytes()) else { return };
        let before = held.bytes();
        Counters::add(&self.manager.counters.escalations, 1);
        held.join_neighbours(self.id, &self.manager, false);
        if held.bytes() > before / 2 {
            held.join_neighbours(self.id, &self.manager, true);
        }
        self.last = at;
        // The recursion ends here: bytes only shrink by this.
        self.escalate_at = u64::MAX;
        self.charge();
        self.escalate_at = self.bytes * 2;
    }
}

/// Neighbouring locks that become one range.
struct Group {
    lo: Key,
    hi: Hi,
    /// What the range will be: shared or exclusive.
    class: Class,
    /// Whether it is that, in effect, already.
    exact: bool,
    rows: Vec<Key>,
    /// Locks in it.
    locks: usize,
}

impl Group {
    fn of_row(key: Key, mode: LockMode) -> Self {
        let hi = Some(key.successor());
        let class = Class::range(mode);
        Self { lo: key.clone(), hi, class, exact: true, rows: vec![key], locks: 1 }
    }

    fn of_range(lo: Key, hi: Hi, held: Class) -> Self {
        let class = Class::range(held.mode());
        Self { lo, hi, class, exact: held == class, rows: Vec::new(), locks: 1 }
    }

    /// Whether it locks all its keys in `class` already.
    fn is(&self, class: Class) -> bool {
        self.exact && self.class == class
    }

    /// The keys that a range over both would newly cover, or cover in a stronger class.
    fn new_area(&self, next: &Self) -> Area {
        let class = self.class.max(next.class);
        let mut to = if next.is(class) { Some(next.lo.clone()) } else { next.hi.clone() };
        if !self.is(class) {
            // A range may reach beyond what comes next.
            if cmp_ends(&self.hi, &to).is_gt() {
                to.clone_from(&self.hi);
            }
            return Area::range(self.lo.clone(), to, class);
        }
        match &self.hi {
            Some(from) => Area::range(from.clone(), to, class),
            // It reaches to the end of all keys.
            None => Area::range(next.lo.clone(), Some(next.lo.clone()), class),
        }
    }

    fn join(&mut self, next: Self) {
        self.class = self.class.max(next.class);
        if cmp_ends(&next.hi, &self.hi).is_gt() {
            self.hi = next.hi;
        }
        self.exact = true;
        self.rows.extend(next.rows);
        self.locks += next.locks;
    }
}

/// A lock as it is looked for, before the table's lock is taken.
enum Found {
    Row(Key),
    Range(Key, Hi, Class),
}

impl Found {
    fn lo(&self) -> &Key {
        match self {
            Self::Row(key) | Self::Range(key, ..) => key,
        }
    }
}

impl Held {
    /// Makes ranges of neighbours; of shared and exclusive ones together if `mix` says so.
    fn join_neighbours(&mut self, locker: u64, manager: &LockManager, mix: bool) {
        let found = self.take_all();
        let table = Arc::clone(&self.table);
        let mut open: Option<Group> = None;
        let mut found = found.into_iter().peekable();
        while found.peek().is_some() {
            let mut state = table.state.lock();
            let interests = interests(&state, locker, manager);
            for next in found.by_ref().take(JOIN_LOCKS) {
                let next = match next {
                    Found::Range(lo, hi, class) => Group::of_range(lo, hi, class),
                    Found::Row(key) => match state.holds_row(locker, &key) {
                        Some(mode) => Group::of_row(key, mode),
                        None => continue,
                    },
                };
                match &mut open {
                    Some(group) if may_join(group, &next, &state, locker, &interests, mix) => {
                        group.join(next);
                    }
                    _ => {
                        if let Some(group) = open.replace(next) {
                            let closed = self.close(group, locker, &mut state);
                            self.keep_rows(closed.rows);
                        }
                    }
                }
            }
            // What is done so far takes effect before others get at the table.
            if let Some(group) = open.take() {
                open = Some(self.close(group, locker, &mut state));
            }
        }
        if let Some(group) = open {
            self.keep_rows(group.rows);
        }
    }

    /// All locks in order. Rows leave the list, ranges stay.
    fn take_all(&mut self) -> Vec<Found> {
        self.stale = 0;
        self.key_bytes = 0;
        let mut rows = std::mem::take(&mut self.rows).into_vec();
        rows.sort_unstable();
        rows.dedup();
        let ranges = self.ranges.iter();
        let ranges = ranges.map(|(lo, own)| Found::Range(lo.clone(), own.hi.clone(), own.class));
        let mut found: Vec<Found> = ranges.chain(rows.into_iter().map(Found::Row)).collect();
        found.sort_by(|a, b| a.lo().cmp(b.lo()));
        found
    }

    /// Enters a group into the table; returns it as the one lock that it is now. A single row
    /// stays a row, and is in the returned group.
    fn close(&mut self, group: Group, locker: u64, state: &mut State) -> Group {
        if group.locks == 1 {
            return group;
        }
        let Group { lo, hi, class, rows, .. } = group;
        self.add_range(locker, state, lo.clone(), hi.clone(), class);
        for row in rows {
            state.release_row(locker, &row);
        }
        Group::of_range(lo, hi, class)
    }

    fn keep_rows(&mut self, rows: Vec<Key>) {
        for row in rows {
            self.add_row(row);
        }
    }
}

/// What others wait for, and would get if this locker took no more than it has.
fn interests(state: &State, locker: u64, manager: &LockManager) -> Vec<Area> {
    if state.waiters.is_empty() {
        return Vec::new();
    }
    let graph: &Graph = &manager.graph.lock();
    let others = state.waiters.iter().filter(|waiter| !graph.has_arrow(waiter.locker, locker));
    let asks = others.flat_map(|waiter: &crate::table::Waiter| &waiter.asks);
    asks.map(|ask: &Ask| ask.area.clone()).collect()
}

fn may_join(
    group: &Group,
    next: &Group,
    state: &State,
    locker: u64,
    interests: &[Area],
    mix: bool,
) -> bool {
    if group.class != next.class && !mix {
        return false;
    }
    let area = group.new_area(next);
    area.is_empty()
        || (state.holders_against(locker, &area, &mut |_| false)
            && !interests.iter().any(|interest| interest.conflicts(&area)))
}
