//! [`OwnEmptyRanges`]: key ranges in which a transaction has no entry, own and committed writes taken
//! together, because it has deleted what was there.
//!
//! A transaction that deletes rows in key order, a queue for instance, leaves messages behind that
//! each new cursor would step over, and the rows below them. A cursor that has stepped over them
//! reports the range, and the next cursor begins after it.
//!
//! # Why a range stays empty
//! - Own puts and updates are reported and cut the ranges at their keys. A report by a cursor that
//!   does not see all of them yet is refused.
//! - A rollback to a savepoint undoes deletes, so it removes all ranges, and cursors from before it
//!   neither use nor report any.
//! - A range holds for readers of the snapshot at which it was found, and for those of another one if
//!   the caller knows that no commit between the two matters (`same`).

use frondb_core::sync::Mutex;
use frondb_core::{Direction, SeqNo};

/// Maximum number of ranges; those with the fewest deletes are removed first.
const RANGES_MAX: usize = 8;

/// Minimum number of deletes in a range at which a walk ends in order to skip it.
const SKIP_MIN: u64 = 256;

/// The ranges of a transaction in one tree. Its cursors share them, on any thread.
#[derive(Default, Debug)]
pub struct OwnEmptyRanges {
    list: Mutex<List>,
}

#[derive(Default, Debug)]
struct List {
    /// In ascending order. They neither overlap nor touch.
    ranges: Vec<OwnEmptyRange>,
    /// Number of the last put or update.
    last_put: u64,
    /// How many rollbacks there were.
    rollbacks: u64,
}

#[derive(Clone, Debug)]
struct OwnEmptyRange {
    /// `[lo, hi)`, not empty.
    lo: Vec<u8>,
    hi: Vec<u8>,
    /// The snapshot at which it is empty.
    at: SeqNo,
    /// Number of the last own message that the range needs.
    upto: u64,
    /// About how many deletes lie in it.
    deletes: u64,
    /// Whether there is no entry below `lo` either, and none from `hi` on.
    is_first: bool,
    is_last: bool,
}

/// A range `[lo, hi)` in which a reader has found no entry.
#[derive(Clone, Copy, Debug)]
pub struct FoundEmpty<'a> {
    /// First key.
    pub lo: &'a [u8],
    /// First key after it.
    pub hi: &'a [u8],
    /// Whether there is no entry below `lo` either.
    pub is_first: bool,
    /// Whether there is no entry from `hi` on either.
    pub is_last: bool,
    /// About how many deletes the reader has stepped over.
    pub deletes: u64,
}

/// What a reader sees: its own writes, and the committed ones.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// The snapshot.
    pub at: SeqNo,
    /// The largest visible number of its own writes.
    pub upto: u64,
    /// [`OwnEmptyRanges::rollbacks`] when it got them.
    pub rollbacks: u64,
}

/// Whether the reader sees no committed entry in `[lo, hi)` that a reader of the given snapshot does not
/// see.
type Same<'a> = dyn Fn(&[u8], Option<&[u8]>, SeqNo) -> bool + 'a;

/// Where a walk begins instead, and where it ends.
#[derive(Default, PartialEq, Eq, Debug)]
pub struct OwnAround {
    /// Where it begins, if it would begin in a range.
    pub at: Option<Vec<u8>>,
    /// Where the next large range begins, seen in the direction of the walk.
    pub end: Option<Vec<u8>>,
}

impl OwnEmptyRanges {
    /// Ranges of a tree in which the last own message is `last`.
    pub(crate) fn after(last: u64) -> Self {
        Self { list: Mutex::new(List { last_put: last, ..List::default() }) }
    }

    /// How many rollbacks there were.
    pub(crate) fn rollbacks(&self) -> u64 {
        self.list.lock().rollbacks
    }

    /// Own message `number` gives `key` a value.
    pub(crate) fn note_put(&self, key: &[u8], number: u64) {
        let mut list = self.list.lock();
        list.last_put = number;
        for range in &mut list.ranges {
            range.is_first &= *range.lo <= *key;
            range.is_last &= *key < *range.hi;
        }
        let at = list.ranges.partition_point(|range| *range.hi <= *key);
        let Some(range) = list.ranges.get(at).filter(|range| *range.lo <= *key) else { return };
        let above = [key, &[0]].concat();
        let halves = [
            OwnEmptyRange { hi: key.to_vec(), is_last: false, ..range.clone() },
            OwnEmptyRange { lo: above, is_first: false, ..range.clone() },
        ];
        list.ranges.splice(at..=at, halves.into_iter().filter(|half| half.lo < half.hi));
        list.forget_smallest();
    }

    /// Any key may have a value after own message `number`.
    pub(crate) fn note_puts_anywhere(&self, number: u64) {
        let mut list = self.list.lock();
        list.last_put = number;
        list.ranges.clear();
    }

    /// Own writes were undone; the next ones come after `number`.
    pub(crate) fn note_rollback(&self, number: u64) {
        let mut list = self.list.lock();
        list.last_put = number;
        list.rollbacks += 1;
        list.ranges.clear();
    }

    /// Records what a reader has found.
    pub fn found(&self, found: FoundEmpty<'_>, seen: Seen, same: &Same<'_>) {
        let mut list = self.list.lock();
        if found.lo >= found.hi || seen.rollbacks != list.rollbacks || seen.upto < list.last_put {
            return;
        }
        let Seen { at, upto, .. } = seen;
        let FoundEmpty { is_first, is_last, deletes, .. } = found;
        let (lo, hi) = (found.lo.to_vec(), found.hi.to_vec());
        let mut new = OwnEmptyRange { lo, hi, at, upto, deletes, is_first, is_last };
        let from = list.ranges.partition_point(|range| range.hi < new.lo);
        let to = list.ranges.partition_point(|range| range.lo <= new.hi);
        for old in list.ranges.drain(from..to) {
            let Some((is_first, is_last)) = old.holds_at(at, same) else { continue };
            new.upto = new.upto.max(old.upto);
            let is_inside = new.lo <= old.lo && old.hi <= new.hi;
            new.deletes = match is_inside {
                true => new.deletes.max(old.deletes),
                false => new.deletes.saturating_add(old.deletes),
            };
            new.is_first |= is_first;
            new.is_last |= is_last;
            if old.lo < new.lo {
                new.lo = old.lo;
            }
            if old.hi > new.hi {
                new.hi = old.hi;
            }
        }
        list.ranges.insert(from, new);
        list.forget_smallest();
    }

    /// How a walk from `at` skips the ranges. Backward it reads the keys below `at`, all keys without
    /// `at`.
    pub fn around(
        &self,
        direction: Direction,
        at: Option<&[u8]>,
        seen: Seen,
        same: &Same<'_>,
    ) -> OwnAround {
        let list = self.list.lock();
        let mut around = OwnAround::default();
        if list.ranges.is_empty() || seen.rollbacks != list.rollbacks {
            return around;
        }
        let skipped = |range: &OwnEmptyRange| {
            if range.upto <= seen.upto { range.holds_at(seen.at, same) } else { None }
        };
        match direction {
            Direction::Forward => {
                let at = at.unwrap_or_default();
                let first = list.ranges.partition_point(|range| *range.hi <= *at);
                for range in &list.ranges[first..] {
                    let Some((is_first, _)) = skipped(range) else { continue };
                    if *range.lo <= *at || is_first {
                        around.at = Some(range.hi.clone());
                    } else if range.deletes >= SKIP_MIN {
                        around.end = Some(range.lo.clone());
                        break;
                    }
                }
            }
            Direction::Backward => {
                let below = |at| list.ranges.partition_point(|range| range.lo.as_slice() < at);
                let end = at.map_or(list.ranges.len(), below);
                for range in list.ranges[..end].iter().rev() {
                    let Some((_, is_last)) = skipped(range) else { continue };
                    if !is_last && at.is_none_or(|at| *range.hi < *at) {
                        if range.deletes >= SKIP_MIN {
                            around.end = Some(range.hi.clone());
                            break;
                        }
                    } else {
                        around.at = Some(range.lo.clone());
                    }
                }
            }
        }
        around
    }
}

impl OwnEmptyRange {
    /// Whether it holds for a reader at this snapshot: then whether there is nothing before it and
    /// nothing after it.
    fn holds_at(&self, seq: SeqNo, same: &Same<'_>) -> Option<(bool, bool)> {
        if self.at == seq {
            return Some((self.is_first, self.is_last));
        }
        if !same(&self.lo, Some(&self.hi), self.at) {
            return None;
        }
        let is_first = self.is_first && same(b"", Some(&self.lo), self.at);
        Some((is_first, self.is_last && same(&self.hi, None, self.at)))
    }
}

impl List {
    fn forget_smallest(&mut self) {
        while self.ranges.len() > RANGES_MAX {
            let smallest = self.ranges.iter().enumerate().min_by_key(|(_, range)| range.deletes);
            let Some((i, _)) = smallest else { return };
            self.ranges.remove(i);
        }
    }
}
