//! [`OwnWrites`]: the uncommitted messages of one tree as readers of the transaction see them (rule
//! 20).

use std::ops::Bound;

use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::{Chunk, Direction, Result, SeqNo, Source};
use frondb_memtable::Memtable;
use frondb_merge::Lookup;
use frondb_run::{ReadMode, Run, RunCursor};
use frondb_space::Hold;

use crate::base::BaseSource;
use crate::empty::{OwnEmptyRanges, Seen};
use crate::writes::Excluded;

/// Readers of the transaction see the SeqNo `OWN_SEQS + n` for the transaction's message number
/// `n`. It is above every SeqNo of committed data and of an overlay.
pub const OWN_SEQS: SeqNo = SeqNo(1 << 62);

/// Readers see the SeqNo `OVERLAY_SEQS + n` for message number `n` of an overlay
/// ([`WriteSet::overlay`](crate::WriteSet::overlay)). It is above every SeqNo of committed data,
/// and below the SeqNos of own messages.
pub const OVERLAY_SEQS: SeqNo = SeqNo(1 << 61);

/// Returns the SeqNo that readers of the transaction see for message number `n`; `from` is the
/// SeqNo for number 0.
#[inline]
#[must_use]
pub(crate) fn own_seq(from: SeqNo, n: u64) -> SeqNo {
    SeqNo(from.get() + n)
}

#[inline]
fn is_excluded(excluded: &[(u64, u64)], n: u64) -> bool {
    // An interval `(after, upto)` excludes the numbers above `after` and at most `upto`. The
    // intervals ascend and are disjoint.
    let at = excluded.partition_point(|&(_, upto)| upto < n);
    excluded.get(at).is_some_and(|&(after, _)| after < n)
}

/// The own messages of a transaction in one tree at one moment, without later writes. A clone is
/// cheap; any thread may read. Keeps the runs and large values of the messages alive.
#[derive(Clone)]
pub struct OwnWrites {
    /// The SeqNo that readers see for message number 0.
    pub(crate) from: SeqNo,
    /// The messages in memory, with message numbers as SeqNos.
    pub(crate) index: Option<Arc<Memtable>>,
    /// Largest visible message number.
    pub(crate) upto: u64,
    /// Numbers in `index` that were rolled back.
    pub(crate) excluded: Excluded,
    /// Private runs, newest first, all older than `index`.
    pub(crate) runs: Arc<[Arc<Run>]>,
    /// Largest number of the base runs among `runs`: see [`BaseRuns`](crate::BaseRuns).
    pub(crate) base_upto: u64,
    /// Range deletes, with numbers as SeqNos.
    pub(crate) range_deletes: Arc<[RangeDeletes]>,
    /// Ranges in which the transaction is known to see no entry; `None` in the result of
    /// `TreeWrites::own_without_hold`.
    pub(crate) empty: Option<Arc<OwnEmptyRanges>>,
    /// Number of rollbacks to savepoints before this value was made.
    pub(crate) rollbacks: u64,
    /// Keeps the large values to which messages refer; `None` if there are none.
    pub(crate) _hold: Option<Arc<Hold>>,
}

impl OwnWrites {
    /// Passes the transaction's messages for `key` to the lookup, newest first, until the lookup
    /// needs no more.
    ///
    /// # Errors
    /// `Corruption` or a device error of a private run.
    pub fn get(&self, key: &[u8], lookup: &mut Lookup) -> Result<()> {
        let upto = SeqNo(self.upto);
        let newest = self.range_deletes.iter().map(|set| set.newest_covering(key, upto)).max();
        if let Some(newest) = newest.filter(|&newest| newest > SeqNo(0)) {
            lookup.hide_below(own_seq(self.from, newest.get()));
        }
        if let Some(index) = &self.index {
            index.get(key, SeqNo(self.upto), &mut |n, kind, value| {
                is_excluded(&self.excluded, n.get())
                    || lookup.feed(own_seq(self.from, n.get()), kind, value)
            });
        }
        for run in &*self.runs {
            if !lookup.wants_more() {
                break;
            }
            run.get(key, SeqNo::MAX, &mut |n, kind, value| {
                Ok(lookup.feed(own_seq(self.from, n.get()), kind, value))
            })?;
        }
        Ok(())
    }

    /// Whether no point message has a key in `[lo, hi)`; range deletes do not count. `true` is
    /// exact; `false` may be wrong.
    #[must_use]
    pub fn is_empty_in(&self, lo: &[u8], hi: Option<&[u8]>) -> bool {
        let in_memory = |index: &Arc<Memtable>| {
            let below_lo = index.approximate_rank(lo);
            below_lo != hi.map_or_else(|| index.len(), |hi| index.approximate_rank(hi))
        };
        let meets = |run: &Arc<Run>| {
            hi.is_none_or(|hi| *run.meta().first_key < *hi) && *lo <= *run.meta().last_key
        };
        !self.index.as_ref().is_some_and(in_memory) && !self.runs.iter().any(meets)
    }

    /// Returns the ranges in which the transaction is known to see no entry, and describes the
    /// writes that a reader at snapshot `at` sees.
    #[must_use]
    pub fn empty_ranges(&self, at: SeqNo) -> Option<(&OwnEmptyRanges, Seen)> {
        let (upto, rollbacks) = (self.upto, self.rollbacks);
        self.empty.as_deref().map(|empty| (empty, Seen { at, upto, rollbacks }))
    }

    /// Returns the approximate number of messages with keys in `[lo, hi)`, including messages that
    /// were rolled back.
    ///
    /// # Errors
    /// `Corruption` or a device error of a private run's index.
    pub fn messages(&self, lo: &[u8], hi: Option<&[u8]>) -> Result<u64> {
        let in_memory = self.index.as_ref().map_or(0, |index| {
            let end = hi.map_or_else(|| index.len(), |hi| index.approximate_rank(hi));
            end.saturating_sub(index.approximate_rank(lo))
        });
        self.runs.iter().try_fold(in_memory, |sum, run| {
            let end = hi.map_or(Ok(run.meta().entries), |hi| run.rank(hi))?;
            Ok(sum + end.saturating_sub(run.rank(lo)?))
        })
    }

    /// Returns cursors over the messages with keys in `[lo, hi)`, the cursor over the newest
    /// messages first, with the SeqNos that readers see.
    ///
    /// # Errors
    /// `Corruption` or a device error of a private run's index.
    pub fn sources(
        &self,
        direction: Direction,
        lo: &[u8],
        hi: Option<&[u8]>,
    ) -> Result<Vec<Box<dyn Source>>> {
        let mut sources: Vec<Box<dyn Source>> = Vec::with_capacity(self.runs.len() + 1);
        if let Some(index) = &self.index {
            let bounds = (Bound::Included(lo), hi.map_or(Bound::Unbounded, Bound::Excluded));
            let cursor = index.cursor(direction, bounds.0, bounds.1, SeqNo(self.upto));
            let excluded = Arc::clone(&self.excluded);
            sources.push(Box::new(OwnSource { inner: cursor, excluded, shift: self.from.get() }));
        }
        let meets = |run: &&Arc<Run>| {
            let meta = run.meta();
            *lo <= *meta.last_key && hi.is_none_or(|hi| *meta.first_key < *hi)
        };
        let excluded = || Arc::default();
        let mut base = Vec::new();
        for run in self.runs.iter().filter(meets) {
            if run.meta().max_seq.get() <= self.base_upto {
                base.push(Arc::clone(run));
                continue;
            }
            let run = Arc::clone(run);
            let inner = RunCursor::new(run, direction, Some(lo), hi, ReadMode::Scan)?;
            sources.push(Box::new(OwnSource {
                inner,
                excluded: excluded(),
                shift: self.from.get(),
            }));
        }
        if !base.is_empty() {
            let inner = BaseSource::new(base, direction, lo, hi);
            sources.push(Box::new(OwnSource {
                inner,
                excluded: excluded(),
                shift: self.from.get(),
            }));
        }
        Ok(sources)
    }

    /// Returns the range deletes, in several sets, with message numbers as SeqNos. Range deletes
    /// above [`upto`](Self::upto) are not visible.
    #[must_use]
    pub fn range_deletes(&self) -> &Arc<[RangeDeletes]> {
        &self.range_deletes
    }

    /// Returns the largest visible message number.
    #[must_use]
    pub fn upto(&self) -> u64 {
        self.upto
    }
}

/// A source that skips rolled-back messages of `inner`, and adds `shift` to message numbers, which
/// makes them the SeqNos that readers see.
pub(crate) struct OwnSource<S> {
    pub(crate) inner: S,
    pub(crate) excluded: Excluded,
    pub(crate) shift: u64,
}

impl<S: Source> Source for OwnSource<S> {
    fn next_chunk(&mut self, chunk: &mut Chunk) -> Result<bool> {
        loop {
            if !self.inner.next_chunk(chunk)? {
                return Ok(false);
            }
            if !self.excluded.is_empty() {
                leave_out(chunk, &self.excluded);
            }
            if !chunk.is_empty() {
                break;
            }
        }
        if self.shift > 0 {
            for seq in chunk.seqs.iter_mut() {
                *seq = SeqNo(seq.get() + self.shift);
            }
        }
        Ok(true)
    }

    fn expect(&mut self, messages: usize) {
        self.inner.expect(messages);
    }

    fn keep_small(&mut self, messages: usize) {
        self.inner.keep_small(messages);
    }

    fn skip(&mut self, key: &[u8]) -> Result<()> {
        self.inner.skip(key)
    }
}

fn leave_out(chunk: &mut Chunk, excluded: &[(u64, u64)]) {
    if !chunk.seqs.iter().any(|n| is_excluded(excluded, n.get())) {
        return;
    }
    let mut kept = Chunk::new();
    for i in 0..chunk.len() {
        if !is_excluded(excluded, chunk.seqs[i].get()) {
            kept.push(chunk.key(i), chunk.seqs[i], chunk.kinds[i], chunk.value(i));
        }
    }
    *chunk = kept;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_exclude_the_numbers_inside() {
        let excluded = [(3, 5), (8, 9)];
        let out: Vec<u64> = (0..12).filter(|&n| is_excluded(&excluded, n)).collect();
        assert_eq!(out, [4, 5, 9]);
        assert!(!is_excluded(&[], 1));
    }
}
