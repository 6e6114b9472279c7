//! [`IndexPressure`]: whether the parts of block indexes do not fit into the cache.

use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Block reads between two decisions.
const READS: u64 = 1024;
/// The pressure becomes high if an index part is read at least once for this many block reads.
const HIGH: u64 = 8;
/// The pressure stays high until a part is read less than once for this many block reads.
const LOW: u64 = 32;

/// Whether reads of index parts are frequent compared to reads of blocks. One object for all
/// threads; a count lost to a race between two threads does no harm.
#[derive(Debug, Default)]
pub(crate) struct IndexPressure {
    blocks: AtomicU64,
    parts: AtomicU64,
    is_high: AtomicBool,
}

impl IndexPressure {
    /// Counts the read of an index part, or of a whole index with one part, from the device.
    pub(crate) fn note_part(&self) {
        self.parts.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the read of a block from the device.
    pub(crate) fn note_block(&self) {
        if self.blocks.fetch_add(1, Ordering::Relaxed) + 1 == READS {
            self.blocks.store(0, Ordering::Relaxed);
            let parts = self.parts.swap(0, Ordering::Relaxed);
            let limit = if self.is_high() { LOW } else { HIGH };
            self.is_high.store(parts * limit >= READS, Ordering::Relaxed);
        }
    }

    /// Returns whether the cache should hold index parts as they are on disk.
    pub(crate) fn is_high(&self) -> bool {
        self.is_high.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use super::*;

    #[test]
    fn the_pressure_follows_the_share_of_parts_among_reads() {
        let pressure = IndexPressure::default();
        let after = |blocks: u64, a_part_for: u64| {
            for block in 0..blocks {
                if block % a_part_for == 0 {
                    pressure.note_part();
                }
                pressure.note_block();
            }
            pressure.is_high()
        };
        assert!(!after(4 * READS, HIGH + 1));
        assert!(!after(READS - 1, 1), "too few reads decide nothing");
        assert!(after(1, 1));
        assert!(after(4 * READS, LOW - 1), "it was high before");
        assert!(!after(4 * READS, LOW + 1));
    }
}
