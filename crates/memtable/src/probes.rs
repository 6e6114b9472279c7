//! [`ProbeCount`]: counts the work of readers in the arrays since the last array was made or a
//! merge step was done for readers. Once that work exceeds the cost of a merge, arrays are merged
//! early (`tiers.rs`). Also counts the messages that cursors have taken since the memtable was
//! made; their number decides when a flush is worthwhile.

use frondb_core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Minimum number of probes that justify a merge. (Shuttle's readers make only a few probes.)
const PROBES_MIN: u64 = if cfg!(shuttle) { 8 } else { 256 };

/// Merging this many slots costs a cursor as much time for each array as one search in the array.
const MERGED_PER_PROBE: u64 = 256;

/// Counts probes of a memtable's arrays. Many threads add; the writer takes and resets the count.
pub(crate) struct ProbeCount {
    count: AtomicU64,
    /// The count at which the next cursor checks whether a merge pays off.
    due: AtomicU64,
    /// Messages that cursors have gathered.
    gathered: AtomicU64,
}

impl Default for ProbeCount {
    fn default() -> Self {
        Self {
            count: AtomicU64::new(0),
            due: AtomicU64::new(PROBES_MIN),
            gathered: AtomicU64::new(0),
        }
    }
}

impl ProbeCount {
    /// Counts a cursor's search for a key in all arrays.
    pub(crate) fn add(&self) {
        self.count.fetch_add(1, Relaxed);
    }

    /// Counts `slots` slots that a cursor merged.
    pub(crate) fn add_merged(&self, slots: usize) {
        self.gathered.fetch_add(slots as u64, Relaxed);
        match slots as u64 / MERGED_PER_PROBE {
            0 => {}
            probes => _ = self.count.fetch_add(probes, Relaxed),
        }
    }

    /// Returns the number of messages that cursors have gathered since the memtable was made.
    pub(crate) fn gathered(&self) -> u64 {
        self.gathered.load(Relaxed)
    }

    pub(crate) fn count(&self) -> usize {
        self.count.load(Relaxed) as usize
    }

    pub(crate) fn is_due(&self) -> bool {
        self.count.load(Relaxed) >= self.due.load(Relaxed)
    }

    /// Postpones the next check until the count has doubled: the probes so far do not justify a
    /// merge.
    pub(crate) fn postpone(&self) {
        self.due.store(self.count.load(Relaxed).saturating_mul(2).max(PROBES_MIN), Relaxed);
    }

    /// Returns the count and resets it.
    pub(crate) fn take(&self) -> usize {
        self.due.store(PROBES_MIN, Relaxed);
        self.count.swap(0, Relaxed) as usize
    }
}
