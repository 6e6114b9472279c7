//! The parameters of random histories.

/// Parameters of a history.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Number of distinct numbered keys.
    pub keys: u64,
    /// Largest number of messages in an ordinary batch.
    pub batch: u64,
    /// Messages of a bulk batch; one write in ten is a bulk batch.
    pub bulk: u64,
    /// Largest number of trees at a time.
    pub trees: usize,
    /// One value in this many is large (over 64 KiB); 0 for never.
    pub large_in: u64,
    /// One value in this many is 61 to 66 KB of noise, which does not compress, at the boundary of
    /// the codecs' buffers and of large values; 0 for never.
    pub noisy_in: u64,
    /// One operation in this many reopens the database; 0 for never.
    pub reopen_in: u64,
    /// One write in this many is synced.
    pub sync_in: u64,
    /// Percentage of reads among the operations outside of transactions.
    pub reads_percent: u64,
    /// Percentage of operations on transactions.
    pub transactions_percent: u64,
    /// Of this many groups of a transaction's steps (`Op::Steps`), one spills at the smallest
    /// memory, one writes `bulk` small messages, and two have a bulk statement.
    pub spill_in: u64,
}

impl Profile {
    /// Returns a profile of all kinds of operations except transactions.
    #[must_use]
    pub fn general() -> Self {
        Self {
            keys: 600,
            batch: 12,
            bulk: 250,
            trees: 3,
            large_in: 400,
            noisy_in: 0,
            reopen_in: 120,
            sync_in: 4,
            reads_percent: 40,
            transactions_percent: 0,
            spill_in: 12,
        }
    }

    /// Returns the same profile with many transactions instead of batches.
    #[must_use]
    pub fn with_transactions(self) -> Self {
        Self { transactions_percent: 60, ..self }
    }

    /// Returns a profile of mostly writes and structural changes, for crash tests: reads add no
    /// crash points.
    #[must_use]
    pub fn crash() -> Self {
        Self { reads_percent: 5, reopen_in: 60, large_in: 150, sync_in: 3, ..Self::general() }
    }
}
