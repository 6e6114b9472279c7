//! Lock escalation: joins neighbouring locks of a locker into ranges.

use super::group::LockGroup;
use super::packs::{JOIN_LOCKS, MergedPacks, PackBuilder};
use super::stream::{HeldLock, LockStream};
use crate::graph::Graph;
use crate::held::HeldLocks;
use crate::key::Area;
use crate::manager::LockManager;
use crate::queue::{RequestPart, Waiter};
use crate::table_state::{RANGE_BYTES, TableState};
use frondb_core::sync::Arc;

/// A join in progress.
struct Join<'a> {
    locker: u64,
    /// Whether to join shared and exclusive locks with each other.
    mix: bool,
    /// Average bytes of a packed row.
    row_bytes: u64,
    /// The rows that stay packed.
    alone: PackBuilder,
    held: &'a mut HeldLocks,
    joined: Joined,
}

/// The result of an attempt to join.
#[derive(Clone, Copy, Default)]
pub(super) struct Joined {
    /// Whether there is a new range.
    pub(super) any: bool,
    /// Whether neighbours stayed apart because one is shared and one exclusive.
    pub(super) met_other_class: bool,
}

impl HeldLocks {
    /// Joins neighbouring locks into ranges; with `mix`, also shared locks with exclusive ones.
    /// REQUIRES: all rows are packed.
    pub(super) fn join_neighbours(
        &mut self,
        locker: u64,
        manager: &LockManager,
        mix: bool,
    ) -> Joined {
        let own = self.own_packs(locker);
        let mut stream = LockStream {
            ranges: self.all_ranges().into_iter().peekable(),
            packed: MergedPacks::of(&own),
        };
        let row_bytes = (self.packed.1 / self.packed.0.max(1)).max(1);
        let table = Arc::clone(&self.table);
        let (alone, joined) = (PackBuilder::default(), Joined::default());
        let mut join = Join { locker, mix, row_bytes, alone, held: self, joined };
        let mut open: Option<LockGroup> = None;
        while !stream.is_empty() {
            let mut state = table.state.lock();
            let interests = interests(&state, locker, manager);
            let mut locks = 0;
            // One hold of the mutex handles a batch of `JOIN_LOCKS` locks. The end of the batch
            // closes the open group. If that group has too few rows for a range so far, the batch
            // may become twice as long.
            while locks < JOIN_LOCKS
                || (locks < 2 * JOIN_LOCKS && open.as_ref().is_some_and(|it| join.is_undecided(it)))
            {
                locks += 1;
                let next = match stream.next() {
                    None => break,
                    Some(HeldLock::Range(lo, hi, class)) => LockGroup::of_range(lo, hi, class),
                    Some(HeldLock::Packed(key, mode)) => LockGroup::of_row(key, mode),
                };
                match &mut open {
                    Some(group) if join.may_join(group, &next, &state, &interests) => {
                        group.join(next);
                    }
                    _ => {
                        if let Some(group) = open.replace(next) {
                            join.close(group, &mut state);
                        }
                    }
                }
            }
            // Close the group while the mutex of the lock table is still held: `may_join` has
            // checked the group's range only against the holders and waiters of this moment.
            open = open.take().and_then(|group| join.close(group, &mut state));
        }
        let Join { alone, joined, .. } = join;
        // Rows that became part of ranges need no pack any more.
        self.replace_packs(locker, alone.packs(locker).collect());
        joined
    }

    /// Returns all ranges, in order. They stay in the list.
    fn all_ranges(&self) -> Vec<HeldLock> {
        let ranges = self.ranges.iter();
        ranges.map(|(lo, own)| HeldLock::Range(lo.clone(), own.hi.clone(), own.class)).collect()
    }
}

impl Join<'_> {
    /// Whether the group has several rows, but too few for a range so far.
    fn is_undecided(&self, group: &LockGroup) -> bool {
        group.locks > 1 && self.stays_rows(group)
    }

    /// Whether the group consists of rows that stay packed, because a range would take more memory.
    /// A single row never becomes a range, however long the keys are.
    fn stays_rows(&self, group: &LockGroup) -> bool {
        let rows = group.rows().len();
        let is_less = || rows as u64 * self.row_bytes <= RANGE_BYTES + group.key_bytes();
        rows == 1 || (2..JOIN_LOCKS).contains(&rows) && is_less()
    }

    /// Enters a group into the table as one range, and returns that range. Returns `None` if the
    /// rows of the group stay packed.
    fn close(&mut self, group: LockGroup, state: &mut TableState) -> Option<LockGroup> {
        if self.stays_rows(&group) {
            for (key, mode) in group.rows() {
                self.alone.push(key.as_slice(), *mode);
            }
            return None;
        }
        if group.locks == 1 {
            // A single range stays as it is.
            return Some(group);
        }
        self.joined.any = true;
        let (lo, hi) = (group.lo.clone(), group.hi.clone());
        self.held.add_range(self.locker, state, lo, hi, group.class);
        Some(group.into_range())
    }

    fn may_join(
        &mut self,
        group: &LockGroup,
        next: &LockGroup,
        state: &TableState,
        interests: &[Area],
    ) -> bool {
        if group.class != next.class && !self.mix {
            self.joined.met_other_class = true;
            return false;
        }
        let area = group.new_area(next);
        area.is_empty()
            || (state.holders_against(self.locker, &area, &mut |_| false)
                && !interests.iter().any(|interest| interest.conflicts(&area)))
    }
}

/// Returns the areas for which other lockers wait and which they would get if this locker took no
/// further locks.
fn interests(state: &TableState, locker: u64, manager: &LockManager) -> Vec<Area> {
    if state.waiters.is_empty() {
        return Vec::new();
    }
    let graph: &Graph = &manager.graph.lock();
    let others = state.waiters.iter().filter(|waiter| !graph.has_edge(waiter.locker, locker));
    let parts = others.flat_map(|waiter: &Waiter| &waiter.parts);
    parts.map(|ask: &RequestPart| ask.area.clone()).collect()
}
