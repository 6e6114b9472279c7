//! Known-empty ranges: key ranges in which a tree is known to have no entry.
//!
//! A client that deletes rows in key order leaves deletes behind. Every seek has to step over them
//! and over the puts that they hide, until flushes and prefix truncations have removed them (rule
//! 15). So a tree keeps the result of such a seek: "no entry is visible in `[lo, hi)`, from SeqNo
//! `since` on". Cursors skip the range.
//!
//! ```text
//!   puts           |x|x|x|x|x|x|x|x|x|x|x|x|x|x|x|
//!   deletes        |d|d|d|d|d|d|d|d|d|d|
//!   empty range    [------------------)                 first(): one seek, to hi
//! ```
//!
//! The list is only in memory. A database that was just opened has no known-empty ranges.
//!
//! # Why a range is empty
//! - A *probe* is a cursor that walks over deletes. It begins under the commit lock, where all
//!   inserted messages are visible, so its snapshot sees all earlier commits. From then on, each
//!   commit reports the keys that it gives values ([`EmptyRanges::note_puts`]) before it becomes
//!   visible, and a report ends the range of the probe at its key. So the keys that the probe
//!   walked over and found empty at its snapshot stay empty until a report splits the known-empty
//!   range at its key.
//! - A reader takes its snapshot before it reads the list, so every put that it sees has been
//!   reported.
//! - Flushes, merges and prefix truncations change nothing that is visible. Data that arrives in
//!   another way (the runs of a large commit) removes all known-empty ranges of its tree.
//! - A reader below `since` does not skip the range, nor does a reader with own writes in it.

use frondb_core::sync::Mutex;
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use frondb_core::{Direction, SeqNo};
use frondb_memtable::Memtable;

/// Minimum number of deletes that are inserted into a memtable between two probes. A reader may
/// have to step over this many.
const PROBE_EVERY: u64 = 1024;

/// Number of deletes of a tree that may wait for a probe. While more wait, commits wait for the
/// probe: a reader would have to step over all of them.
const UNPROBED_MAX: u64 = 8 << 10;

/// Minimum number of deletes in a range that is kept: skipping a range costs as much as stepping
/// over a few dozen deletes.
const DELETES_MIN: u64 = 256;

/// Maximum number of ranges of a tree. The ranges with the fewest deletes are removed first.
const RANGES_MAX: usize = 16;

/// Two keys. The function that takes or returns them says whether the second belongs to the range.
pub type KeyRange = (Vec<u8>, Vec<u8>);

/// A key range without an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
struct EmptyRange {
    /// `[lo, hi)`, not empty.
    lo: Vec<u8>,
    hi: Vec<u8>,
    /// The range is empty for readers at this SeqNo and later.
    since: SeqNo,
    /// About how many deletes the probe stepped over in it.
    deletes: u64,
}

/// A probe that has begun and not ended. It walks over `[lo, hi)` in `direction`; if a key in the
/// range gets a value during the probe, the far end of the range moves to that key.
#[derive(Debug)]
struct Probe {
    /// Tells this probe from an earlier one that was cancelled.
    number: u64,
    direction: Direction,
    lo: Vec<u8>,
    hi: Option<Vec<u8>>,
}

#[derive(Default, Debug)]
struct List {
    /// In ascending order. They neither overlap nor touch.
    ranges: Vec<EmptyRange>,
    probe: Option<Probe>,
    /// How many probes have begun.
    probes: u64,
}

/// How a walk over a tree skips known-empty ranges: it begins at `at`, and it ends at `lo` or `hi`,
/// where the next range begins.
#[derive(Default, PartialEq, Eq, Debug)]
pub(crate) struct Around {
    /// Where the walk begins instead, if it would begin in a range.
    pub(crate) at: Option<Vec<u8>>,
    /// Where a backward walk ends.
    pub(crate) lo: Option<Vec<u8>>,
    /// Where a forward walk ends.
    pub(crate) hi: Option<Vec<u8>>,
}

/// The known-empty ranges of a tree. Any thread may use them.
#[derive(Default, Debug)]
pub struct EmptyRanges {
    /// Whether there are ranges, or a probe is under way. Becomes true only under the commit lock,
    /// so no commit misses it.
    watched: AtomicBool,
    list: Mutex<List>,
    /// How many deletes the active memtable had when a probe was last requested.
    probed: AtomicU64,
    /// How many deletes have come since the last probe began, of all memtables, up to the last
    /// request.
    unprobed: AtomicU64,
}

impl EmptyRanges {
    /// Whether commits must report puts. The answer is exact under the commit lock; without the
    /// lock it may be out of date.
    #[inline]
    pub fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Acquire)
    }

    /// Reports the keys that a commit gives values, before the commit becomes visible. REQUIRES:
    /// the commit lock.
    pub fn note_puts<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) {
        let mut list = self.list.lock();
        for key in keys {
            list.put(key);
        }
        self.update_watched(&list);
    }

    /// Removes all ranges and cancels the probe, because any key may get a value. REQUIRES: the
    /// commit lock.
    pub fn clear(&self) {
        if !self.is_watched() {
            return;
        }
        let mut list = self.list.lock();
        list.ranges.clear();
        list.probe = None;
        self.update_watched(&list);
    }

    /// How a reader at `seq` that walks from `at` skips the ranges. `at` is `None` for a backward
    /// walk from the end of the tree. `may_skip` says whether the reader may skip `[lo, hi)`.
    pub(crate) fn around(
        &self,
        direction: Direction,
        at: Option<&[u8]>,
        seq: SeqNo,
        may_skip: &dyn Fn(&[u8], &[u8]) -> bool,
    ) -> Around {
        if !self.is_watched() {
            return Around::default();
        }
        let list = self.list.lock();
        let is_skipped = |range: &&EmptyRange| range.since <= seq && may_skip(&range.lo, &range.hi);
        match direction {
            Direction::Forward => list.around_forward(at.unwrap_or_default(), &is_skipped),
            Direction::Backward => list.around_backward(at, &is_skipped),
        }
    }

    /// Begins a probe that will walk over `[lo, hi)`, and returns its number; `None` if another
    /// probe has begun and not ended. REQUIRES: the commit lock.
    #[must_use]
    pub fn begin_probe(&self, direction: Direction, lo: &[u8], hi: Option<&[u8]>) -> Option<u64> {
        let mut list = self.list.lock();
        if list.probe.is_some() {
            return None;
        }
        list.probes += 1;
        let (number, lo, hi) = (list.probes, lo.to_vec(), hi.map(<[u8]>::to_vec));
        list.probe = Some(Probe { number, direction, lo, hi });
        self.update_watched(&list);
        Some(number)
    }

    /// Ends a probe, which saw no entry in `[lo, hi)` of `range` at its snapshot `since`. The range
    /// is cut at keys that got values during the probe. `range` is `None` if the probe found no
    /// empty range; a range with fewer than 256 deletes is not kept.
    pub fn end_probe(&self, probe: u64, range: Option<KeyRange>, since: SeqNo, deletes: u64) {
        let mut list = self.list.lock();
        // `clear` may have cancelled the probe.
        let probe = list.probe.take_if(|found| found.number == probe);
        if let Some(probe) = probe
            && let Some((lo, hi)) = range
        {
            let lo = lo.max(probe.lo);
            let hi = probe.hi.map_or(hi.clone(), |end| end.min(hi));
            if lo < hi && deletes >= DELETES_MIN {
                list.add(EmptyRange { lo, hi, since, deletes });
            }
        }
        self.update_watched(&list);
    }

    /// The end of the last range that begins at `key` or below it.
    #[must_use]
    pub fn end_before(&self, key: &[u8]) -> Option<Vec<u8>> {
        let list = self.list.lock();
        let before = list.ranges.partition_point(|range| *range.lo <= *key);
        Some(list.ranges[..before].last()?.hi.clone())
    }

    /// The beginning of the first range that ends above `key`.
    #[must_use]
    pub fn begin_after(&self, key: &[u8]) -> Option<Vec<u8>> {
        let list = self.list.lock();
        let upto = list.ranges.partition_point(|range| *range.hi <= *key);
        Some(list.ranges.get(upto)?.lo.clone())
    }

    /// The first and the last key of the open tombstone run in the active memtable, if a probe of
    /// it is due: the memtable has a long run, and enough deletes have come since the last probe.
    /// Cheap enough to call after every commit.
    #[must_use]
    pub fn due(&self, memtable: &Memtable) -> Option<KeyRange> {
        if memtable.tombstone_run() < DELETES_MIN {
            // A count from an older memtable does not apply to a new one.
            self.probed.store(0, Ordering::Relaxed);
            return None;
        }
        let (deletes, probed) = (memtable.deletes(), self.probed.load(Ordering::Relaxed));
        if deletes >= probed && deletes - probed < PROBE_EVERY {
            return None;
        }
        self.probed.store(deletes, Ordering::Relaxed);
        // A memtable with fewer deletes than the last request counted is a new one.
        let new = if deletes >= probed { deletes - probed } else { deletes };
        self.unprobed.fetch_add(new, Ordering::Relaxed);
        memtable.tombstone_run_bounds()
    }

    /// Whether so many deletes wait for a probe that commits must wait too.
    #[must_use]
    pub fn is_overdue(&self) -> bool {
        self.unprobed.load(Ordering::Relaxed) > UNPROBED_MAX
    }

    /// Notes that a probe begins, which covers all deletes up to the last request.
    pub fn note_probe(&self) {
        self.unprobed.store(0, Ordering::Relaxed);
    }

    fn update_watched(&self, list: &List) {
        let watched = !list.ranges.is_empty() || list.probe.is_some();
        self.watched.store(watched, Ordering::Release);
    }
}

impl List {
    /// Records that `key` gets a value.
    fn put(&mut self, key: &[u8]) {
        if let Some(probe) = &mut self.probe
            && *probe.lo <= *key
            && probe.hi.as_ref().is_none_or(|hi| *key < **hi)
        {
            match probe.direction {
                Direction::Forward => probe.hi = Some(key.to_vec()),
                Direction::Backward => probe.lo = after(key),
            }
        }
        let at = self.ranges.partition_point(|range| *range.hi <= *key);
        let Some(range) = self.ranges.get(at).filter(|range| *range.lo <= *key) else { return };
        let halves = [
            EmptyRange { hi: key.to_vec(), ..range.clone() },
            EmptyRange { lo: after(key), ..range.clone() },
        ];
        let mut halves: Vec<EmptyRange> =
            halves.into_iter().filter(|half| half.lo < half.hi).collect();
        if let [left, right] = &mut halves[..] {
            // It is not known on which side the deletes are.
            left.deletes /= 2;
            right.deletes /= 2;
        }
        halves.retain(|half| half.deletes >= DELETES_MIN);
        self.ranges.splice(at..=at, halves);
        self.forget_smallest();
    }

    /// Adds a range, and joins it with the ranges that it overlaps or touches.
    fn add(&mut self, mut new: EmptyRange) {
        let from = self.ranges.partition_point(|range| range.hi < new.lo);
        let to = self.ranges.partition_point(|range| range.lo <= new.hi);
        for old in self.ranges.drain(from..to) {
            new.lo = new.lo.min(old.lo);
            new.hi = new.hi.max(old.hi);
            new.since = new.since.max(old.since);
            new.deletes = new.deletes.saturating_add(old.deletes);
        }
        self.ranges.insert(from, new);
        self.forget_smallest();
    }

    fn forget_smallest(&mut self) {
        while self.ranges.len() > RANGES_MAX {
            let smallest = self.ranges.iter().enumerate().min_by_key(|(_, range)| range.deletes);
            let Some((i, _)) = smallest else { return };
            self.ranges.remove(i);
        }
    }

    fn around_forward(&self, at: &[u8], is_skipped: &dyn Fn(&&EmptyRange) -> bool) -> Around {
        let first = self.ranges.partition_point(|range| *range.hi <= *at);
        let mut around = Around::default();
        for range in self.ranges[first..].iter().filter(is_skipped) {
            // The ranges do not touch, so only the first can hold `at`.
            if *range.lo > *at {
                around.hi = Some(range.lo.clone());
                break;
            }
            around.at = Some(range.hi.clone());
        }
        around
    }

    /// A backward walk reads the keys *below* `at`.
    fn around_backward(
        &self,
        at: Option<&[u8]>,
        is_skipped: &dyn Fn(&&EmptyRange) -> bool,
    ) -> Around {
        let ranges = &self.ranges;
        let end = at.map_or(ranges.len(), |at| ranges.partition_point(|range| *range.lo < *at));
        let mut around = Around::default();
        for range in ranges[..end].iter().rev().filter(is_skipped) {
            if at.is_none_or(|at| *range.hi < *at) {
                around.lo = Some(range.hi.clone());
                break;
            }
            around.at = Some(range.lo.clone());
        }
        around
    }
}

/// The smallest key above `key`.
fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

#[cfg(all(test, not(shuttle)))]
#[path = "empty_ranges_tests.rs"]
mod tests;
