//! [`ReadCredit`]: whether the reads of the engine justify caching a block that is being written.

use frondb_core::sync::atomic::{AtomicU64, Ordering};

/// Maximum unused credit, in blocks. Reads beyond it earn nothing.
const CREDIT_BLOCKS_MAX: u64 = 1 << 14;

/// Compares the number of blocks cached as they were written with the number of reads.
#[derive(Debug, Default)]
pub(crate) struct ReadCredit {
    /// Credits used; one read buys one block.
    spent: AtomicU64,
}

impl ReadCredit {
    /// Spends one of the `reads` made so far on a block. Returns `false` if all of them are spent.
    pub(crate) fn take(&self, reads: u64) -> bool {
        let spend = |spent: u64| {
            let spent = spent.max(reads.saturating_sub(CREDIT_BLOCKS_MAX));
            (spent < reads).then_some(spent + 1)
        };
        self.spent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_read_pays_for_one_block() {
        let read_credit = ReadCredit::default();
        assert!(!read_credit.take(0), "there are no reads");
        let cached = |reads| (0..1_000_000).take_while(|_| read_credit.take(reads)).count() as u64;
        assert_eq!(cached(10), 10);
        assert_eq!(cached(10), 0);
        assert_eq!(cached(15), 5);
    }

    #[test]
    fn unused_credit_of_past_reads_is_limited() {
        let read_credit = ReadCredit::default();
        let cached = |reads| (0..1_000_000).take_while(|_| read_credit.take(reads)).count() as u64;
        assert_eq!(cached(1 << 40), CREDIT_BLOCKS_MAX);
        assert_eq!(cached((1 << 40) + 7), 7);
    }
}
