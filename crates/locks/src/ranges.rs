//! [`Ranges`]: the range locks of one tree, searchable by the keys that they cover.
//!
//! ```text
//!                [d, k) gap #7                  a treap ordered by (lo, entry); each node knows
//!               /      \        top = #9        which range of its subtree reaches furthest (top)
//!     [a, c) scan #3    [g, z) range #9         and the subtree's classes (classes), so a search
//!                                               skips subtrees that end too early or cannot
//! ```                                           conflict
//!
//! Ranges of several lockers may overlap. Ranges of one locker do not (see `own.rs`), except for a
//! short time after a range was granted to a waiter. The number of an entry is unique in its tree.
//! Priorities are derived from this number, so the shape of the treap is deterministic.
//!
//! The table's lock guards the ranges.

use crate::class::{Class, Classes};
use crate::key::{Area, Key, UpperBound, cmp_ends, ends_after};

const NIL: u32 = u32::MAX;

/// One range lock.
pub(crate) struct Range {
    pub(crate) lo: Key,
    pub(crate) hi: UpperBound,
    pub(crate) class: Class,
    pub(crate) locker: u64,
    pub(crate) entry: u64,
}

struct Node {
    range: Range,
    priority: u64,
    left: u32,
    right: u32,
    /// The node of this subtree whose range reaches furthest.
    top: u32,
    /// The classes in this subtree.
    classes: Classes,
}

pub(crate) struct Ranges {
    nodes: Vec<Option<Node>>,
    free: Vec<u32>,
    root: u32,
}

impl Default for Ranges {
    fn default() -> Self {
        Self::new()
    }
}

impl Ranges {
    pub(crate) const fn new() -> Self {
        Self { nodes: Vec::new(), free: Vec::new(), root: NIL }
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.root == NIL
    }

    pub(crate) fn insert(&mut self, range: Range) {
        let priority = mix(range.entry);
        let classes = range.class.bit();
        let at = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(None);
            index(self.nodes.len() - 1)
        });
        let node = Node { range, priority, left: NIL, right: NIL, top: at, classes };
        self.nodes[at as usize] = Some(node);
        self.root = self.insert_at(self.root, at);
    }

    /// Removes the range that begins at `lo` and has this entry number.
    pub(crate) fn remove(&mut self, lo: &Key, entry: u64) -> Option<Range> {
        let mut removed = NIL;
        self.root = self.remove_at(self.root, lo, entry, &mut removed);
        if removed == NIL {
            return None;
        }
        self.free.push(removed);
        let node = self.nodes[removed as usize].take();
        if self.root == NIL {
            // Free the memory, which is large if there were many ranges.
            *self = Self::default();
        }
        node.map(|node| node.range)
    }

    /// Changes the end of the range that begins at `lo` and has this entry number.
    pub(crate) fn set_end(&mut self, lo: &Key, entry: u64, hi: UpperBound) {
        self.set_end_at(self.root, lo, entry, hi);
    }

    /// Calls `found` for each range of one of `classes` that shares a key with `area`, in the order
    /// of first keys, until `found` returns `false`. Returns `true` if `found` never returned
    /// `false`.
    pub(crate) fn overlapping(
        &self,
        area: &Area,
        classes: Classes,
        found: &mut dyn FnMut(&Range) -> bool,
    ) -> bool {
        self.overlapping_at(self.root, area, classes, found)
    }

    /// Calls `found` for all ranges, in the order of their first keys.
    pub(crate) fn for_each(&self, found: &mut dyn FnMut(&Range)) {
        let all = Area::range(Key::new(&[]), None, Class::Gap);
        self.overlapping(&all, Classes::MAX, &mut |range| {
            found(range);
            true
        });
    }

    fn node(&self, at: u32) -> &Node {
        match &self.nodes[at as usize] {
            Some(node) => node,
            None => unreachable!("a link points to a free node"),
        }
    }

    fn node_mut(&mut self, at: u32) -> &mut Node {
        match &mut self.nodes[at as usize] {
            Some(node) => node,
            None => unreachable!("a link points to a free node"),
        }
    }

    /// Recomputes what node `at` stores about its subtree. Returns `at`.
    fn refresh(&mut self, at: u32) -> u32 {
        let node = self.node(at);
        let (mut top, mut classes) = (at, node.range.class.bit());
        for child in [node.left, node.right] {
            if child != NIL {
                let other = self.node(child);
                classes |= other.classes;
                let (best, other_best) = (&self.node(top).range.hi, &self.node(other.top).range.hi);
                if cmp_ends(other_best, best).is_gt() {
                    top = other.top;
                }
            }
        }
        let node = self.node_mut(at);
        (node.top, node.classes) = (top, classes);
        at
    }

    fn insert_at(&mut self, root: u32, at: u32) -> u32 {
        if root == NIL {
            return at;
        }
        if self.node(at).priority > self.node(root).priority {
            let (left, right) = self.split(root, at);
            let node = self.node_mut(at);
            (node.left, node.right) = (left, right);
            return self.refresh(at);
        }
        if self.is_before(at, root) {
            let left = self.insert_at(self.node(root).left, at);
            self.node_mut(root).left = left;
        } else {
            let right = self.insert_at(self.node(root).right, at);
            self.node_mut(root).right = right;
        }
        self.refresh(root)
    }

    fn is_before(&self, a: u32, b: u32) -> bool {
        let (a, b) = (&self.node(a).range, &self.node(b).range);
        (&a.lo, a.entry) < (&b.lo, b.entry)
    }

    /// Splits a subtree into the nodes before and the nodes after the position of node `at`.
    fn split(&mut self, root: u32, at: u32) -> (u32, u32) {
        if root == NIL {
            return (NIL, NIL);
        }
        if self.is_before(root, at) {
            let (left, right) = self.split(self.node(root).right, at);
            self.node_mut(root).right = left;
            (self.refresh(root), right)
        } else {
            let (left, right) = self.split(self.node(root).left, at);
            self.node_mut(root).left = right;
            (left, self.refresh(root))
        }
    }

    /// Joins two subtrees. REQUIRES: all of `left` lies before `right`.
    fn join(&mut self, left: u32, right: u32) -> u32 {
        if left == NIL || right == NIL {
            return left.min(right);
        }
        if self.node(left).priority > self.node(right).priority {
            let joined = self.join(self.node(left).right, right);
            self.node_mut(left).right = joined;
            self.refresh(left)
        } else {
            let joined = self.join(left, self.node(right).left);
            self.node_mut(right).left = joined;
            self.refresh(right)
        }
    }

    fn remove_at(&mut self, root: u32, lo: &Key, entry: u64, removed: &mut u32) -> u32 {
        if root == NIL {
            return NIL;
        }
        let node = self.node(root);
        let (left, right) = (node.left, node.right);
        match (lo, entry).cmp(&(&node.range.lo, node.range.entry)) {
            std::cmp::Ordering::Equal => {
                *removed = root;
                return self.join(left, right);
            }
            std::cmp::Ordering::Less => {
                let left = self.remove_at(left, lo, entry, removed);
                self.node_mut(root).left = left;
            }
            std::cmp::Ordering::Greater => {
                let right = self.remove_at(right, lo, entry, removed);
                self.node_mut(root).right = right;
            }
        }
        self.refresh(root)
    }

    fn set_end_at(&mut self, root: u32, lo: &Key, entry: u64, hi: UpperBound) {
        if root == NIL {
            return;
        }
        let node = self.node(root);
        match (lo, entry).cmp(&(&node.range.lo, node.range.entry)) {
            std::cmp::Ordering::Equal => self.node_mut(root).range.hi = hi,
            std::cmp::Ordering::Less => self.set_end_at(node.left, lo, entry, hi),
            std::cmp::Ordering::Greater => self.set_end_at(node.right, lo, entry, hi),
        }
        self.refresh(root);
    }

    fn overlapping_at(
        &self,
        root: u32,
        area: &Area,
        classes: Classes,
        found: &mut dyn FnMut(&Range) -> bool,
    ) -> bool {
        if root == NIL {
            return true;
        }
        let node = self.node(root);
        let furthest = &self.node(node.top).range.hi;
        if node.classes & classes == 0 || !ends_after(furthest, &area.lo) {
            return true;
        }
        if !self.overlapping_at(node.left, area, classes, found) {
            return false;
        }
        if !area.reaches(&node.range.lo) {
            return true;
        }
        let hit = node.range.class.bit() & classes != 0 && ends_after(&node.range.hi, &area.lo);
        if hit && !found(&node.range) {
            return false;
        }
        self.overlapping_at(node.right, area, classes, found)
    }
}

fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or_else(|_| unreachable!("4 billion ranges do not fit into memory"))
}

/// Spreads consecutive numbers evenly (the finalizer of splitmix64).
fn mix(n: u64) -> u64 {
    let z = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use frondb_core::prng::Prng;

    fn key(n: u64) -> Key {
        Key::new(&(n as u16).to_be_bytes())
    }

    /// Random changes and searches, compared with a list.
    #[test]
    fn searches_agree_with_a_list() {
        let seed = 11;
        let mut prng = Prng::new(seed);
        let (mut ranges, mut list) = (Ranges::default(), Vec::<(u64, u64, Class, u64)>::new());
        let classes = &Class::ALL[2..];
        for entry in 0..4000 {
            let lo = prng.below(300);
            let hi = lo + 1 + prng.below(40);
            let class = classes[prng.index(classes.len())];
            match prng.below(5) {
                0 | 1 => {
                    let hi_key = (hi < 330).then(|| key(hi));
                    ranges.insert(Range { lo: key(lo), hi: hi_key, class, locker: 1, entry });
                    list.push((lo, if hi < 330 { hi } else { u64::MAX }, class, entry));
                }
                2 if !list.is_empty() => {
                    let (lo, _, class, entry) = list.swap_remove(prng.index(list.len()));
                    let range = ranges.remove(&key(lo), entry).expect("the range is in the list");
                    assert_eq!((range.class, range.entry), (class, entry));
                    assert!(ranges.remove(&key(lo), entry).is_none());
                }
                3 if !list.is_empty() => {
                    let at = prng.index(list.len());
                    let hi = list[at].0 + 1 + prng.below(60);
                    list[at].1 = hi;
                    ranges.set_end(&key(list[at].0), list[at].3, Some(key(hi)));
                }
                _ => {
                    let wanted = class.excludes();
                    let row = prng.chance(1, 2);
                    let end = if row { lo + 1 } else { hi };
                    let area = match row {
                        true => Area::row(key(lo), class),
                        false => Area::range(key(lo), Some(key(hi)), class),
                    };
                    let mut ours = Vec::new();
                    ranges.overlapping(&area, wanted, &mut |range| {
                        ours.push((range.lo.clone(), range.entry));
                        true
                    });
                    assert!(ours.is_sorted(), "seed {seed}");
                    let mut theirs: Vec<_> = list
                        .iter()
                        .filter(|(a, b, c, _)| *a < end && *b > lo && c.bit() & wanted != 0)
                        .map(|(a, _, _, entry)| (key(*a), *entry))
                        .collect();
                    theirs.sort();
                    assert_eq!(ours, theirs, "seed {seed}");
                }
            }
            assert_eq!(ranges.len(), list.len());
        }
    }
}
