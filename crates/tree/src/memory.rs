//! How the memory is shared out, and how it is changed while the engine is open.
//!
//! The total of the budget is the one number (rule 24). What a part may have of it is computed when
//! the part asks, so a change of the total is in force at the next look of each:
//!
//! ```text
//!   set_memory_bytes -> total -> cache: evicted at once, or fills what there is more of
//!                             -> memtables: frozen at once where they are too large, then flushed
//!                             -> write sets, locks: spilled and made ranges at their next write
//!   what runs (a merge, a bulk load) ends with what it began with
//! ```
//!
//! Invariant: what is charged above the total passes without anybody's doing: no part that is
//! refused memory waits for another that waits for it (the budget never refuses).

use frondb_core::budget::Budget;
use frondb_core::sync::Arc;
use frondb_core::{Error, Result};

/// What the options say of memory, but for how much there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryRules {
    /// Bytes of memtables at which the largest is frozen; 0 for what [`Memory::write_buffer_bytes`] says.
    pub write_buffer: u64,
    /// Whether there are background threads.
    pub has_threads: bool,
    /// Whether nothing is written.
    pub read_only: bool,
}

impl MemoryRules {
    /// Smallest budget accepted, bytes: the smallest that the whole process keeps to.
    pub const BYTES_MIN: u64 = 16 << 20;
    /// The same without background threads, for tests: there the parts keep to it.
    pub const BYTES_MIN_WITHOUT_THREADS: u64 = 4 << 20;

    /// So much memory by these rules.
    #[must_use]
    pub fn of(self, total: u64) -> Memory {
        Memory { total, rules: self }
    }
}

/// The memory of an open database: how much there is just now, and by which rules it is shared out. Any
/// thread may ask.
#[derive(Clone, Debug)]
pub struct MemoryShares {
    budget: Arc<Budget>,
    rules: MemoryRules,
}

impl MemoryShares {
    /// The shares of `budget`.
    #[must_use]
    pub fn new(budget: Arc<Budget>, rules: MemoryRules) -> Self {
        Self { budget, rules }
    }

    /// The memory as it is now.
    #[must_use]
    pub fn now(&self) -> Memory {
        self.rules.of(self.budget.total())
    }

    /// The same if it were so much.
    #[must_use]
    pub fn of(&self, total: u64) -> Memory {
        self.rules.of(total)
    }
}

/// So much memory, and what the parts may have of it.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    total: u64,
    rules: MemoryRules,
}

/// Less is little: merges then have small windows, and the write buffer is a quarter of what the parts may
/// charge.
const ORDINARY_BYTES: u64 = 64 << 20;

impl Memory {
    /// Fails if there is too little of it.
    ///
    /// # Errors
    /// `Invalid`, with the least.
    pub fn check(self) -> Result<()> {
        let least = match self.rules.has_threads {
            true => MemoryRules::BYTES_MIN,
            false => MemoryRules::BYTES_MIN_WITHOUT_THREADS,
        };
        if self.total < least {
            let message = format!("memory is {} bytes; it must be at least {least}", self.total);
            return Err(Error::invalid(message));
        }
        let (buffer, half) = (self.rules.write_buffer, self.total / 2);
        if buffer != 0 && !(16 << 10..=half).contains(&buffer) {
            return Err(Error::invalid(format!(
                "the write buffer is {buffer} bytes; it must be 0 (what suits the memory) or \
                 16384 to half of the memory, {half}"
            )));
        }
        Ok(())
    }

    /// Whether there is so little that what the process takes beside what the parts charge is a good part of
    /// it. Not without threads: that is for tests, whose figures are to be those of the parts.
    fn is_little(self) -> bool {
        let is_real =
            self.rules.has_threads || self.rules.read_only && self.total >= MemoryRules::BYTES_MIN;
        is_real && self.total < ORDINARY_BYTES
    }

    /// Memtable bytes at which the largest is frozen (rule 4).
    #[must_use]
    pub fn write_buffer_bytes(self) -> u64 {
        match self.rules.write_buffer {
            0 if self.is_little() => (self.total - self.allocator_bytes()) / 4,
            0 => self.total / 4,
            bytes => bytes,
        }
    }

    /// How many bytes (`Batch::memory_bytes`) a batch may have: what
    /// memtables may have too. However much memory there is, a log record has at most 1 GiB.
    #[must_use]
    pub fn batch_bytes(self) -> u64 {
        (self.total / 4).min(512 << 20)
    }

    /// What a bulk load takes to sort.
    #[must_use]
    pub fn bulk_bytes(self) -> u64 {
        self.total / 4
    }

    /// What all write sets together may have before one of them goes to disk.
    #[must_use]
    pub fn write_set_bytes(self) -> u64 {
        self.total / 16
    }

    /// Most private runs of a transaction in one tree (rule 18): merging them takes an eighth of the
    /// memory at most, where that is enough for any merge.
    #[must_use]
    pub fn private_runs_max(self) -> usize {
        const MERGE_RUN_BYTES: u64 = 768 << 10;
        const RUNS: (u64, u64) = (8, 24);
        (self.total / 8 / MERGE_RUN_BYTES).clamp(RUNS.0, RUNS.1) as usize
    }

    /// What all locks together may have before row locks become ranges.
    #[must_use]
    pub fn lock_bytes(self) -> u64 {
        self.total / 32
    }

    /// What the block allocator may keep idle.
    #[must_use]
    pub fn idle_bytes(self) -> u64 {
        (self.total / 32).max(256 << 10)
    }

    /// How many merges there may be at once, begun and not ended. Each has windows for all its inputs, so with
    /// little memory there is one; a flush has one input and always goes on.
    #[must_use]
    pub fn merges_max(self) -> usize {
        if self.total < ORDINARY_BYTES { 1 } else { usize::MAX }
    }

    /// Bytes that merges may be behind before writers are slowed.
    #[must_use]
    pub fn merge_debt_bytes(self) -> u64 {
        self.total.saturating_mul(4)
    }

    /// What the process takes beyond what the parts charge: the program's pages, the allocator's rounding and
    /// retained pages, contexts of codecs, stacks, the log's buffers. Measured at 18 MiB of 128 MiB under
    /// iiBench's reads, at 8 MiB of 16 MiB, 10 with 16 threads that read, and at 11 of 32 MiB with 64; charged
    /// ahead, so that the memory option is the whole truth (rule 24).
    #[must_use]
    pub fn allocator_bytes(self) -> u64 {
        let base = 7 << 20;
        match self.is_little() {
            true => base + self.total / 8,
            false => (base + self.total / 16).min(self.total / 8),
        }
    }

    /// How much of what the program holds beside the engine is charged: the engine is to be left with what it
    /// needs, however many connections there are.
    #[must_use]
    pub fn outside_bytes_max(self) -> u64 {
        if self.is_little() { self.total / 16 } else { self.total / 8 }
    }
}
