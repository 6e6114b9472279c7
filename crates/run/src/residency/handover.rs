//! [`Handover`]: the blocks that a merge writes replace the cached blocks that it reads.
//!
//! ```text
//!   cursors of the inputs -- blocks read --> Handover -- covers a new block? --> cache warmer
//! ```
//!
//! A merge reads its inputs and writes its output in key order, so the new cached blocks have the
//! keys that readers use, and if a third of a leaf was cached, a third stays cached.

use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Largest balance, in decoded bytes: a few blocks, because a merge writes a block soon after it
/// has read the blocks merged into it.
const BYTES_MAX: u64 = 64 * 1024;

/// The balance of one job: decoded bytes of cached blocks that the job's cursors have read and its
/// output has not yet replaced. The cursors add to the balance and the writer takes from it, both
/// in the job's steps, which run one at a time.
#[derive(Debug, Default)]
pub struct Handover {
    bytes: AtomicU64,
    /// Number of reads of the last block added.
    reads: AtomicU8,
}

impl Handover {
    /// Creates a handover without bytes.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Adds a block of `bytes` bytes that the job replaces and that was read `reads` times in the
    /// cache. A block that is not cached, or was not read, adds nothing.
    pub(crate) fn add(&self, bytes: u64, reads: u8) {
        if reads > 0 {
            let bytes = self.bytes.load(Ordering::Relaxed) + bytes;
            self.bytes.store(bytes.min(BYTES_MAX), Ordering::Relaxed);
            self.reads.store(reads, Ordering::Relaxed);
        }
    }

    /// Pays for a new block of `bytes` bytes from the balance. Returns how often the last block
    /// added was read; `None` if the balance covers less than half of the new block.
    pub(crate) fn take(&self, bytes: u64) -> Option<u8> {
        let held = self.bytes.load(Ordering::Relaxed);
        let is_covered = held > 0 && held >= bytes / 2;
        is_covered.then(|| {
            self.bytes.store(held.saturating_sub(bytes), Ordering::Relaxed);
            self.reads.load(Ordering::Relaxed)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_is_taken_as_was_added() {
        let handover = Handover::default();
        handover.add(1000, 0);
        assert_eq!(handover.take(1), None, "nothing was read");
        for reads in 1..4 {
            handover.add(1000, reads);
            assert_eq!(handover.take(1100), Some(reads));
        }
        assert_eq!(handover.take(100), None);
        handover.add(400, 1);
        assert_eq!(handover.take(1000), None, "less than half");
        assert_eq!(handover.take(500), Some(1));
    }

    #[test]
    fn the_balance_is_limited() {
        let handover = Handover::default();
        handover.add(10 * BYTES_MAX, 1);
        assert_eq!(handover.take(BYTES_MAX), Some(1));
        assert_eq!(handover.take(1), None);
    }
}
