//! [`List`]: the known-empty ranges of a tree, the newest commits with puts, and the running probe,
//! protected by the lock of [`EmptyRanges`](super::empty_ranges::EmptyRanges). Pure: no lock, no
//! I/O.

use std::collections::VecDeque;

use frondb_core::{Direction, SeqNo};

use super::empty_range::EmptyRange;

/// Minimum number of deletes in a range found by a probe, and in a range at which a walk ends:
/// opening another walk costs as much as stepping over a few dozen deletes.
pub(super) const DELETES_MIN: u64 = 256;

/// Minimum number of deletes in a range that a reader found and that touches no known range, and in
/// a part that a put leaves of a range. A walk that would begin in such a range begins at its end
/// instead, which costs nothing.
pub(super) const FOUND_MIN: u64 = 32;

/// How many of the newest commits with puts are remembered.
const COMMITS_MAX: usize = 32;

/// Maximum number of ranges of a tree. The range with the fewest deletes is removed first.
const RANGES_MAX: usize = 16;

/// A function of `lo` and `hi` that returns whether a reader may skip `[lo, hi)`, which has no
/// committed entry; without `hi`, all keys from `lo` on. A reader with own writes in the range may
/// not.
pub(crate) type MaySkip<'a> = dyn Fn(&[u8], Option<&[u8]>) -> bool + 'a;

/// A commit and the key range of its puts.
#[derive(Default, Debug)]
pub(super) struct Puts {
    pub(super) seq: SeqNo,
    pub(super) first: Vec<u8>,
    pub(super) last: Vec<u8>,
}

/// A running probe, which walks over `[lo, hi)` in `direction`; if a key in the range gets a value
/// during the probe, the far end of the range moves to that key.
#[derive(Debug)]
pub(super) struct Probe {
    /// Distinguishes this probe from an earlier one that was cancelled.
    pub(super) number: u64,
    pub(super) direction: Direction,
    pub(super) lo: Vec<u8>,
    pub(super) hi: Option<Vec<u8>>,
}

#[derive(Default, Debug)]
pub(super) struct List {
    /// Ascending; ranges neither overlap nor touch.
    pub(super) ranges: Vec<EmptyRange>,
    pub(super) probe: Option<Probe>,
    /// Number of probes begun.
    pub(super) probes: u64,
    /// `commits` has every commit with puts above this SeqNo; `None` while `commits` is not kept.
    pub(super) watched_from: Option<SeqNo>,
    /// The commits with puts above `watched_from`, at most `COMMITS_MAX`, oldest first.
    pub(super) commits: VecDeque<Puts>,
    /// Number of puts reported since a reader last found an empty range.
    pub(super) idle_puts: u64,
}

/// A list to which nothing was ever added.
pub(super) static EMPTY: List = List {
    ranges: Vec::new(),
    probe: None,
    probes: 0,
    watched_from: None,
    commits: VecDeque::new(),
    idle_puts: 0,
};

/// How a walk over a tree skips known-empty ranges: the walk begins at `at`, and ends where it
/// meets the next large range, at `lo` (backward) or `hi` (forward).
#[derive(Default, PartialEq, Eq, Debug)]
pub(crate) struct Around {
    /// Where the walk begins instead of inside a range; `None` if it does not begin in one.
    pub(crate) at: Option<Vec<u8>>,
    /// Where a backward walk ends; `None` for no limit.
    pub(crate) lo: Option<Vec<u8>>,
    /// Where a forward walk ends; `None` for no limit.
    pub(crate) hi: Option<Vec<u8>>,
}

impl List {
    /// Records a commit, with the first and the last key to which it gives values.
    pub(super) fn note_commit(&mut self, seq: SeqNo, first: &[u8], last: &[u8]) {
        let Some(watched_from) = &mut self.watched_from else { return };
        let mut puts = if self.commits.len() < COMMITS_MAX {
            Puts::default()
        } else {
            // Without its oldest commit, the list can answer only for readers that see the removed
            // commit.
            let oldest = self.commits.pop_front().unwrap_or_default();
            *watched_from = (*watched_from).max(oldest.seq);
            oldest
        };
        puts.seq = seq;
        puts.first.clear();
        puts.first.extend_from_slice(first);
        puts.last.clear();
        puts.last.extend_from_slice(last);
        self.commits.push_back(puts);
    }

    /// Returns whether a commit above `seq` may have given a key in `[lo, hi)` a value.
    pub(super) fn may_have_put(&self, lo: &[u8], hi: Option<&[u8]>, seq: SeqNo) -> bool {
        if self.watched_from.is_none_or(|from| seq < from) {
            return true;
        }
        let newer = self.commits.iter().rev().take_while(|puts| puts.seq > seq);
        let mut newer = newer.into_iter();
        newer.any(|puts| hi.is_none_or(|hi| *puts.first < *hi) && *lo <= *puts.last)
    }

    /// Records that `key` gets a value.
    pub(super) fn put(&mut self, key: &[u8]) {
        if let Some(probe) = &mut self.probe
            && *probe.lo <= *key
            && probe.hi.as_ref().is_none_or(|hi| *key < **hi)
        {
            match probe.direction {
                Direction::Forward => probe.hi = Some(key.to_vec()),
                Direction::Backward => probe.lo = after(key),
            }
        }
        for range in self.ranges.iter_mut().filter(|range| range.is_first || range.is_last) {
            range.is_first &= *range.lo <= *key;
            range.is_last &= *key < *range.hi;
        }
        let at = self.ranges.partition_point(|range| *range.hi <= *key);
        let Some(range) = self.ranges.get(at).filter(|range| *range.lo <= *key) else { return };
        let half = |lo: &[u8], hi: &[u8]| {
            EmptyRange::new(lo.to_vec(), hi.to_vec(), range.since, range.deletes)
        };
        let halves = [
            EmptyRange { is_first: range.is_first, ..half(&range.lo, key) },
            EmptyRange { is_last: range.is_last, ..half(&after(key), &range.hi) },
        ];
        let mut halves: Vec<EmptyRange> =
            halves.into_iter().filter(|half| half.lo < half.hi).collect();
        if let [left, right] = &mut halves[..] {
            // It is unknown on which side of the key the deletes are.
            left.deletes /= 2;
            right.deletes /= 2;
        }
        halves.retain(|half| half.deletes >= FOUND_MIN);
        self.ranges.splice(at..=at, halves);
        self.forget_smallest();
    }

    /// Adds a range, and joins it with the ranges that it overlaps or touches.
    pub(super) fn add(&mut self, mut new: EmptyRange) {
        let from = self.ranges.partition_point(|range| range.hi < new.lo);
        let to = self.ranges.partition_point(|range| range.lo <= new.hi);
        let mut largest: Option<EmptyRange> = None;
        let (lo, hi) = (new.lo.clone(), new.hi.clone());
        for old in self.ranges.drain(from..to) {
            let is_inside = lo <= old.lo && old.hi <= hi;
            if old.lo < new.lo {
                new.lo.clone_from(&old.lo);
            }
            if old.hi > new.hi {
                new.hi.clone_from(&old.hi);
            }
            new.since = new.since.max(old.since);
            new.deletes = match is_inside {
                true => new.deletes.max(old.deletes),
                false => new.deletes.saturating_add(old.deletes),
            };
            new.is_first |= old.is_first;
            new.is_last |= old.is_last;
            if largest.as_ref().is_none_or(|largest| largest.deletes < old.deletes) {
                largest = Some(old);
            }
        }
        if let Some(largest) = largest {
            new.grow_from(largest);
        }
        self.ranges.insert(from, new);
        self.forget_smallest();
    }

    pub(super) fn forget_smallest(&mut self) {
        while self.ranges.len() > RANGES_MAX {
            let smallest = self.ranges.iter().enumerate().min_by_key(|(_, range)| range.deletes);
            let Some((i, _)) = smallest else { return };
            self.ranges.remove(i);
        }
    }

    pub(super) fn around_forward(&self, at: &[u8], seq: SeqNo, may_skip: &MaySkip<'_>) -> Around {
        let first = self.ranges.partition_point(|range| *range.hi <= *at);
        let mut around = Around::default();
        for range in &self.ranges[first..] {
            let Some((lo, hi)) = range.seen_at(seq).filter(|(lo, hi)| may_skip(lo, Some(hi)))
            else {
                continue;
            };
            if hi <= at {
                // At this snapshot, the range ends at or before `at`.
                continue;
            }
            // The ranges do not touch, so only the first can hold `at`.
            let reaches_first = || range.is_first && range.since <= seq && may_skip(at, Some(lo));
            if lo > at && !reaches_first() {
                if range.deletes < DELETES_MIN {
                    continue;
                }
                around.hi = Some(lo.to_vec());
                break;
            }
            around.at = Some(hi.to_vec());
        }
        around
    }

    /// Works as `around_forward`; a backward walk reads the keys *below* `at`.
    pub(super) fn around_backward(
        &self,
        at: Option<&[u8]>,
        seq: SeqNo,
        may_skip: &MaySkip<'_>,
    ) -> Around {
        let ranges = &self.ranges;
        let end = at.map_or(ranges.len(), |at| ranges.partition_point(|range| *range.lo < *at));
        let mut around = Around::default();
        for range in ranges[..end].iter().rev() {
            let Some((lo, hi)) = range.seen_at(seq).filter(|(lo, hi)| may_skip(lo, Some(hi)))
            else {
                continue;
            };
            if at.is_some_and(|at| at <= lo) {
                continue;
            }
            let reaches_last = || range.is_last && range.since <= seq && may_skip(hi, at);
            if at.is_none_or(|at| hi < at) && !reaches_last() {
                if range.deletes < DELETES_MIN {
                    continue;
                }
                around.lo = Some(hi.to_vec());
                break;
            }
            around.at = Some(lo.to_vec());
        }
        around
    }
}

/// Returns the smallest key above `key`.
pub(super) fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}
