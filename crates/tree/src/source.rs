//! [`MemSource`]: what a tree has above its trunk: a memtable, or the runs of a large commit, and the
//! part of the log that recovery would need for it.

use frondb_core::budget::Budget;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::sync::{Arc, Mutex};
use frondb_core::{Lsn, SeqNo};
use frondb_memtable::Memtable;
use frondb_run::Run;
use frondb_space::Extent;

/// A source above the trunk and the part of the log that it needs: a memtable, or the private runs of
/// a large commit (then the memtable has the commit's range deletes and nothing else).
pub struct MemSource {
    /// The memtable; of a commit's runs, its range deletes and nothing else.
    pub memtable: Arc<Memtable>,
    attached: Option<AttachedRuns>,
    /// Extents of the large values that its messages refer to.
    values: Mutex<Vec<Vec<Extent>>>,
    /// Set when it is frozen: the sum it is counted in, and its share.
    counted: Mutex<Option<(Arc<AtomicU64>, u64)>>,
    /// Start of the first record with a message in it; `u64::MAX` while it is empty.
    first_lsn: AtomicU64,
    /// End of the last such record.
    last_lsn: AtomicU64,
    /// It was logged again, and the old records are needed until the new one is durable.
    relogged: Mutex<Option<Relogged>>,
}

/// Where a memtable's log began before it was logged again, and where the new record ends.
#[derive(Clone, Copy)]
struct Relogged {
    old: Lsn,
    end: Lsn,
}

impl MemSource {
    /// An empty memtable.
    #[must_use]
    pub fn new(budget: &Arc<Budget>) -> Arc<Self> {
        Self::of(Memtable::new(Arc::clone(budget)))
    }

    /// A memtable that has messages already.
    #[must_use]
    pub fn of(memtable: Memtable) -> Arc<Self> {
        Self::with(memtable, None)
    }

    /// What a large commit brings to a tree; `memtable` has its range deletes.
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
        })
    }

    /// A record at `[start, end)` has messages for the memtable.
    pub fn logged(&self, start: Lsn, end: Lsn) {
        self.first_lsn.fetch_min(start.get(), Ordering::AcqRel);
        self.last_lsn.fetch_max(end.get(), Ordering::AcqRel);
    }

    /// The memtable was logged again as a whole at `[start, end)`; the log was durable up to
    /// `durable` before. The old records stay needed until the new one is durable: a power failure
    /// could take it, and what it repeats may have been promised.
    pub fn logged_again(&self, start: Lsn, end: Lsn, durable: Lsn) {
        if let Some(old) = self.needed_from(durable) {
            *self.relogged.lock() = Some(Relogged { old, end });
        }
        self.first_lsn.store(start.get(), Ordering::Release);
        self.last_lsn.store(end.get(), Ordering::Release);
    }

    /// Where the log begins that recovery would need for it, if the log is durable up to
    /// `durable`.
    pub fn needed_from(&self, durable: Lsn) -> Option<Lsn> {
        match *self.relogged.lock() {
            Some(relogged) if relogged.end > durable => Some(relogged.old),
            _ => self.first_lsn(),
        }
    }

    /// Where the log that holds its messages begins, if it has any.
    pub fn first_lsn(&self) -> Option<Lsn> {
        let lsn = self.first_lsn.load(Ordering::Acquire);
        (lsn != u64::MAX).then_some(Lsn(lsn))
    }

    /// Where the log that holds its messages ends.
    #[must_use]
    pub fn last_lsn(&self) -> Lsn {
        Lsn(self.last_lsn.load(Ordering::Acquire))
    }

    /// What makes it the source of a large commit.
    #[inline]
    pub fn attached(&self) -> Option<&AttachedRuns> {
        self.attached.as_ref()
    }

    /// Its runs, to be read after its memtable; newest first. A memtable's has none.
    #[inline]
    pub fn runs(&self) -> &[Arc<Run>] {
        self.attached.as_ref().map_or(&[], |attached| &attached.runs)
    }

    /// Whether there is nothing to flush.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.attached.is_none() && self.memtable.is_empty()
    }

    /// Largest SeqNo in it.
    pub fn max_seq(&self) -> SeqNo {
        match &self.attached {
            Some(attached) => attached.last,
            None => self.memtable.max_seq().unwrap_or(SeqNo::MIN),
        }
    }

    /// Whether flushing it leads to space being freed: it mostly deletes.
    pub fn frees_space(&self) -> bool {
        let stats = self.memtable.stats();
        let metas = || self.runs().iter().map(|run| run.meta());
        let deletes = stats.deletes + metas().map(|meta| meta.deletes).sum::<u64>();
        let messages = stats.messages + metas().map(|meta| meta.entries).sum::<u64>();
        stats.range_deletes > 0 || deletes * 2 > messages
    }

    /// A message refers to a value in these extents.
    pub fn add_value(&self, extents: Vec<Extent>) {
        self.values.lock().push(extents);
    }

    /// Bytes on disk of the large values that it takes care of.
    pub fn value_bytes(&self) -> u64 {
        self.values.lock().iter().flatten().map(|extent| extent.bytes()).sum()
    }

    /// Whether it takes care of the large value in these extents.
    pub fn owns_value(&self, extents: &[Extent]) -> bool {
        self.values.lock().iter().any(|value| **value == *extents)
    }

    /// The large values, which the caller takes care of from now on.
    pub fn take_values(&self) -> Vec<Vec<Extent>> {
        std::mem::take(&mut *self.values.lock())
    }

    /// Counts its memory in `sum`, and no longer where it was counted before, until it goes.
    pub fn count_in(&self, sum: &Arc<AtomicU64>) {
        let bytes = self.memtable.bytes();
        sum.fetch_add(bytes, Ordering::Relaxed);
        let before = self.counted.lock().replace((Arc::clone(sum), bytes));
        if let Some((sum, bytes)) = before {
            sum.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

/// The runs of a large commit that its tree has above the trunk.
pub struct AttachedRuns {
    /// The transaction, and the part of it that the manifest has as pending.
    pub txn: u64,
    /// See `txn`.
    pub part: u32,
    /// Newest first, with SeqNos.
    pub runs: Vec<Arc<Run>>,
    /// The last SeqNo that the part has.
    pub last: SeqNo,
    /// Whether the runs are fit for a base.
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

    /// Rules 6 and 10: what was logged again may have been promised where it was logged first, so
    /// the log keeps that place until the new one is durable, however often it is logged again.
    #[test]
    fn the_old_place_is_needed_until_the_new_one_is_durable() {
        let slot = MemSource::new(&Budget::new(1 << 20));
        assert_eq!((slot.first_lsn(), slot.needed_from(Lsn(0))), (None, None));
        slot.logged(Lsn(100), Lsn(150));
        slot.logged(Lsn(300), Lsn(350));
        assert_eq!((slot.needed_from(Lsn(0)), slot.last_lsn()), (Some(Lsn(100)), Lsn(350)));

        slot.logged_again(Lsn(900), Lsn(950), Lsn(400));
        assert_eq!(slot.needed_from(Lsn(949)), Some(Lsn(100)));
        assert_eq!(slot.needed_from(Lsn(950)), Some(Lsn(900)));
        // A flush syncs the log up to here.
        assert_eq!((slot.first_lsn(), slot.last_lsn()), (Some(Lsn(900)), Lsn(950)));

        slot.logged_again(Lsn(2000), Lsn(2050), Lsn(949));
        assert_eq!(slot.needed_from(Lsn(2049)), Some(Lsn(100)), "900 was never durable");
        slot.logged_again(Lsn(3000), Lsn(3050), Lsn(2050));
        assert_eq!(slot.needed_from(Lsn(3049)), Some(Lsn(2000)));
        assert_eq!(slot.needed_from(Lsn(3050)), Some(Lsn(3000)));
    }
}
