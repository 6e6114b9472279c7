//! [`IndexPressure`]: whether the parts of block indexes do not fit into the cache.

use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Reads of blocks between two decisions.
const READS: u64 = 1024;
/// The pressure becomes high once there is at least one read of a part for so many reads of blocks.
const HIGH: u64 = 8;
/// It stays high until there is less than one for so many.
const LOW: u64 = 32;

/// Whether reads of index parts are frequent beside those of blocks. One object for all threads;
/// what is lost when two of them count at the same time does no harm.
#[derive(Debug, Default)]
pub(crate) struct IndexPressure {
    blocks: AtomicU64,
    parts: AtomicU64,
    is_high: AtomicBool,
}

impl IndexPressure {
    /// Counts a part, or the index of a run that has one part, that was read from the device.
    pub(crate) fn note_part(&self) {
        self.parts.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a block that was read from the device.
    pub(crate) fn note_block(&self) {
        if self.blocks.fetch_add(1, Ordering::Relaxed) + 1 == READS {
            self.blocks.store(0, Ordering::Relaxed);
            let parts = self.parts.swap(0, Ordering::Relaxed);
            let limit = if self.is_high() { LOW } else { HIGH };
            self.is_high.store(parts * limit >= READS, Ordering::Relaxed);
        }
    }

    /// Whether the cache should hold parts as they are on disk.
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
