//! [`ProbeCount`]: how much readers had to do with the arrays since the last new one. They pay for merges with it
//! (`tiers.rs`).

use frondb_core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Fewer are not worth a thought. (But under shuttle, whose readers look a few times.)
const PROBES_MIN: u64 = if cfg!(shuttle) { 8 } else { 256 };

/// Slots that cost as much to merge, for each array that they come from, as an array costs who looks for a key.
const MERGED_PER_PROBE: u64 = 256;

/// Counts looks at the arrays of a memtable. Many threads add; the writer takes.
pub(crate) struct ProbeCount {
    count: AtomicU64,
    /// At this count the next cursor asks whether a merge is worth it.
    due: AtomicU64,
}

impl Default for ProbeCount {
    fn default() -> Self {
        Self { count: AtomicU64::new(0), due: AtomicU64::new(PROBES_MIN) }
    }
}

impl ProbeCount {
    /// A cursor has looked for a key in all arrays.
    pub(crate) fn add(&self) {
        self.count.fetch_add(1, Relaxed);
    }

    /// A cursor has merged so many slots of them.
    pub(crate) fn add_merged(&self, slots: usize) {
        match slots as u64 / MERGED_PER_PROBE {
            0 => {}
            probes => _ = self.count.fetch_add(probes, Relaxed),
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.count.load(Relaxed) as usize
    }

    pub(crate) fn is_due(&self) -> bool {
        self.count.load(Relaxed) >= self.due.load(Relaxed)
    }

    /// They are not worth a merge yet: it is asked again when there are twice as many.
    pub(crate) fn put_off(&self) {
        self.due.store(self.count.load(Relaxed).saturating_mul(2).max(PROBES_MIN), Relaxed);
    }

    /// Spends them.
    pub(crate) fn take(&self) -> usize {
        self.due.store(PROBES_MIN, Relaxed);
        self.count.swap(0, Relaxed) as usize
    }
}
