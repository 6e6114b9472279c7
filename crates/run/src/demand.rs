//! [`Demand`]: whether the reads of the engine justify keeping a block that is being written.

use frondb_core::sync::atomic::{AtomicU64, Ordering};

/// Most unused credit, in blocks, that reads of the past leave behind.
const CREDIT_BLOCKS_MAX: u64 = 1 << 14;

/// How many blocks were kept, compared with the number of reads.
#[derive(Debug, Default)]
pub(crate) struct Demand {
    /// Credits used; one read buys one block.
    spent: AtomicU64,
}

impl Demand {
    /// Spends one of the `reads` so far on a block; `false` if all of them are spent.
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
        let demand = Demand::default();
        assert!(!demand.take(0), "nobody reads");
        let kept = |reads| (0..1_000_000).take_while(|_| demand.take(reads)).count() as u64;
        assert_eq!(kept(10), 10);
        assert_eq!(kept(10), 0);
        assert_eq!(kept(15), 5);
    }

    #[test]
    fn reads_of_long_ago_pay_for_few() {
        let demand = Demand::default();
        let kept = |reads| (0..1_000_000).take_while(|_| demand.take(reads)).count() as u64;
        assert_eq!(kept(1 << 40), CREDIT_BLOCKS_MAX);
        assert_eq!(kept((1 << 40) + 7), 7);
    }
}
