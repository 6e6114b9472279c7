//! [`OwnEmptyRanges`]: key ranges in which a transaction sees no entry, because it has deleted all
//! the entries.
//!
//! A transaction that deletes rows in key order, for example the rows of a queue, leaves deletes
//! behind. Each new cursor would step over these deletes and the rows that they hide. So a cursor
//! that has stepped over them reports the range, and the next cursor begins after that range.
//!
//! # Why a range stays empty
//! - The write set calls `note_put` for each own put and update, which cuts the range that contains
//!   the key. A range found by a cursor that does not see all own puts and updates is ignored.
//! - A rollback to a savepoint undoes deletes, so it removes all ranges. Cursors that were
//!   positioned before the rollback neither use nor report ranges.
//! - A range holds for readers at the snapshot at which it was found. It also holds at another
//!   snapshot if the caller's function `same` says that no commit between the two snapshots added
//!   an entry there.

use frondb_core::sync::Mutex;
use frondb_core::{Direction, SeqNo};

/// Maximum number of ranges; the ranges with the fewest deletes are removed first.
const RANGES_MAX: usize = 8;

/// A cursor stops before a range, in order to skip the range, only if the range has at least this
/// many deletes.
const SKIP_MIN: u64 = 256;

/// The ranges of a transaction in one tree. All cursors of the transaction share them; any thread
/// may use them.
#[derive(Default, Debug)]
pub struct OwnEmptyRanges {
    list: Mutex<List>,
}

#[derive(Default, Debug)]
struct List {
    /// Ascending; ranges neither overlap nor touch.
    ranges: Vec<OwnEmptyRange>,
    /// A reader that does not see the own messages up to this number may not report a range. It is
    /// the number of the last put or update, or of the last message before a rollback.
    last_put: u64,
    /// Number of rollbacks to savepoints so far.
    rollbacks: u64,
}

#[derive(Clone, Debug)]
struct OwnEmptyRange {
    /// `[lo, hi)`; at least one key.
    lo: Vec<u8>,
    hi: Vec<u8>,
    /// The snapshot at which the range is empty.
    at: SeqNo,
    /// Number of the last own message on which the range depends.
    upto: u64,
    /// Approximate number of deletes in the range.
    deletes: u64,
    /// Whether there is also no entry below `lo` (`is_first`), and none from `hi` on (`is_last`).
    is_first: bool,
    is_last: bool,
}

/// A range `[lo, hi)` in which a reader has found no entry.
#[derive(Clone, Copy, Debug)]
pub struct FoundEmpty<'a> {
    /// First key of the range.
    pub lo: &'a [u8],
    /// First key after the range.
    pub hi: &'a [u8],
    /// Whether there is also no entry below `lo`.
    pub is_first: bool,
    /// Whether there is also no entry from `hi` on.
    pub is_last: bool,
    /// Approximate number of deletes that the reader stepped over.
    pub deletes: u64,
}

/// The own and committed writes that a reader sees.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// The snapshot for committed writes.
    pub at: SeqNo,
    /// The largest message number of the visible own writes.
    pub upto: u64,
    /// [`OwnEmptyRanges::rollbacks`] when the reader got its own writes.
    pub rollbacks: u64,
}

/// Returns whether each committed entry in `[lo, hi)` that the reader sees was also visible at the
/// given snapshot. Arguments: `lo`, `hi`, the snapshot.
type Same<'a> = dyn Fn(&[u8], Option<&[u8]>, SeqNo) -> bool + 'a;

/// The positions at which a cursor begins and stops, in order to skip ranges.
#[derive(Default, PartialEq, Eq, Debug)]
pub struct OwnAround {
    /// The position from which to read, if the original position lies in a range; otherwise `None`.
    pub at: Option<Vec<u8>>,
    /// The near end of the next large range in the reading direction.
    pub end: Option<Vec<u8>>,
}

impl OwnEmptyRanges {
    /// Creates an empty list of ranges, for a tree in which the last own message has the number
    /// `last`.
    pub(crate) fn after(last: u64) -> Self {
        Self { list: Mutex::new(List { last_put: last, ..List::default() }) }
    }

    /// Returns the number of rollbacks to savepoints so far.
    pub(crate) fn rollbacks(&self) -> u64 {
        self.list.lock().rollbacks
    }

    /// Notes that own message `number` gives `key` a value, and cuts the range that contains `key`.
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

    /// Notes that own message `number` may give any key a value, and removes all ranges.
    pub(crate) fn note_puts_anywhere(&self, number: u64) {
        let mut list = self.list.lock();
        list.last_put = number;
        list.ranges.clear();
    }

    /// Notes that own writes were undone, and removes all ranges. Later own writes have numbers
    /// above `number`.
    pub(crate) fn note_rollback(&self, number: u64) {
        let mut list = self.list.lock();
        list.last_put = number;
        list.rollbacks += 1;
        list.ranges.clear();
    }

    /// Records a range that a reader found empty, joined with the ranges that it touches or
    /// overlaps.
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

    /// Returns how a cursor that reads from `at` on skips the ranges. A backward cursor reads the
    /// keys below `at`. Without `at`, a cursor reads all keys.
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
    /// Returns `None` if the range may not be empty at snapshot `seq`. Otherwise returns whether
    /// there is also no entry before the range, and none after it.
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
