//! Known-empty ranges: ranges of keys in which a tree is known to have no entry.
//!
//! A client that deletes rows in key order leaves deletes behind that every seek has to step over, each
//! with the put that it hides, until flushes and prefix truncations have caught up (rule 15). So the
//! result of such a seek is kept: "in `[lo, hi)` nothing is visible, from SeqNo `since` on". Cursors skip
//! the range.
//!
//! ```text
//!   puts           |x|x|x|x|x|x|x|x|x|x|x|x|x|x|x|
//!   deletes        |d|d|d|d|d|d|d|d|d|d|
//!   empty range    [------------------)                 first(): one seek, to hi
//! ```
//!
//! The list is in memory only: nothing is written, and a database that was just opened has none.
//!
//! # Why a range is empty
//! - A *probe* begins under the commit lock, where everything inserted is visible: its snapshot sees all
//!   that was committed before. From then on each commit reports the keys that get a value
//!   ([`EmptyRanges::note_puts`]), before it becomes visible; a report ends the range of the probe at
//!   its key. So the keys that the probe walked over and found empty at its snapshot stay empty until
//!   the next report, which splits a known-empty range at its key.
//! - A reader takes its snapshot before it asks, so every put that it sees was reported by then.
//! - Flushes, merges and prefix truncations change nothing that is visible. Data that arrives another way
//!   (the runs of a large commit) ends all known-empty ranges of its tree.
//! - A reader that reads below `since` does not use the range, nor does one whose own writes lie in it.

use frondb_core::Direction;
use frondb_core::SeqNo;
use frondb_core::sync::Mutex;
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use frondb_memtable::Memtable;

/// Deletes that come into a memtable between two probes, at least. Readers step over as many.
const PROBE_EVERY: u64 = 1024;
/// Deletes that must lie in a range for it to be kept: going around one costs as much as stepping over a
/// few dozen.
const DELETES_MIN: u64 = 256;
/// EmptyRanges that a tree has at most: those with the fewest deletes go.
const RANGES_MAX: usize = 16;

/// Two keys: a range, or the first and the last of something.
pub type KeyRange = (Vec<u8>, Vec<u8>);

/// A range of keys without an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
struct EmptyRange {
    /// `[lo, hi)`, not empty.
    lo: Vec<u8>,
    hi: Vec<u8>,
    /// For readers of this SeqNo and later.
    since: SeqNo,
    /// About how many deletes lie in it, or did.
    deletes: u64,
}

/// A probe under way: a range of keys that a walk goes over from one end, and that ends, on its way, at
/// what was put since it began.
#[derive(Debug)]
struct Probe {
    /// Told from one that was ended meanwhile.
    number: u64,
    direction: Direction,
    lo: Vec<u8>,
    hi: Option<Vec<u8>>,
}

#[derive(Default, Debug)]
struct List {
    /// Ascending, apart from each other.
    ranges: Vec<EmptyRange>,
    probe: Option<Probe>,
    /// Looks begun.
    probes: u64,
}

/// Where a walk over a tree goes, so that it meets no range: from `at`, and not beyond `lo` or `hi`, where
/// one begins.
#[derive(Default, PartialEq, Eq, Debug)]
pub(crate) struct Around {
    /// Where to begin instead, if that is in a range.
    pub(crate) at: Option<Vec<u8>>,
    pub(crate) lo: Option<Vec<u8>>,
    pub(crate) hi: Option<Vec<u8>>,
}

/// A tree's ranges.
#[derive(Default, Debug)]
pub struct EmptyRanges {
    /// Whether there are any, or a probe is under way. Set under the commit lock, so commits see it.
    watched: AtomicBool,
    list: Mutex<List>,
    /// Deletes that the active memtable had at the last probe.
    probed: AtomicU64,
}

impl EmptyRanges {
    /// Whether puts must be reported. REQUIRES: the commit lock, or an answer that may be old.
    #[inline]
    pub fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Acquire)
    }

    /// These keys get values by a commit that is not visible yet. REQUIRES: the commit lock.
    pub fn note_puts<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) {
        let mut list = self.list.lock();
        for key in keys {
            list.put(key);
        }
        self.update_watched(&list);
    }

    /// Anything may have come into the tree. REQUIRES: the commit lock.
    pub fn end_all(&self) {
        if !self.is_watched() {
            return;
        }
        let mut list = self.list.lock();
        list.ranges.clear();
        list.probe = None;
        self.update_watched(&list);
    }

    /// How a reader at `seq` goes from `at` (`None`: from the end of the tree, backward); `may_use` is
    /// asked whether it may leave out `[lo, hi)`.
    pub(crate) fn around(
        &self,
        direction: Direction,
        at: Option<&[u8]>,
        seq: SeqNo,
        may_use: &dyn Fn(&[u8], &[u8]) -> bool,
    ) -> Around {
        if !self.is_watched() {
            return Around::default();
        }
        let list = self.list.lock();
        let used = |range: &&EmptyRange| range.since <= seq && may_use(&range.lo, &range.hi);
        match direction {
            Direction::Forward => list.around_forward(at.unwrap_or_default(), &used),
            Direction::Backward => list.around_backward(at, &used),
        }
    }

    /// Begins a probe that walks over `[lo, hi)` and returns its number; `None` if another is under way.
    /// REQUIRES: the commit lock.
    #[must_use]
    pub fn begin(&self, direction: Direction, lo: &[u8], hi: Option<&[u8]>) -> Option<u64> {
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

    /// Ends a probe: at its snapshot, `since`, nothing is visible in `range`, which is a part of the probe's.
    pub fn end(&self, probe: u64, range: Option<KeyRange>, since: SeqNo, deletes: u64) {
        let mut list = self.list.lock();
        // It is gone if data came in another way meanwhile.
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

    /// The end of the last range that begins at `key` or before it.
    #[must_use]
    pub fn end_before(&self, key: &[u8]) -> Option<Vec<u8>> {
        let list = self.list.lock();
        let before = list.ranges.partition_point(|range| *range.lo <= *key);
        Some(list.ranges[..before].last()?.hi.clone())
    }

    /// The beginning of the first range that ends behind `key`.
    #[must_use]
    pub fn begin_after(&self, key: &[u8]) -> Option<Vec<u8>> {
        let list = self.list.lock();
        let upto = list.ranges.partition_point(|range| *range.hi <= *key);
        Some(list.ranges.get(upto)?.lo.clone())
    }

    /// The first and the last key of the tombstone run in the active memtable, if it has grown enough
    /// since the last probe. Cheap to ask after every commit.
    #[must_use]
    pub fn due(&self, memtable: &Memtable) -> Option<KeyRange> {
        if memtable.tombstone_run() < DELETES_MIN {
            // Of a new memtable, if there was a long one before.
            self.probed.store(0, Ordering::Relaxed);
            return None;
        }
        let (deletes, probed) = (memtable.deletes(), self.probed.load(Ordering::Relaxed));
        if deletes >= probed && deletes - probed < PROBE_EVERY {
            return None;
        }
        self.probed.store(deletes, Ordering::Relaxed);
        memtable.tombstone_run_bounds()
    }

    fn update_watched(&self, list: &List) {
        let watched = !list.ranges.is_empty() || list.probe.is_some();
        self.watched.store(watched, Ordering::Release);
    }
}

impl List {
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
            // Nobody knows which side they are on.
            left.deletes /= 2;
            right.deletes /= 2;
        }
        halves.retain(|half| half.deletes >= DELETES_MIN);
        self.ranges.splice(at..=at, halves);
        self.forget_smallest();
    }

    /// Adds a range, in one with those that it meets.
    fn add(&mut self, mut new: EmptyRange) {
        let from = self.ranges.partition_point(|range| range.hi < new.lo);
        let to = self.ranges.partition_point(|range| range.lo <= new.hi);
        for met in self.ranges.drain(from..to) {
            new.lo = new.lo.min(met.lo);
            new.hi = new.hi.max(met.hi);
            new.since = new.since.max(met.since);
            new.deletes = new.deletes.saturating_add(met.deletes);
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

    fn around_forward(&self, at: &[u8], used: &dyn Fn(&&EmptyRange) -> bool) -> Around {
        let first = self.ranges.partition_point(|range| *range.hi <= *at);
        let mut around = Around::default();
        for range in self.ranges[first..].iter().filter(used) {
            // They are apart, so only the first can hold `at`.
            if *range.lo > *at {
                around.hi = Some(range.lo.clone());
                break;
            }
            around.at = Some(range.hi.clone());
        }
        around
    }

    /// What is read ends *before* `at`.
    fn around_backward(&self, at: Option<&[u8]>, used: &dyn Fn(&&EmptyRange) -> bool) -> Around {
        let end = at.map_or(self.ranges.len(), |at| self.ranges.partition_point(|v| *v.lo < *at));
        let mut around = Around::default();
        for range in self.ranges[..end].iter().rev().filter(used) {
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
