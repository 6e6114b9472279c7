//! [`MemSource`]: a source above the trunk of a tree, which is a memtable or the private runs of a
//! large commit, with the part of the log that recovery needs for it.

use frondb_core::budget::Budget;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::sync::{Arc, Mutex};
use frondb_core::{Lsn, SeqNo};
use frondb_memtable::Memtable;
use frondb_run::Run;
use frondb_space::Extent;

/// A memtable, or the private runs of a large commit, with the part of the log that recovery needs
/// for it. Any thread may use it.
pub struct MemSource {
    /// The memtable. For the runs of a large commit, it holds only the commit's range deletes.
    pub memtable: Arc<Memtable>,
    attached: Option<AttachedRuns>,
    /// Extents of each large value that this source's messages refer to.
    values: Mutex<Vec<Vec<Extent>>>,
    /// The counter that includes this source's memory, and the bytes counted; set when the memtable
    /// is frozen.
    counted: Mutex<Option<(Arc<AtomicU64>, u64)>>,
    /// Start of the first log record with a message of this source; `u64::MAX` while it is empty.
    first_lsn: AtomicU64,
    /// End of the last log record with a message of this source.
    last_lsn: AtomicU64,
    /// Set when the memtable was logged again: recovery needs the old records until the new one is
    /// durable.
    relogged: Mutex<Option<Relogged>>,
    /// Number of messages that scans had taken when a reader last requested a flush.
    flush_asked_at: AtomicU64,
}

/// A memtable that was logged again.
#[derive(Clone, Copy)]
struct Relogged {
    /// Start of the log records that held its messages before.
    old: Lsn,
    /// End of the new record.
    end: Lsn,
}

impl MemSource {
    /// Creates an empty memtable.
    #[must_use]
    pub fn new(budget: &Arc<Budget>) -> Arc<Self> {
        Self::of(Memtable::new(Arc::clone(budget)))
    }

    /// Returns the source of a memtable that may have messages.
    #[must_use]
    pub fn of(memtable: Memtable) -> Arc<Self> {
        Self::with(memtable, None)
    }

    /// Returns the source of a large commit. `memtable` has the commit's range deletes.
    pub fn attached_runs(memtable: Memtable, attached: AttachedRuns) -> Arc<Self> {
        memtable.seal();
        Self::with(memtable, Some(attached))
    }

    fn with(memtable: Memtable, attached: Option<AttachedRuns>) -> Arc<Self> {
        Arc::new(Self {
            memtable: Arc::new(memtable),
            attached,
            values: Mutex::new(Vec::new()),
            counted: Mutex::new(None),
            first_lsn: AtomicU64::new(u64::MAX),
            last_lsn: AtomicU64::new(0),
            relogged: Mutex::new(None),
            flush_asked_at: AtomicU64::new(0),
        })
    }

    /// Records that a reader requests a flush after scans have taken `gathered` messages. Returns
    /// whether to post the request. The flush may have been impossible, so readers repeat the
    /// request when `gathered` has doubled.
    pub(crate) fn ask_for_flush(&self, gathered: u64) -> bool {
        let last = self.flush_asked_at.load(Ordering::Relaxed);
        let exchange = |last, now| {
            self.flush_asked_at.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
        };
        gathered >= last.saturating_mul(2) && exchange(last, gathered).is_ok()
    }

    /// Records that the log record at `[start, end)` has messages for the memtable.
    pub fn logged(&self, start: Lsn, end: Lsn) {
        self.first_lsn.fetch_min(start.get(), Ordering::AcqRel);
        self.last_lsn.fetch_max(end.get(), Ordering::AcqRel);
    }

    /// Records that the log record at `[start, end)` repeats all messages of the memtable; the log
    /// is durable up to `durable`. Recovery needs the old records until the new one is durable: a
    /// power failure could lose the new record, and commits in the old ones may have been
    /// acknowledged.
    pub fn logged_again(&self, start: Lsn, end: Lsn, durable: Lsn) {
        if let Some(old) = self.needed_from(durable) {
            *self.relogged.lock() = Some(Relogged { old, end });
        }
        self.first_lsn.store(start.get(), Ordering::Release);
        self.last_lsn.store(end.get(), Ordering::Release);
    }

    /// Returns the start of the part of the log that recovery needs for this source, if the log is
    /// durable up to `durable`; `None` if recovery needs no log for it.
    pub fn needed_from(&self, durable: Lsn) -> Option<Lsn> {
        match *self.relogged.lock() {
            Some(relogged) if relogged.end > durable => Some(relogged.old),
            _ => self.first_lsn(),
        }
    }

    /// Returns the start of the first log record with messages of this source; `None` if it has
    /// none.
    pub fn first_lsn(&self) -> Option<Lsn> {
        let lsn = self.first_lsn.load(Ordering::Acquire);
        (lsn != u64::MAX).then_some(Lsn(lsn))
    }

    /// Returns the end of the last log record with messages of this source.
    #[must_use]
    pub fn last_lsn(&self) -> Lsn {
        Lsn(self.last_lsn.load(Ordering::Acquire))
    }

    /// Returns the runs of a large commit; `None` for an ordinary memtable.
    #[inline]
    pub fn attached(&self) -> Option<&AttachedRuns> {
        self.attached.as_ref()
    }

    /// Returns the runs of a large commit, newest first; empty for an ordinary memtable. A reader
    /// searches the memtable before them.
    #[inline]
    pub fn runs(&self) -> &[Arc<Run>] {
        self.attached.as_ref().map_or(&[], |attached| &attached.runs)
    }

    /// Returns whether the source has nothing to flush.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.attached.is_none() && self.memtable.is_empty()
    }

    /// Returns the largest SeqNo in this source; [`SeqNo::MIN`] if it is empty.
    pub fn max_seq(&self) -> SeqNo {
        match &self.attached {
            Some(attached) => attached.last,
            None => self.memtable.max_seq().unwrap_or(SeqNo::MIN),
        }
    }

    /// Returns whether a flush of the source is likely to free disk space: most of its messages are
    /// deletes, or it has a range delete.
    pub fn frees_space(&self) -> bool {
        let stats = self.memtable.stats();
        let metas = || self.runs().iter().map(|run| run.meta());
        let deletes = stats.deletes + metas().map(|meta| meta.deletes).sum::<u64>();
        let messages = stats.messages + metas().map(|meta| meta.entries).sum::<u64>();
        stats.range_deletes > 0 || deletes * 2 > messages
    }

    /// Records that a message refers to a large value in these extents, which this source owns from
    /// now on.
    pub fn add_value(&self, extents: Vec<Extent>) {
        self.values.lock().push(extents);
    }

    /// Returns the number of bytes on disk of the large values that this source owns.
    pub fn value_bytes(&self) -> u64 {
        self.values.lock().iter().flatten().map(|extent| extent.bytes()).sum()
    }

    /// Returns whether this source owns the large value in these extents.
    pub fn owns_value(&self, extents: &[Extent]) -> bool {
        self.values.lock().iter().any(|value| **value == *extents)
    }

    /// Returns the large values, which the caller owns from now on.
    pub fn take_values(&self) -> Vec<Vec<Extent>> {
        std::mem::take(&mut *self.values.lock())
    }

    /// Counts the source's memory in `sum` until the source is dropped or counted in another sum.
    pub fn count_in(&self, sum: &Arc<AtomicU64>) {
        let bytes = self.memtable.bytes();
        sum.fetch_add(bytes, Ordering::Relaxed);
        let before = self.counted.lock().replace((Arc::clone(sum), bytes));
        if let Some((sum, bytes)) = before {
            sum.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

/// The runs of a large commit that a tree has above its trunk.
pub struct AttachedRuns {
    /// The transaction that wrote the runs.
    pub txn: u64,
    /// The number of the pending part under which the manifest lists the runs.
    pub part: u32,
    /// The runs, newest first, with the SeqNos of the commit.
    pub runs: Vec<Arc<Run>>,
    /// The last SeqNo of the part.
    pub last: SeqNo,
    /// Whether the runs may become bases of leaves.
    pub are_base: bool,
}

impl Drop for MemSource {
    fn drop(&mut self) {
        if let Some((sum, bytes)) = self.counted.lock().take() {
            sum.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    /// Rules 6 and 10: a commit may have been acknowledged when its first record was durable, so
    /// the log keeps that record until the newer one is durable, however often a memtable is logged
    /// again.
    #[test]
    fn the_old_place_is_needed_until_the_new_one_is_durable() {
        let source = MemSource::new(&Budget::new(1 << 20));
        assert_eq!((source.first_lsn(), source.needed_from(Lsn(0))), (None, None));
        source.logged(Lsn(100), Lsn(150));
        source.logged(Lsn(300), Lsn(350));
        assert_eq!((source.needed_from(Lsn(0)), source.last_lsn()), (Some(Lsn(100)), Lsn(350)));

        source.logged_again(Lsn(900), Lsn(950), Lsn(400));
        assert_eq!(source.needed_from(Lsn(949)), Some(Lsn(100)));
        assert_eq!(source.needed_from(Lsn(950)), Some(Lsn(900)));
        // A flush syncs the log up to `last_lsn`.
        assert_eq!((source.first_lsn(), source.last_lsn()), (Some(Lsn(900)), Lsn(950)));

        source.logged_again(Lsn(2000), Lsn(2050), Lsn(949));
        assert_eq!(source.needed_from(Lsn(2049)), Some(Lsn(100)), "900 was never durable");
        source.logged_again(Lsn(3000), Lsn(3050), Lsn(2050));
        assert_eq!(source.needed_from(Lsn(3049)), Some(Lsn(2000)));
        assert_eq!(source.needed_from(Lsn(3050)), Some(Lsn(3000)));
    }
}
