//! [`Share`]: the part of the cache memory that rows may take from blocks.
//!
//! A cached block answers lookups of all of its rows, and scans; the memory of one block keeps some
//! fifty rows that were looked up. Which is better depends on the load: rows, if a few keys that
//! are not neighbours are looked up again and again; blocks, if neighbours are read. So hits of
//! both are counted, and memory moves in small steps to the side with more hits per byte. A step is
//! due after a number of reads from the device. The reads of scans count too, so that blocks can
//! regain memory under a load of scans.

use frondb_core::sync::atomic::{AtomicU64, Ordering};

/// The memory that rows and blocks share is divided into this many parts.
const PARTS: u64 = 64;
/// Smallest share: enough rows to show whether they deserve more memory.
const PARTS_MIN: u64 = 3;
/// Largest share: blocks and indexes need the rest.
const PARTS_MAX: u64 = 48;
/// Share at the beginning.
const PARTS_FIRST: u64 = 8;

/// Minimum number of reads between two steps. With much memory, a step is due after as many reads
/// as would fill one part with blocks.
const PERIOD_MIN: u64 = 1024;
/// Assumed size of a block in the cache. Only the time between steps depends on it, so it need not
/// follow the default of trees.
const BLOCK_BYTES: u64 = 16 << 10;

/// The part of the cache memory that rows may take; see the module's head. Any thread may use it.
pub(crate) struct Share {
    parts: AtomicU64,
    reads: AtomicU64,
    /// Bytes of block indexes that were read from the device.
    index_bytes: AtomicU64,
}

/// The hits since the last step, and the bytes of the memory that served them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    pub(crate) hits: u64,
    pub(crate) bytes: u64,
}

impl Default for Share {
    fn default() -> Self {
        Self {
            parts: AtomicU64::new(PARTS_FIRST),
            reads: AtomicU64::new(0),
            index_bytes: AtomicU64::new(0),
        }
    }
}

impl Share {
    /// Returns the number of bytes that rows may take of the `bytes` that rows and blocks share.
    pub(crate) fn of(&self, bytes: u64) -> u64 {
        bytes / PARTS * self.parts.load(Ordering::Relaxed)
    }

    /// Counts a read of a block from the device; returns whether a [`step`](Self::step) is due.
    /// `memory` is the budget's total.
    pub(crate) fn note_read(&self, memory: u64) -> bool {
        let period = (memory / PARTS / BLOCK_BYTES).max(PERIOD_MIN);
        (self.reads.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(period)
    }

    /// Moves one part to the side with more hits per byte. The rows get a part only if they use
    /// their present share.
    pub(crate) fn step(&self, rows: Use, blocks: Use) {
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        let by_rows = product(rows.hits, blocks.bytes);
        let by_blocks = product(blocks.hits, rows.bytes);
        let parts = self.parts.load(Ordering::Relaxed);
        let all = u128::from(rows.bytes) + u128::from(blocks.bytes);
        let are_used = u128::from(rows.bytes) * u128::from(PARTS) + all >= all * u128::from(parts);
        let next = match by_rows.cmp(&by_blocks) {
            std::cmp::Ordering::Greater if are_used => parts + 1,
            std::cmp::Ordering::Less => parts - 1,
            _ => parts,
        };
        // Two threads that step at the same time make a single step.
        self.parts.store(next.clamp(PARTS_MIN, PARTS_MAX), Ordering::Relaxed);
    }

    /// Counts `bytes` of block indexes that were read from the device. Each time that the bytes
    /// read reach the size of one part, moves one part to the blocks. `memory` is the budget's
    /// total.
    pub(crate) fn note_index_read(&self, bytes: u64, memory: u64) {
        let part = (memory / PARTS).max(1);
        let before = self.index_bytes.fetch_add(bytes, Ordering::Relaxed);
        if (before + bytes) / part == before / part {
            return;
        }
        let parts = self.parts.load(Ordering::Relaxed);
        self.parts.store((parts - 1).max(PARTS_MIN), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(hits: u64, bytes: u64) -> Use {
        Use { hits, bytes }
    }

    fn settled(rows: Use, blocks: Use) -> u64 {
        let share = Share::default();
        (0..100).for_each(|_| share.step(rows, blocks));
        share.of(PARTS)
    }

    #[test]
    fn memory_moves_to_the_side_with_more_hits_a_byte() {
        assert_eq!(settled(of(10, 300), of(3, 100)), PARTS_MAX);
        assert_eq!(settled(of(10, 100), of(11, 100)), PARTS_MIN);
        assert_eq!(settled(of(10, 100), of(20, 200)), PARTS_FIRST);
        assert_eq!(settled(of(u64::MAX, u64::MAX), of(u64::MAX, u64::MAX)), PARTS_FIRST);
    }

    #[test]
    fn rows_do_not_get_what_they_do_not_use() {
        // Rows use a half, 32 parts; their share may be up to two parts more, so that they can
        // grow.
        assert_eq!(settled(of(10, 100), of(1, 100)), 34);
        assert_eq!(settled(of(10, 0), of(1, 100)), PARTS_FIRST);
    }

    #[test]
    fn rows_without_memory_or_without_a_hit_do_not_grow() {
        assert_eq!(settled(of(0, 0), of(5, 100)), PARTS_FIRST);
        assert_eq!(settled(of(0, 100), of(5, 100)), PARTS_MIN);
        assert_eq!(settled(of(0, 100), of(0, 100)), PARTS_FIRST);
        let share = Share::default();
        (0..100).for_each(|_| share.note_index_read(10, 640));
        assert_eq!(share.of(PARTS), PARTS_MIN);
    }

    #[test]
    fn indexes_take_a_part_back_when_a_part_of_them_was_read() {
        let share = Share::default();
        let memory = 1000 * PARTS;
        (0..9).for_each(|_| share.note_index_read(100, memory));
        assert_eq!(share.of(PARTS), PARTS_FIRST);
        share.note_index_read(100, memory);
        assert_eq!(share.of(PARTS), PARTS_FIRST - 1);
        share.note_index_read(999, memory);
        assert_eq!(share.of(PARTS), PARTS_FIRST - 1);
        share.note_index_read(1, memory);
        assert_eq!(share.of(PARTS), PARTS_FIRST - 2);
    }

    #[test]
    fn a_step_is_due_once_a_period() {
        for (memory, period) in [(16 << 20, PERIOD_MIN), (8 << 30, 8192)] {
            let share = Share::default();
            let due = (0..10 * period).filter(|_| share.note_read(memory)).count();
            assert_eq!(due, 10);
        }
    }
}
