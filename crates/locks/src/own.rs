//! [`OwnRanges`]: the ranges of one locker in one tree, as the locker records them.
//!
//! ```text
//!   own:     [a, d) gap   [d, k) scan exclusive      [p, ..) range shared
//!   tree's:  the same entries, among those of all other lockers
//! ```
//!
//! Invariants: the ranges are disjoint; two ranges that touch have different classes; each range is
//! an entry in the tree's [`Ranges`] with the same bounds and class. A scan of any length is
//! therefore one entry, and one lookup in an ordered map, without a lock, finds out whether a key
//! is covered.
//!
//! The locker's thread changes the map under the table's lock and reads it without a lock.

use std::collections::BTreeMap;

use crate::class::Class;
use crate::key::{Key, UpperBound, cmp_ends, ends_after};
use crate::ranges::{Range, Ranges};
use crate::table_state::RANGE_BYTES;

/// An own range without its first key.
pub(crate) struct OwnRange {
    pub(crate) hi: UpperBound,
    pub(crate) class: Class,
    pub(crate) entry: u64,
}

/// A range of keys with one class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub(crate) lo: Key,
    pub(crate) hi: UpperBound,
    pub(crate) class: Class,
}

#[derive(Default)]
pub(crate) struct OwnRanges {
    map: BTreeMap<Key, OwnRange>,
    /// Heap bytes of the keys of the ranges, here and in the tree's ranges.
    key_bytes: u64,
}

/// A tree's ranges, the locker that changes them, and the source of entry numbers.
pub(crate) struct RangeStore<'a> {
    pub(crate) ranges: &'a mut Ranges,
    pub(crate) next_entry: &'a mut u64,
    pub(crate) locker: u64,
}

impl OwnRanges {
    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Bytes that the ranges take, in this map and in the tree's ranges.
    pub(crate) fn bytes(&self) -> u64 {
        self.map.len() as u64 * RANGE_BYTES + self.key_bytes
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &OwnRange)> {
        self.map.iter()
    }

    /// Whether an own range makes a request for a row lock of `class` unnecessary.
    pub(crate) fn covers_row(&self, key: &Key, class: Class) -> bool {
        self.at(key).is_some_and(|own| own.class.covers(class))
    }

    /// Whether `key` lies in any own range.
    pub(crate) fn touches_row(&self, key: &Key) -> bool {
        self.at(key).is_some()
    }

    /// Whether the own ranges make a request for `[lo, hi)` in `class` unnecessary.
    pub(crate) fn covers(&self, lo: &Key, hi: &UpperBound, class: Class) -> bool {
        let mut from = lo;
        loop {
            let Some(own) = self.at(from).filter(|own| own.class.covers(class)) else {
                return false;
            };
            match &own.hi {
                Some(end) if ends_after(hi, end) => from = end,
                _ => return true,
            }
        }
    }

    fn at(&self, key: &Key) -> Option<&OwnRange> {
        let (_, own) = self.map.range(..=key).next_back()?;
        ends_after(&own.hi, key).then_some(own)
    }

    /// Adds a locked range. Where it overlaps own ranges, the stronger class applies.
    pub(crate) fn add(&mut self, piece: Piece, into: &mut RangeStore<'_>) {
        if self.extend_last(&piece, into.ranges) {
            return;
        }
        let touched = self.take_touching(&piece, into);
        for piece in overlay(&touched, piece) {
            self.insert(piece, into);
        }
    }

    /// Handles the usual step of a scan: the new range begins where an own range of the same class
    /// ends, and touches no range after it. Returns `false` in other cases.
    fn extend_last(&mut self, piece: &Piece, ranges: &mut Ranges) -> bool {
        let behind = self.map.range(&piece.lo..).next();
        if behind.is_some_and(|(lo, _)| piece.hi.as_ref().is_none_or(|hi| lo <= hi)) {
            return false;
        }
        let Some((lo, own)) = self.map.range_mut(..&piece.lo).next_back() else { return false };
        if own.class != piece.class || own.hi.as_ref() != Some(&piece.lo) {
            return false;
        }
        let before = end_bytes(&own.hi);
        own.hi.clone_from(&piece.hi);
        self.key_bytes = self.key_bytes + end_bytes(&own.hi) - before;
        ranges.set_end(lo, own.entry, piece.hi.clone());
        true
    }

    /// Removes the ranges that overlap or touch `piece`, and returns them in order.
    fn take_touching(&mut self, piece: &Piece, into: &mut RangeStore<'_>) -> Vec<Piece> {
        let first = self.map.range(..&piece.lo).next_back();
        let first = first.filter(|(_, own)| own.hi.as_ref().is_none_or(|hi| *hi >= piece.lo));
        let from = first.map_or(&piece.lo, |(lo, _)| lo).clone();
        let within = |lo: &Key| piece.hi.as_ref().is_none_or(|hi| lo <= hi);
        let keys = self.map.range(from..).map(|(lo, _)| lo).take_while(|lo| within(lo));
        let keys: Vec<Key> = keys.cloned().collect();
        let mut taken = Vec::with_capacity(keys.len());
        for lo in keys {
            if let Some(piece) = self.remove(&lo, into.ranges) {
                taken.push(piece);
            }
        }
        taken
    }

    /// Removes the range that begins at `lo`.
    pub(crate) fn remove(&mut self, lo: &Key, ranges: &mut Ranges) -> Option<Piece> {
        let (lo, own) = self.map.remove_entry(lo)?;
        self.key_bytes -= key_bytes(&lo) + end_bytes(&own.hi);
        ranges.remove(&lo, own.entry);
        Some(Piece { lo, hi: own.hi, class: own.class })
    }

    /// Removes the first range. Returns `false` if there is none.
    pub(crate) fn pop(&mut self, ranges: &mut Ranges) -> bool {
        let Some((lo, own)) = self.map.pop_first() else { return false };
        self.key_bytes -= key_bytes(&lo) + end_bytes(&own.hi);
        ranges.remove(&lo, own.entry);
        true
    }

    fn insert(&mut self, piece: Piece, into: &mut RangeStore<'_>) {
        let Piece { lo, hi, class } = piece;
        let entry = *into.next_entry;
        *into.next_entry += 1;
        let range = Range { lo: lo.clone(), hi: hi.clone(), class, locker: into.locker, entry };
        into.ranges.insert(range);
        self.key_bytes += key_bytes(&lo) + end_bytes(&hi);
        self.map.insert(lo, OwnRange { hi, class, entry });
    }
}

/// Heap bytes of a range's key, which the locker and the tree both store.
pub(crate) fn key_bytes(key: &Key) -> u64 {
    2 * key.heap_bytes()
}

pub(crate) fn end_bytes(end: &UpperBound) -> u64 {
    end.as_ref().map_or(0, key_bytes)
}

/// Returns the ranges `old` after `new` is added: where they overlap, the stronger class applies.
/// REQUIRES: `old` is in order and disjoint, and each of its ranges overlaps or touches `new`.
fn overlay(old: &[Piece], new: Piece) -> Vec<Piece> {
    let mut out = Vec::with_capacity(old.len() + 2);
    // The key up to which `out` covers `new`; past the end of `new` once all of it is covered.
    let mut done: UpperBound = Some(new.lo.clone());
    for piece in old {
        push(&mut out, &done, &min_end(&Some(piece.lo.clone()), &new.hi), new.class);
        let (begin, lo) = (Some(piece.lo.clone()), Some(new.lo.clone()));
        push(&mut out, &begin, &min_end(&piece.hi, &lo), piece.class);
        let both = piece.class.max(new.class);
        push(&mut out, &max_end(&begin, &lo), &min_end(&piece.hi, &new.hi), both);
        push(&mut out, &max_end(&begin, &new.hi), &piece.hi, piece.class);
        done = max_end(&done, &piece.hi);
    }
    push(&mut out, &done, &new.hi, new.class);
    out
}

/// Appends `[lo, hi)` if it contains a key. A `lo` of `None` is after all keys.
fn push(out: &mut Vec<Piece>, lo: &UpperBound, hi: &UpperBound, class: Class) {
    let Some(lo) = lo else { return };
    if !ends_after(hi, lo) {
        return;
    }
    match out.last_mut() {
        Some(last) if last.class == class && last.hi.as_ref() == Some(lo) => {
            last.hi.clone_from(hi);
        }
        _ => out.push(Piece { lo: lo.clone(), hi: hi.clone(), class }),
    }
}

fn min_end(a: &UpperBound, b: &UpperBound) -> UpperBound {
    if cmp_ends(a, b).is_le() { a.clone() } else { b.clone() }
}

fn max_end(a: &UpperBound, b: &UpperBound) -> UpperBound {
    if cmp_ends(a, b).is_ge() { a.clone() } else { b.clone() }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use frondb_core::prng::Prng;

    const KEYS: u64 = 40;

    fn key(n: u64) -> Key {
        Key::new(&[n as u8])
    }

    /// Random ranges, compared with an array that has one class for each key.
    #[test]
    fn own_ranges_are_the_strongest_of_what_was_added() {
        let seed = 5;
        let mut prng = Prng::new(seed);
        for _ in 0..300 {
            let (mut own, mut ranges) = (OwnRanges::default(), Ranges::default());
            let (mut next_entry, mut model) = (0, [None::<Class>; KEYS as usize]);
            for _ in 0..prng.below(12) {
                let lo = prng.below(KEYS);
                let hi = lo + 1 + prng.below(KEYS - lo);
                let class = Class::ALL[2 + prng.index(5)];
                let end = (hi < KEYS).then(|| key(hi));
                for at in &mut model[lo as usize..hi as usize] {
                    *at = (*at).max(Some(class));
                }
                let mut into =
                    RangeStore { ranges: &mut ranges, next_entry: &mut next_entry, locker: 9 };
                own.add(Piece { lo: key(lo), hi: end, class }, &mut into);
            }
            check(&own, &ranges, &model, seed);
            while own.pop(&mut ranges) {}
            assert!(ranges.is_empty());
        }
    }

    fn check(own: &OwnRanges, ranges: &Ranges, model: &[Option<Class>], seed: u64) {
        for (n, class) in model.iter().enumerate() {
            let found = own.at(&key(n as u64)).map(|own| own.class);
            assert_eq!(found, *class, "seed {seed}, key {n}");
        }
        let pieces = model.chunk_by(|a, b| a == b).filter(|piece| piece[0].is_some());
        assert_eq!(own.len(), pieces.count(), "seed {seed}: as few as can be");
        let mut theirs = Vec::new();
        ranges
            .for_each(&mut |range| theirs.push((range.lo.clone(), range.hi.clone(), range.class)));
        let ours: Vec<_> =
            own.iter().map(|(lo, own)| (lo.clone(), own.hi.clone(), own.class)).collect();
        assert_eq!(ours, theirs, "seed {seed}");
        for (lo, hi) in [(0, 5), (3, 17), (10, 40), (39, 40)] {
            let weakest = model[lo..hi].iter().min().copied().flatten();
            for class in [Class::Gap, Class::RangeShared, Class::RangeExclusive] {
                let end = (hi < KEYS as usize).then(|| key(hi as u64));
                let covers = own.covers(&key(lo as u64), &end, class);
                assert_eq!(covers, weakest.is_some_and(|weakest| weakest.covers(class)));
            }
        }
    }
}
