//! [`Handover`]: blocks that a merge writes take the place of the cached blocks that it reads.
//!
//! ```text
//!   cursors of the inputs -- blocks in use --> Handover -- covers a new block? --> cache warmer
//! ```
//!
//! A merge passes inputs and output in key order, so the blocks that are cached are those of the
//! keys that readers want, and a leaf of which a third is cached is a third cached afterwards.

use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU64, Ordering};

/// Largest balance in bytes of blocks before encoding: a few blocks, because an output block follows closely on the blocks
/// that it was merged from.
const BYTES_MAX: u64 = 64 * 1024;

/// The balance of one job. Its cursors add and its writer takes, both in the job's steps, which one
/// thread at a time takes.
#[derive(Debug, Default)]
pub struct Handover {
    bytes: AtomicU64,
}

impl Handover {
    /// A handover without bytes.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Adds a block of `bytes` before encoding that is in use and that the job replaces.
    pub(crate) fn add(&self, bytes: u64) {
        let bytes = self.bytes.load(Ordering::Relaxed) + bytes;
        self.bytes.store(bytes.min(BYTES_MAX), Ordering::Relaxed);
    }

    /// Takes a block of `bytes` before encoding; `false` if less than half of it is covered.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let held = self.bytes.load(Ordering::Relaxed);
        let is_covered = held > 0 && held >= bytes / 2;
        if is_covered {
            self.bytes.store(held.saturating_sub(bytes), Ordering::Relaxed);
        }
        is_covered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_is_taken_as_was_added() {
        let handover = Handover::default();
        assert!(!handover.take(1), "nothing was added");
        for _ in 0..10 {
            handover.add(1000);
            assert!(handover.take(1100));
        }
        assert!(!handover.take(100));
        handover.add(400);
        assert!(!handover.take(1000), "less than half");
        assert!(handover.take(500));
    }

    #[test]
    fn the_balance_is_limited() {
        let handover = Handover::default();
        handover.add(10 * BYTES_MAX);
        assert!(handover.take(BYTES_MAX));
        assert!(!handover.take(1));
    }
}
