//! The memory of locks: charged to the budget in steps, and bounded in two steps.
//!
//! ```text
//!   own:      r1 r2 r3    r5  r6 [r7, r9)      another's: r4
//!   packed:   r1 r2 r3    r5  r6 in a few bytes each, and [r7, r9): locks what it locked before
//!   joined:   [r1 ... r3] [r5 ......... r9)    r4 lies between, so two ranges
//! ```
//!
//! First the rows are packed (`packed.rs`), to about a thirtieth of what they take in the table.
//! Only when that no longer helps are neighbours joined (lock escalation). A range that replaces
//! locks covers all of them and also the keys between. It may do so only where no other transaction
//! has a conflicting lock, or waits for one that it would otherwise get. Memory pressure never
//! makes a transaction lose a lock, and no request fails for it: where other transactions' locks
//! lie between all rows, the rows stay, and the next attempt comes when there are twice as many.

use crate::class::{Class, LockMode};
use crate::graph::Graph;
use crate::held::Held;
use crate::key::{Area, Key, UpperBound, cmp_ends};
use crate::locker::Locker;
use crate::manager::{Counters, LockManager};
use crate::packed::{Keys, Packed};
use crate::queue::{RequestPart, Waiter};
use crate::table::{Pack, RANGE_BYTES, ROW_BYTES, TableState};
use frondb_core::budget::Part;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;

/// Bytes that a locker may have uncharged, and the least it charges at once.
const STEP_BYTES: u64 = 4096;

/// Locks that are examined under one hold of a table's lock.
const JOIN_LOCKS: usize = 256;

/// One transaction may use this fraction of the memory for all locks.
const SHARE: u64 = 4;

impl Held {
    pub(crate) fn bytes(&self) -> u64 {
        let ranges = self.ranges.len() as u64 * RANGE_BYTES;
        self.rows.len() as u64 * ROW_BYTES + self.key_bytes + self.packed.1 + ranges
    }
}

impl Held {
    fn locks(&self) -> u64 {
        (self.rows.len().saturating_sub(self.stale) + self.ranges.len()) as u64 + self.packed.0
    }
}

impl Locker {
    /// Charges changes of the locker's memory in steps. Packs and joins locks when they take too
    /// much.
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
        // A locker with very little need not pay for what others have.
        let share = if all > max { max / SHARE / 16 } else { max / SHARE };
        self.bytes > share.max(self.escalate_at)
    }

    /// Packs the rows in the table with the most lock memory; joins them into ranges if that does
    /// not suffice.
    fn escalate(&mut self) {
        let tables = self.tables.iter_mut().enumerate();
        let Some((at, held)) = tables.max_by_key(|(_, held)| held.bytes()) else { return };
        let before = held.bytes();
        held.pack_rows(self.id);
        for mix in [false, true] {
            if held.bytes() > before / 2 {
                Counters::add(&self.manager.counters.escalations, u64::from(!mix));
                held.join_neighbours(self.id, &self.manager, mix);
            }
        }
        self.last = at;
        // The nested call does not escalate again: escalation only reduces the bytes.
        self.escalate_at = u64::MAX;
        self.charge();
        self.escalate_at = self.bytes * 2;
    }
}

/// Neighbouring locks that become one range.
struct LockGroup {
    lo: Key,
    hi: UpperBound,
    /// The class of the range: shared or exclusive.
    class: Class,
    /// Whether the group already has the effect of such a range.
    exact: bool,
    rows: Vec<Key>,
    /// The group is a single row of a pack.
    is_packed: bool,
    /// Number of locks in the group.
    locks: usize,
}

impl LockGroup {
    fn of_row(key: Key, mode: LockMode) -> Self {
        let hi = Some(key.successor());
        let class = Class::range(mode);
        let (rows, is_packed) = (vec![key.clone()], false);
        Self { lo: key, hi, class, exact: true, rows, is_packed, locks: 1 }
    }

    fn of_packed(key: Key, mode: LockMode) -> Self {
        Self { rows: Vec::new(), is_packed: true, ..Self::of_row(key, mode) }
    }

    fn of_range(lo: Key, hi: UpperBound, held: Class) -> Self {
        let class = Class::range(held.mode());
        let (rows, is_packed) = (Vec::new(), false);
        Self { lo, hi, class, exact: held == class, rows, is_packed, locks: 1 }
    }

    /// Whether the group already locks all its keys in `class`.
    fn is(&self, class: Class) -> bool {
        self.exact && self.class == class
    }

    /// The keys that a range over both groups would newly cover, or cover in a stronger class.
    fn new_area(&self, next: &Self) -> Area {
        let class = self.class.max(next.class);
        let mut to = if next.is(class) { Some(next.lo.clone()) } else { next.hi.clone() };
        if !self.is(class) {
            // A range may reach beyond the next group.
            if cmp_ends(&self.hi, &to).is_gt() {
                to.clone_from(&self.hi);
            }
            return Area::range(self.lo.clone(), to, class);
        }
        match &self.hi {
            Some(from) => Area::range(from.clone(), to, class),
            // The range reaches to the end of all keys.
            None => Area::range(next.lo.clone(), Some(next.lo.clone()), class),
        }
    }

    fn join(&mut self, next: Self) {
        self.class = self.class.max(next.class);
        if cmp_ends(&next.hi, &self.hi).is_gt() {
            self.hi = next.hi;
        }
        self.exact = true;
        self.is_packed = false;
        self.rows.extend(next.rows);
        self.locks += next.locks;
    }
}

/// A lock as collected before the table's lock is taken.
enum HeldLock {
    Row(Key),
    Packed(Key, LockMode),
    Range(Key, UpperBound, Class),
}

impl HeldLock {
    fn lo(&self) -> &Key {
        match self {
            Self::Row(key) | Self::Packed(key, _) | Self::Range(key, ..) => key,
        }
    }
}

/// Packs under construction, separated by mode.
#[derive(Default)]
struct PackBuilder {
    shared: Vec<Packed>,
    exclusive: Vec<Packed>,
}

impl PackBuilder {
    /// Adds a row after all others of its mode.
    fn push(&mut self, key: &[u8], mode: LockMode) {
        let packs = match mode {
            LockMode::Shared => &mut self.shared,
            LockMode::Exclusive => &mut self.exclusive,
        };
        if !packs.last_mut().is_some_and(|pack| pack.push(key)) {
            let mut pack = Packed::default();
            // A key is far shorter than a pack may be.
            let _ = pack.push(key);
            packs.push(pack);
        }
    }

    fn packs(self, locker: u64) -> impl Iterator<Item = Pack> {
        let of = move |packs: Vec<Packed>, mode| {
            packs.into_iter().map(move |mut keys| {
                keys.shrink();
                Pack { locker, mode, keys: Arc::new(keys) }
            })
        };
        of(self.shared, LockMode::Shared).chain(of(self.exclusive, LockMode::Exclusive))
    }
}

/// Merges the keys of several packs into one order.
struct MergedPacks<'a> {
    sources: Vec<(Keys<'a>, LockMode, Option<Key>)>,
}

impl<'a> MergedPacks<'a> {
    fn of(packs: &'a [Pack]) -> Self {
        let begin = |pack: &'a Pack| {
            let mut keys = pack.keys.keys();
            let first = keys.next_key().map(Key::new);
            (keys, pack.mode, first)
        };
        Self { sources: packs.iter().map(begin).collect() }
    }

    fn peek(&self) -> Option<&Key> {
        self.sources.iter().filter_map(|source| source.2.as_ref()).min()
    }

    fn next(&mut self) -> Option<(Key, LockMode)> {
        let some = self.sources.iter_mut().filter(|source| source.2.is_some());
        let (keys, mode, first) = some.min_by(|a, b| a.2.cmp(&b.2))?;
        let next = keys.next_key().map(Key::new);
        Some((std::mem::replace(first, next)?, *mode))
    }
}

/// The locks of one locker, ordered by their first keys.
struct LockStream<'a> {
    found: std::iter::Peekable<std::vec::IntoIter<HeldLock>>,
    packed: MergedPacks<'a>,
}

impl LockStream<'_> {
    fn is_empty(&mut self) -> bool {
        self.found.peek().is_none() && self.packed.peek().is_none()
    }

    fn next(&mut self) -> Option<HeldLock> {
        let packed_first = match (self.packed.peek(), self.found.peek()) {
            (Some(packed), Some(found)) => packed < found.lo(),
            (packed, _) => packed.is_some(),
        };
        if packed_first {
            return self.packed.next().map(|(key, mode)| HeldLock::Packed(key, mode));
        }
        self.found.next()
    }
}

impl Held {
    /// Packs all rows: they lock what they locked before, in a few bytes each.
    fn pack_rows(&mut self, locker: u64) {
        let table = Arc::clone(&self.table);
        let rows = self.take_rows();
        let mut fresh = PackBuilder::default();
        for some in rows.chunks(JOIN_LOCKS) {
            let state = table.state.lock();
            for key in some {
                if let Some(mode) = state.lists_row(locker, key) {
                    fresh.push(key.as_slice(), mode);
                }
            }
        }
        let fresh: Vec<Pack> = fresh.packs(locker).collect();
        let (mut packs, own) = (Vec::new(), self.own_packs(locker));
        for mode in [LockMode::Shared, LockMode::Exclusive] {
            let of_mode = |pack: &&Pack| pack.mode == mode;
            let mut merged: Vec<Pack> = fresh.iter().filter(of_mode).cloned().collect();
            let mut sum: usize = merged.iter().map(|pack| pack.keys.len()).sum();
            let mut own: Vec<&Pack> = own.iter().filter(of_mode).collect();
            own.sort_by_key(|pack| pack.keys.len());
            for pack in own {
                // Packs of similar size are merged into one: each row is copied a few times, and
                // packs stay few.
                if pack.keys.len() <= 2 * sum {
                    sum += pack.keys.len();
                    merged.push(pack.clone());
                } else {
                    packs.push(pack.clone());
                }
            }
            packs.extend(merge(locker, merged));
        }
        self.replace_packs(locker, packs);
        for some in rows.chunks(JOIN_LOCKS) {
            let mut state = table.state.lock();
            for key in some {
                state.release_row(locker, key);
            }
        }
    }

    /// Joins neighbouring locks into ranges; with `mix`, shared and exclusive ones together.
    fn join_neighbours(&mut self, locker: u64, manager: &LockManager, mix: bool) {
        let own = self.own_packs(locker);
        let mut stream = LockStream {
            found: self.take_all().into_iter().peekable(),
            packed: MergedPacks::of(&own),
        };
        let table = Arc::clone(&self.table);
        let (mut open, mut alone): (Option<LockGroup>, _) = (None, PackBuilder::default());
        while !stream.is_empty() {
            let mut state = table.state.lock();
            let interests = interests(&state, locker, manager);
            for _ in 0..JOIN_LOCKS {
                let next = match stream.next() {
                    None => break,
                    Some(HeldLock::Range(lo, hi, class)) => LockGroup::of_range(lo, hi, class),
                    Some(HeldLock::Packed(key, mode)) => LockGroup::of_packed(key, mode),
                    Some(HeldLock::Row(key)) => match state.lists_row(locker, &key) {
                        Some(mode) => LockGroup::of_row(key, mode),
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
                            self.keep_alone(closed, &mut alone);
                        }
                    }
                }
            }
            // The work so far takes effect before other threads get at the table.
            if let Some(group) = open.take() {
                open = Some(self.close(group, locker, &mut state));
            }
        }
        if let Some(group) = open {
            self.keep_alone(group, &mut alone);
        }
        // Rows that became part of ranges need no pack any more.
        self.replace_packs(locker, alone.packs(locker).collect());
    }

    fn own_packs(&self, locker: u64) -> Vec<Pack> {
        if self.packed.0 == 0 {
            return Vec::new();
        }
        let state = self.table.state.lock();
        state.packs.iter().filter(|pack| pack.locker == locker).cloned().collect()
    }

    fn replace_packs(&mut self, locker: u64, packs: Vec<Pack>) {
        let sum = |of: fn(&Packed) -> u64| packs.iter().map(|pack| of(&pack.keys)).sum::<u64>();
        self.packed = (sum(|keys| keys.len() as u64), sum(Packed::memory_bytes));
        let table = Arc::clone(&self.table);
        let mut state = table.state.lock();
        let all = std::mem::take(&mut state.packs).into_iter();
        let (gone, others): (Vec<Pack>, Vec<Pack>) = all.partition(|pack| pack.locker == locker);
        state.packs = others;
        state.packs.extend(packs);
        drop(state);
        // The memory is freed without the lock.
        drop(gone);
    }

    /// Takes the list of rows, in order.
    fn take_rows(&mut self) -> Vec<Key> {
        self.stale = 0;
        self.key_bytes = 0;
        let mut rows = std::mem::take(&mut self.rows).into_vec();
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    /// All locks except packed ones, in order. Rows are removed from the list; ranges stay.
    fn take_all(&mut self) -> Vec<HeldLock> {
        let rows = self.take_rows();
        let ranges = self.ranges.iter();
        let ranges = ranges.map(|(lo, own)| HeldLock::Range(lo.clone(), own.hi.clone(), own.class));
        let mut found: Vec<HeldLock> = ranges.chain(rows.into_iter().map(HeldLock::Row)).collect();
        found.sort_by(|a, b| a.lo().cmp(b.lo()));
        found
    }

    /// Enters a group into the table and returns it as the single lock that it has become. A single
    /// row stays a row and is part of the returned group.
    fn close(&mut self, group: LockGroup, locker: u64, state: &mut TableState) -> LockGroup {
        if group.locks == 1 {
            return group;
        }
        let LockGroup { lo, hi, class, rows, .. } = group;
        self.add_range(locker, state, lo.clone(), hi.clone(), class);
        for row in rows {
            state.release_row(locker, &row);
        }
        LockGroup::of_range(lo, hi, class)
    }

    /// Keeps a row that found no neighbour as what it was.
    fn keep_alone(&mut self, group: LockGroup, packed: &mut PackBuilder) {
        if group.is_packed {
            packed.push(group.lo.as_slice(), group.class.mode());
        }
        for row in group.rows {
            self.add_row(row);
        }
    }
}

/// Merges packs of one mode into one, or into as few as their size limit allows.
fn merge(locker: u64, packs: Vec<Pack>) -> Vec<Pack> {
    if packs.len() < 2 {
        return packs;
    }
    let (mut keys, mut out) = (MergedPacks::of(&packs), PackBuilder::default());
    while let Some((key, mode)) = keys.next() {
        out.push(key.as_slice(), mode);
    }
    out.packs(locker).collect()
}

/// The areas that other lockers wait for and would get if this locker took no more than it has.
fn interests(state: &TableState, locker: u64, manager: &LockManager) -> Vec<Area> {
    if state.waiters.is_empty() {
        return Vec::new();
    }
    let graph: &Graph = &manager.graph.lock();
    let others = state.waiters.iter().filter(|waiter| !graph.has_edge(waiter.locker, locker));
    let parts = others.flat_map(|waiter: &Waiter| &waiter.parts);
    parts.map(|ask: &RequestPart| ask.area.clone()).collect()
}

fn may_join(
    group: &LockGroup,
    next: &LockGroup,
    state: &TableState,
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
