//! [`LockGroup`]: neighbouring locks that may become one range.

use crate::class::{Class, LockMode};
use crate::key::{Area, Key, UpperBound, cmp_ends};
use crate::own::{end_bytes, key_bytes};

/// Neighbouring locks that may become one range.
pub(super) struct LockGroup {
    pub(super) lo: Key,
    pub(super) hi: UpperBound,
    /// The class of the range: shared or exclusive.
    pub(super) class: Class,
    /// Whether a range of `class` from `lo` to `hi` needs no further check for conflicts: the locks
    /// already have its effect, or the joins so far were checked.
    exact: bool,
    /// The rows, in order; empty if the group has a range.
    rows: Vec<(Key, LockMode)>,
    /// Number of locks in the group.
    pub(super) locks: usize,
}

impl LockGroup {
    pub(super) fn of_row(key: Key, mode: LockMode) -> Self {
        let hi = Some(key.successor());
        let rows = vec![(key.clone(), mode)];
        Self { lo: key, hi, class: Class::range(mode), exact: true, rows, locks: 1 }
    }

    pub(super) fn of_range(lo: Key, hi: UpperBound, held: Class) -> Self {
        let class = Class::range(held.mode());
        Self { lo, hi, class, exact: held == class, rows: Vec::new(), locks: 1 }
    }

    /// Returns the rows of a group without a range; empty for a group with a range.
    pub(super) fn rows(&self) -> &[(Key, LockMode)] {
        &self.rows
    }

    /// Heap bytes of the two keys of a range over the group.
    pub(super) fn key_bytes(&self) -> u64 {
        key_bytes(&self.lo) + end_bytes(&self.hi)
    }

    /// Whether a range of `class` over the group needs no further check for conflicts.
    fn is(&self, class: Class) -> bool {
        self.exact && self.class == class
    }

    /// Returns the keys that a range over both groups would newly cover, or cover in a stronger
    /// class.
    pub(super) fn new_area(&self, next: &Self) -> Area {
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
            // The group reaches to the end of all keys, so no key is added.
            None => Area::range(next.lo.clone(), Some(next.lo.clone()), class),
        }
    }

    pub(super) fn join(&mut self, next: Self) {
        let has_range = self.rows.is_empty() || next.rows.is_empty();
        self.class = self.class.max(next.class);
        if cmp_ends(&next.hi, &self.hi).is_gt() {
            self.hi = next.hi;
        }
        self.exact = true;
        self.locks += next.locks;
        match has_range {
            true => self.rows = Vec::new(),
            false => self.rows.extend(next.rows),
        }
    }

    /// Turns the group into a range.
    pub(super) fn into_range(self) -> Self {
        Self { rows: Vec::new(), locks: 1, ..self }
    }
}
