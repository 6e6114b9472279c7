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
//! - A *probe* is a cursor that walks over deletes. The probe begins under the commit lock, where
//!   all inserted messages are visible, so its snapshot sees all earlier commits. From then on,
//!   each commit reports the keys that it gives values ([`EmptyRanges::note_puts`]) before it
//!   becomes visible, and a report of a key ends the range of the probe at that key. So a range
//!   that the probe found empty at its snapshot stays empty, until a report of a key splits the
//!   known-empty range at that key.
//! - A reader takes its snapshot before it reads the list, so every put that it sees has been
//!   reported.
//! - Flushes, merges and prefix truncations change nothing that is visible. Data that arrives in
//!   another way (the runs of a large commit) removes all known-empty ranges of its tree.
//! - A *reader* that has stepped over deletes on its way to an entry reports the range that it
//!   found empty at its snapshot ([`EmptyRanges::found`]), so that the next reader can skip it. The
//!   range is accepted only if no later commit gave a key in it a value: the list of the newest 32
//!   commits with puts must reach back to the reader's snapshot and show no such put.
//! - A reader with own writes in a range does not skip the range. A reader whose snapshot is below
//!   `since` skips only the newest former range (from before the range grew) whose `since` is not
//!   above that snapshot.
//!
//! # A queue
//! Where clients read and delete the first row again and again, each reader begins at the end of
//! the range that earlier readers reported, so a pop costs the same however many pops came before.
//! A range that grew keeps some of its former ends, so that readers with slightly older snapshots,
//! which always exist beside writers, can still skip most of the range.

use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use frondb_core::{Direction, SeqNo};
use frondb_memtable::Memtable;
use frondb_writeset::FoundEmpty;

use super::empty_list::{Around, DELETES_MIN, FOUND_MIN, List, MaySkip, Probe};
use super::empty_range::EmptyRange;
use super::lazy_list::LazyList;

/// Minimum number of deletes inserted into a memtable between two probes. A reader may have to step
/// over this many.
const PROBE_EVERY: u64 = 1024;

/// Number of deletes of a tree that may wait for a probe. While more deletes wait, commits wait for
/// the probe: a reader would have to step over all of these deletes.
const UNPROBED_MAX: u64 = 8 << 10;

/// Minimum number of deletes that a reader must have stepped over to extend a range of the list.
pub(crate) const GROWTH_MIN: u64 = 8;

/// Length of a tombstone run in the memtable, in deletes, from which on commits report puts.
const WATCH_FROM: u64 = 16;

/// Commits stop reporting puts once the tree has no range, and no reader has found an empty range
/// during at least this many puts.
const IDLE_PUTS_MAX: u64 = 1 << 16;

/// Two keys. The function that takes or returns the pair says whether the second belongs to the
/// range.
pub type KeyRange = (Vec<u8>, Vec<u8>);

/// The known-empty ranges of a tree. Any thread may use them.
#[derive(Default, Debug)]
pub struct EmptyRanges {
    /// Whether commits report puts: there are ranges, a probe is running, or readers may find
    /// ranges. Becomes true only under the commit lock, so no commit misses it.
    watched: AtomicBool,
    list: LazyList,
    /// Whether [`List::watched_from`] is set, so that ranges found by readers can be accepted.
    is_complete: AtomicBool,
    /// Number of deletes in the active memtable when a probe was last requested.
    probed: AtomicU64,
    /// Number of deletes, in all memtables, between the beginning of the last probe and the last
    /// request of a probe.
    unprobed: AtomicU64,
}

impl EmptyRanges {
    /// Returns whether commits must report puts. Under the commit lock `false` is certain; any
    /// other answer may be out of date.
    #[inline]
    pub fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Acquire)
    }

    /// Reports the keys that the commit at `seq` gives values, before the commit becomes visible.
    /// REQUIRES: the commit lock.
    pub fn note_puts<'a>(&self, keys: impl Iterator<Item = &'a [u8]>, seq: SeqNo) {
        let mut list = self.list.lock();
        let mut keys = keys.peekable();
        let Some(&first) = keys.peek() else { return };
        let (mut least, mut greatest) = (first, first);
        for key in keys {
            (least, greatest) = (least.min(key), greatest.max(key));
            list.put(key);
            list.idle_puts += 1;
        }
        list.note_commit(seq, least, greatest);
        self.update_watched(&mut list);
    }

    /// Removes all ranges and cancels the probe, because the commit at `seq` may give any key a
    /// value. REQUIRES: the commit lock.
    pub fn clear(&self, seq: SeqNo) {
        if !self.is_watched() {
            return;
        }
        let mut list = self.list.lock();
        list.ranges.clear();
        list.probe = None;
        list.commits.clear();
        list.watched_from = list.watched_from.map(|from| from.max(seq));
        self.update_watched(&mut list);
    }

    /// If the deletes in the active memtable may form a tombstone run, makes commits report puts
    /// from the next commit on, so that readers can report empty ranges. `seq` is the last SeqNo of
    /// the commit in progress. REQUIRES: the commit lock.
    pub fn watch_deletes(&self, memtable: &Memtable, seq: SeqNo) {
        if memtable.tombstone_run() < WATCH_FROM || self.is_complete.load(Ordering::Relaxed) {
            return;
        }
        let mut list = self.list.lock();
        list.watched_from = Some(seq);
        list.idle_puts = 0;
        self.update_watched(&mut list);
    }

    /// Records the range that a reader at snapshot `seq` found empty, unless a later commit may
    /// have given a key in the range a value.
    pub(crate) fn found(&self, found: FoundEmpty<'_>, seq: SeqNo) {
        let FoundEmpty { lo, hi, is_first, is_last, deletes } = found;
        if lo >= hi || !self.is_complete.load(Ordering::Relaxed) {
            return;
        }
        let mut list = self.list.lock();
        let from = if is_first { b"" } else { lo };
        if list.may_have_put(from, (!is_last).then_some(hi), seq) {
            return;
        }
        list.idle_puts = 0;
        let at = list.ranges.partition_point(|range| *range.hi < *lo);
        let touched = list.ranges.get(at).filter(|range| *range.lo <= *hi);
        let is_known = touched.is_some_and(|range| *range.lo <= *lo && *hi <= *range.hi);
        let least = if touched.is_some() { GROWTH_MIN } else { FOUND_MIN };
        if !is_known && deletes >= least {
            let range = EmptyRange::new(lo.to_vec(), hi.to_vec(), seq, deletes);
            list.add(EmptyRange { is_first, is_last, ..range });
        }
    }

    /// Returns whether a commit above `seq` may have given a key in `[lo, hi)` a value. May return
    /// `true` although no commit has.
    pub(crate) fn may_have_put(&self, lo: &[u8], hi: Option<&[u8]>, seq: SeqNo) -> bool {
        !self.is_complete.load(Ordering::Relaxed) || self.list.lock().may_have_put(lo, hi, seq)
    }

    /// Returns how a walk from `at`, of a reader at `seq`, skips the ranges. `at` is `None` for a
    /// backward walk from the end of the tree. `may_skip` decides which ranges the reader may skip.
    pub(crate) fn around(
        &self,
        direction: Direction,
        at: Option<&[u8]>,
        seq: SeqNo,
        may_skip: &MaySkip<'_>,
    ) -> Around {
        if !self.is_watched() {
            return Around::default();
        }
        let list = self.list.lock();
        match direction {
            Direction::Forward => list.around_forward(at.unwrap_or_default(), seq, may_skip),
            Direction::Backward => list.around_backward(at, seq, may_skip),
        }
    }

    /// Begins a probe that will walk over `[lo, hi)`, and returns its number; `None` if another
    /// probe is running. REQUIRES: the commit lock.
    #[must_use]
    pub fn begin_probe(&self, direction: Direction, lo: &[u8], hi: Option<&[u8]>) -> Option<u64> {
        let mut list = self.list.lock();
        if list.probe.is_some() {
            return None;
        }
        list.probes += 1;
        let (number, lo, hi) = (list.probes, lo.to_vec(), hi.map(<[u8]>::to_vec));
        list.probe = Some(Probe { number, direction, lo, hi });
        self.update_watched(&mut list);
        Some(number)
    }

    /// Ends a probe that saw no entry in `range`, which is `[lo, hi)`, at its snapshot `since`. The
    /// range is cut at keys that got values during the probe. `range` is `None` if the probe found
    /// no empty range; a range with `deletes` below 256 is not kept.
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
                list.add(EmptyRange::new(lo, hi, since, deletes));
            }
        }
        self.update_watched(&mut list);
    }

    /// Returns the end of the last range that begins at `key` or below it.
    #[must_use]
    pub fn end_before(&self, key: &[u8]) -> Option<Vec<u8>> {
        let list = self.list.lock();
        let before = list.ranges.partition_point(|range| *range.lo <= *key);
        Some(list.ranges[..before].last()?.hi.clone())
    }

    /// Returns the beginning of the first range that ends above `key`.
    #[must_use]
    pub fn begin_after(&self, key: &[u8]) -> Option<Vec<u8>> {
        let list = self.list.lock();
        let upto = list.ranges.partition_point(|range| *range.hi <= *key);
        Some(list.ranges.get(upto)?.lo.clone())
    }

    /// Returns the first and the last key of the open tombstone run in the active memtable, if a
    /// probe of that run is due: the run is long, and the memtable has got enough deletes since the
    /// last request of a probe. Cheap enough to call after every commit.
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
        // If the memtable has fewer deletes than the last request counted, it is a new memtable.
        let new = if deletes >= probed { deletes - probed } else { deletes };
        self.unprobed.fetch_add(new, Ordering::Relaxed);
        memtable.tombstone_run_bounds()
    }

    /// Returns whether so many deletes wait for a probe that commits must wait for it too.
    #[must_use]
    pub fn is_overdue(&self) -> bool {
        self.unprobed.load(Ordering::Relaxed) > UNPROBED_MAX
    }

    /// Records that a probe begins. The probe covers all deletes up to the last request.
    pub fn note_probe(&self) {
        self.unprobed.store(0, Ordering::Relaxed);
    }

    fn update_watched(&self, list: &mut List) {
        let has_use = !list.ranges.is_empty() || list.idle_puts < IDLE_PUTS_MAX;
        let is_complete = list.watched_from.is_some() && has_use;
        if !is_complete {
            list.watched_from = None;
            list.commits.clear();
        }
        let watched = is_complete || !list.ranges.is_empty() || list.probe.is_some();
        self.is_complete.store(is_complete, Ordering::Relaxed);
        self.watched.store(watched, Ordering::Release);
    }
}

#[cfg(all(test, not(shuttle)))]
#[path = "empty_ranges_tests.rs"]
mod tests;
