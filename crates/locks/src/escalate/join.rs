//! Lock escalation: joins neighbouring locks of a locker into ranges.

use super::group::LockGroup;
use super::packs::{JOIN_LOCKS, MergedPacks, PackBuilder};
use super::stream::{HeldLock, LockStream};
use crate::graph::Graph;
use crate::held::HeldLocks;
use crate::key::Area;
use crate::manager::LockManager;
use crate::queue::{RequestPart, Waiter};
use crate::table::TableState;
use frondb_core::sync::Arc;

impl HeldLocks {
    /// Joins neighbouring locks into ranges; with `mix`, shared and exclusive ones together.
    pub(super) fn join_neighbours(&mut self, locker: u64, manager: &LockManager, mix: bool) {
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
            // Enter the range joined so far before the lock is released and other threads use the
            // table.
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

    /// Keeps a row that was not joined with another lock: packed if it was packed before.
    fn keep_alone(&mut self, group: LockGroup, packed: &mut PackBuilder) {
        if group.is_packed {
            packed.push(group.lo.as_slice(), group.class.mode());
        }
        for row in group.rows {
            self.add_row(row);
        }
    }
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
