//! [`Memory`]: the share of the memory that each part of the engine may use.
//!
//! The memory option is one number, the total of the budget (rule 24). Most parts compute their
//! share whenever they check their limit; `set_memory_bytes` stores the new limits of row locks,
//! private runs, concurrent merges and idle memory. So a change takes effect at the next check:
//!
//! ```text
//!   set_memory_bytes -> total -> cache: evicts blocks immediately, or fills the new room
//!                             -> memtables: too large ones are frozen immediately and flushed
//!                             -> write sets spill, and row locks escalate, at their next write
//!   a merge or a bulk load ends with the share that it began with
//! ```
//!
//! Invariant: memory charged above the total is released without a caller's help. The budget never
//! refuses memory, so two parts cannot wait for each other's memory.

use frondb_core::budget::Budget;
use frondb_core::sync::Arc;
use frondb_core::{Error, Result};

/// The settings that determine the shares of memory, except the total.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryRules {
    /// Smallest accepted total, in bytes: an idle process with less would exceed it.
    pub bytes_min: u64,
    /// Bytes of memtables at which the largest is frozen; 0 lets [`Memory::write_buffer_bytes`]
    /// choose.
    pub write_buffer: u64,
    /// Whether the database has background threads.
    pub has_threads: bool,
    /// Whether the database is open read-only.
    pub read_only: bool,
}

impl MemoryRules {
    /// Smallest accepted total without background threads, for tests, in bytes: it covers only the
    /// memory that parts charge to the budget.
    pub const BYTES_MIN_WITHOUT_THREADS: u64 = 4 << 20;

    /// Returns the shares of a total of `total` bytes by these rules.
    #[must_use]
    pub fn of(self, total: u64) -> Memory {
        Memory { total, rules: self }
    }
}

/// The memory of an open database: the budget with its current total, and the rules. Any thread may
/// use it.
#[derive(Clone, Debug)]
pub struct MemoryShares {
    budget: Arc<Budget>,
    rules: MemoryRules,
}

impl MemoryShares {
    /// Returns the shares of `budget`.
    #[must_use]
    pub fn new(budget: Arc<Budget>, rules: MemoryRules) -> Self {
        Self { budget, rules }
    }

    /// Returns the shares of the current total.
    #[must_use]
    pub fn now(&self) -> Memory {
        self.rules.of(self.budget.total())
    }

    /// Returns the shares of another total, in bytes.
    #[must_use]
    pub fn of(&self, total: u64) -> Memory {
        self.rules.of(total)
    }
}

/// A total of memory, and the share of each part, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    total: u64,
    rules: MemoryRules,
}

/// A total below this many bytes is low memory: merges then have small windows, and the write
/// buffer is a quarter of what remains after the memory that no part charges.
const ORDINARY_BYTES: u64 = 64 << 20;

impl Memory {
    /// Returns the total, in bytes.
    #[must_use]
    pub fn total(self) -> u64 {
        self.total
    }

    /// Checks that the total is large enough, and that the write buffer fits into it.
    ///
    /// # Errors
    /// `Invalid`, with the accepted range.
    pub fn check(self) -> Result<()> {
        let least = match self.rules.has_threads {
            true => self.rules.bytes_min,
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

    /// Returns whether the total is so small that the process memory that no part charges is a
    /// large share of it. Without threads, true only for a read-only database with at least
    /// `bytes_min`: other databases without threads are for tests, which check the sizes of the
    /// parts.
    fn is_low_memory(self) -> bool {
        let is_real =
            self.rules.has_threads || self.rules.read_only && self.total >= self.rules.bytes_min;
        is_real && self.total < ORDINARY_BYTES
    }

    /// Returns the number of bytes of all memtables at which the largest memtable is frozen (rule
    /// 4).
    #[must_use]
    pub fn write_buffer_bytes(self) -> u64 {
        match self.rules.write_buffer {
            0 if self.is_low_memory() => (self.total - self.allocator_bytes()) / 4,
            0 => self.total / 4,
            bytes => bytes,
        }
    }

    /// Returns the maximum size of a batch (`Batch::memory_bytes`), in bytes: a quarter of the
    /// total, at most 512 MiB because a log record has at most 1 GiB.
    #[must_use]
    pub fn batch_bytes(self) -> u64 {
        (self.total / 4).min(512 << 20)
    }

    /// Returns the memory for the sorting of a bulk load, in bytes.
    #[must_use]
    pub fn bulk_bytes(self) -> u64 {
        self.total / 4
    }

    /// Returns the number of bytes of all write sets together above which one of them spills to
    /// disk.
    #[must_use]
    pub fn write_set_bytes(self) -> u64 {
        self.total / 16
    }

    /// Returns the maximum number of private runs of a transaction in one tree (rule 18), 8 to 24.
    /// Merging them takes at most 1/8 of the memory, unless that is too little for 8 runs.
    #[must_use]
    pub fn private_runs_max(self) -> usize {
        const MERGE_RUN_BYTES: u64 = 768 << 10;
        const RUNS: (u64, u64) = (8, 24);
        (self.total / 8 / MERGE_RUN_BYTES).clamp(RUNS.0, RUNS.1) as usize
    }

    /// Returns the number of bytes of all locks together above which row locks escalate to range
    /// locks.
    #[must_use]
    pub fn lock_bytes(self) -> u64 {
        self.total / 32
    }

    /// Returns the number of bytes that the block allocator may keep idle.
    #[must_use]
    pub fn idle_bytes(self) -> u64 {
        (self.total / 32).max(256 << 10)
    }

    /// Returns the maximum number of concurrent merges. Each merge has read windows for all its
    /// inputs, so with low memory only one runs. A flush has one input, so flushes do not count.
    #[must_use]
    pub fn merges_max(self) -> usize {
        if self.total < ORDINARY_BYTES { 1 } else { usize::MAX }
    }

    /// Returns the debt of merges, in bytes, above which writers are slowed down.
    #[must_use]
    pub fn merge_debt_bytes(self) -> u64 {
        self.total.saturating_mul(4)
    }

    /// Returns the memory of the process that no part charges, in bytes: the program's pages,
    /// rounding and retained pages of the allocator, contexts of codecs, stacks, and the buffers of
    /// the log. Measured: 18 MiB of 128 MiB under the reads of iiBench; 8 MiB of 16 MiB, and 10 MiB
    /// with 16 threads that read; 11 MiB of 32 MiB with 64 threads. Charged in advance, so that the
    /// memory option covers the whole process (rule 24).
    #[must_use]
    pub fn allocator_bytes(self) -> u64 {
        let base = 7 << 20;
        match self.is_low_memory() {
            true => base + self.total / 8,
            false => (base + self.total / 16).min(self.total / 8),
        }
    }

    /// Returns the maximum charge for memory that the program uses outside the engine, in bytes.
    /// The limit leaves the engine enough memory, whatever the number of connections.
    #[must_use]
    pub fn outside_bytes_max(self) -> u64 {
        if self.is_low_memory() { self.total / 16 } else { self.total / 8 }
    }
}
