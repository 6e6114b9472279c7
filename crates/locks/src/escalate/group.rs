//! [`LockGroup`]: neighbouring locks that become one range.

use crate::class::{Class, LockMode};
use crate::key::{Area, Key, UpperBound, cmp_ends};

/// Neighbouring locks that become one range.
pub(super) struct LockGroup {
    pub(super) lo: Key,
    pub(super) hi: UpperBound,
    /// The class of the range: shared or exclusive.
    pub(super) class: Class,
    /// Whether the locks of the group already have the effect of a range from `lo` to `hi`.
    pub(super) exact: bool,
    pub(super) rows: Vec<Key>,
    /// The group is a single row of a pack.
    pub(super) is_packed: bool,
    /// Number of locks in the group.
    pub(super) locks: usize,
}

impl LockGroup {
    pub(super) fn of_row(key: Key, mode: LockMode) -> Self {
        let hi = Some(key.successor());
        let class = Class::range(mode);
        let (rows, is_packed) = (vec![key.clone()], false);
        Self { lo: key, hi, class, exact: true, rows, is_packed, locks: 1 }
    }

    pub(super) fn of_packed(key: Key, mode: LockMode) -> Self {
        Self { rows: Vec::new(), is_packed: true, ..Self::of_row(key, mode) }
    }

    pub(super) fn of_range(lo: Key, hi: UpperBound, held: Class) -> Self {
        let class = Class::range(held.mode());
        let (rows, is_packed) = (Vec::new(), false);
        Self { lo, hi, class, exact: held == class, rows, is_packed, locks: 1 }
    }

    /// Whether the group already locks all its keys in `class`.
    pub(super) fn is(&self, class: Class) -> bool {
        self.exact && self.class == class
    }

    /// The keys that a range over both groups would newly cover, or cover in a stronger class.
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
            // The range reaches to the end of all keys.
            None => Area::range(next.lo.clone(), Some(next.lo.clone()), class),
        }
    }

    pub(super) fn join(&mut self, next: Self) {
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
