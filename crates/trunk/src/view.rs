//! A view: the part of a run that a node holds (rule 1).

use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::{Direction, Result, SeqNo};
use frondb_run::{ReadMode, Run, RunCursor};

use crate::key::Key;

/// The part `[lo, hi)` of a run. There may be several views of one run; the run lives as long as
/// any of them.
#[derive(Clone, Debug)]
pub struct View {
    /// The run.
    pub run: Arc<Run>,
    /// First key that the view shows; empty for no bound.
    pub lo: Key,
    /// First key after the view; `None` for no bound.
    pub hi: Option<Key>,
    /// Estimated number of equal parts into which the run is divided; the view shows one of them.
    pub shares: u32,
}

impl View {
    /// Returns a view of the whole `run` in a node with the range `[lo, hi)`.
    #[must_use]
    pub fn whole(run: Arc<Run>, lo: Key, hi: Option<Key>) -> Self {
        Self { run, lo, hi, shares: 1 }
    }

    /// Estimated key and value bytes.
    #[must_use]
    pub fn raw_bytes(&self) -> u64 {
        self.run.meta().raw_bytes / u64::from(self.shares)
    }

    /// Estimated bytes on disk.
    #[must_use]
    pub fn disk_bytes(&self) -> u64 {
        self.run.meta().disk_bytes() / u64::from(self.shares)
    }

    /// Estimated number of messages.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.run.meta().entries / u64::from(self.shares)
    }

    /// Estimated number of deletes.
    #[must_use]
    pub fn deletes(&self) -> u64 {
        self.run.meta().deletes / u64::from(self.shares)
    }

    /// Estimated number of references to large values; 0 only if the run has none.
    #[must_use]
    pub fn refs(&self) -> u64 {
        self.run.meta().refs.div_ceil(u64::from(self.shares))
    }

    /// Returns the bounds to pass to a cursor; `None` for no bound.
    #[must_use]
    pub fn bounds(&self) -> (Option<&[u8]>, Option<&[u8]>) {
        ((!self.lo.is_empty()).then_some(&*self.lo), self.hi.as_deref())
    }

    /// Returns a cursor over everything that the view shows.
    pub(crate) fn cursor(&self, direction: Direction, mode: ReadMode) -> Result<RunCursor> {
        let (lo, hi) = self.bounds();
        RunCursor::new(Arc::clone(&self.run), direction, lo, hi, mode)
    }

    /// Whether the view shows at least one key of the run.
    #[must_use]
    pub fn is_visible(&self) -> bool {
        let meta = self.run.meta();
        *self.lo <= *meta.last_key
            && self.hi.as_ref().is_none_or(|hi| *meta.first_key < **hi && self.lo < *hi)
    }

    /// Returns a lower bound of the keys that the view shows.
    #[must_use]
    pub fn first_key(&self) -> &[u8] {
        std::cmp::max(&*self.lo, &*self.run.meta().first_key)
    }

    /// Whether range deletes hide everything that the view shows from a reader at `snapshot` and
    /// from all later readers.
    #[must_use]
    pub fn is_hidden_by(&self, deletes: &RangeDeletes, snapshot: SeqNo) -> bool {
        if deletes.is_empty() {
            return false;
        }
        let meta = self.run.meta();
        let end = match &self.hi {
            Some(hi) if **hi <= *meta.last_key => hi.to_vec(),
            // The smallest key after `last_key`.
            _ => [&*meta.last_key, &[0]].concat(),
        };
        let hidden_below = deletes.covers_wholly(self.first_key(), Some(&end), snapshot);
        hidden_below.is_some_and(|seq| meta.max_seq < seq)
    }

    /// Whether `key` lies within the view's bounds.
    #[must_use]
    pub fn covers(&self, key: &[u8]) -> bool {
        *self.lo <= *key && self.hi.as_ref().is_none_or(|hi| *key < **hi)
    }

    /// Returns the view without the keys below `lo`; `below` is the estimated number of messages of
    /// the run with such keys. `None` if nothing remains.
    #[must_use]
    pub fn truncated(&self, lo: &Key, below: u64) -> Option<Self> {
        let mut view = self.cut(lo, None, 1)?;
        let entries = self.run.meta().entries;
        let left = entries.saturating_sub(below).min(self.entries()).max(1);
        view.shares = u32::try_from((entries + left / 2) / left).unwrap_or(u32::MAX).max(1);
        Some(view)
    }

    /// Returns the view cut to `[lo, hi)`, counted as one of `parts` equal parts of this view;
    /// `None` if nothing remains.
    #[must_use]
    pub fn cut(&self, lo: &Key, hi: Option<&Key>, parts: u32) -> Option<Self> {
        let lo = if *self.lo < **lo { Arc::clone(lo) } else { Arc::clone(&self.lo) };
        let hi = match (&self.hi, hi) {
            (Some(a), Some(b)) => Some(Arc::clone(if a < b { a } else { b })),
            (a, b) => a.as_ref().or(b).map(Arc::clone),
        };
        let meta = self.run.meta();
        let whole = *lo <= *meta.first_key && hi.as_ref().is_none_or(|hi| *meta.last_key < **hi);
        let shares = if whole { 1 } else { self.shares.saturating_mul(parts.max(1)) };
        let view = Self { run: Arc::clone(&self.run), lo, hi, shares };
        view.is_visible().then_some(view)
    }
}
