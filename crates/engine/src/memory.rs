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

use frondb_core::budget::{Part, Reservation};
use frondb_core::mem::IdleMemory;
use frondb_core::sync::atomic::Ordering;
use frondb_core::{Error, Result};

use crate::engine::Engine;
use crate::env::Env;
use crate::options::EngineOptions;

/// So much memory, and what the parts may have of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    total: u64,
    /// As the option has it: 0 for what [`write_buffer_bytes`](Memory::write_buffer_bytes) says.
    write_buffer: u64,
    /// Whether there are background threads.
    has_threads: bool,
    /// Whether nothing is written.
    read_only: bool,
}

/// Less is little: merges then have small windows, and the write buffer is a quarter of what the parts may
/// charge.
const ORDINARY_BYTES: u64 = 64 << 20;

impl Memory {
    pub(crate) fn new(total: u64, options: &EngineOptions) -> Self {
        Self {
            total,
            write_buffer: options.write_buffer_bytes,
            has_threads: options.background_threads > 0,
            read_only: options.read_only,
        }
    }

    /// Whether there is enough of it.
    pub(crate) fn check(self) -> Result<()> {
        let least = match self.has_threads {
            true => EngineOptions::MEMORY_BYTES_MIN,
            false => EngineOptions::MEMORY_BYTES_MIN_WITHOUT_THREADS,
        };
        if self.total < least {
            let message = format!("memory is {} bytes; it must be at least {least}", self.total);
            return Err(Error::invalid(message));
        }
        let (buffer, half) = (self.write_buffer, self.total / 2);
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
            self.has_threads || self.read_only && self.total >= EngineOptions::MEMORY_BYTES_MIN;
        is_real && self.total < ORDINARY_BYTES
    }

    /// Memtable bytes at which the largest is frozen (rule 4).
    pub(crate) fn write_buffer_bytes(self) -> u64 {
        match self.write_buffer {
            0 if self.is_little() => (self.total - self.allocator_bytes()) / 4,
            0 => self.total / 4,
            bytes => bytes,
        }
    }

    /// How many bytes ([`Batch::memory_bytes`](crate::Batch::memory_bytes)) a batch may have: what
    /// memtables may have too. However much memory there is, a log record has at most 1 GiB.
    pub(crate) fn batch_bytes(self) -> u64 {
        (self.total / 4).min(512 << 20)
    }

    /// What a bulk load takes to sort.
    pub(crate) fn bulk_bytes(self) -> u64 {
        self.total / 4
    }

    /// What all write sets together may have before one of them goes to disk.
    pub(crate) fn write_set_bytes(self) -> u64 {
        self.total / 16
    }

    /// Most private runs of a transaction in one tree (rule 18): merging them takes an eighth of the
    /// memory at most, where that is enough for any merge.
    pub(crate) fn private_runs_max(self) -> usize {
        const MERGE_RUN_BYTES: u64 = 768 << 10;
        const RUNS: (u64, u64) = (8, 24);
        (self.total / 8 / MERGE_RUN_BYTES).clamp(RUNS.0, RUNS.1) as usize
    }

    /// What all locks together may have before row locks become ranges.
    pub(crate) fn lock_bytes(self) -> u64 {
        self.total / 32
    }

    /// What the block allocator may keep idle.
    pub(crate) fn idle_bytes(self) -> u64 {
        (self.total / 32).max(256 << 10)
    }

    /// How many merges there may be at once, begun and not ended. Each has windows for all its inputs, so with
    /// little memory there is one; a flush has one input and always goes on.
    pub(crate) fn merges_max(self) -> usize {
        if self.total < ORDINARY_BYTES { 1 } else { usize::MAX }
    }

    /// Bytes that merges may be behind before writers are slowed.
    pub(crate) fn merge_debt_bytes(self) -> u64 {
        self.total.saturating_mul(4)
    }

    /// What the process takes beyond what the parts charge: the program's pages, the allocator's rounding and
    /// retained pages, contexts of codecs, stacks, the log's buffers. Measured at 18 MiB of 128 MiB under
    /// iiBench's reads, at 8 MiB of 16 MiB, 10 with 16 threads that read, and at 11 of 32 MiB with 64; charged
    /// ahead, so that the memory option is the whole truth (rule 24).
    pub(crate) fn allocator_bytes(self) -> u64 {
        let base = 7 << 20;
        match self.is_little() {
            true => base + self.total / 8,
            false => (base + self.total / 16).min(self.total / 8),
        }
    }

    /// How much of what the program holds beside the engine is charged: the engine is to be left with what it
    /// needs, however many connections there are.
    fn outside_bytes_max(self) -> u64 {
        if self.is_little() { self.total / 16 } else { self.total / 8 }
    }
}

/// What the process takes beside what the parts charge, charged ahead.
pub(crate) struct Beside {
    charged: Reservation,
    /// What the program holds for the engine's sake, as it says.
    outside: u64,
}

impl Beside {
    pub(crate) fn new(charged: Reservation) -> Self {
        Self { charged, outside: 0 }
    }

    fn fit(&mut self, memory: Memory) {
        let outside = self.outside.min(memory.outside_bytes_max());
        self.charged.resize(memory.allocator_bytes() + outside);
    }
}

impl Env {
    /// The memory as it is now.
    pub(crate) fn memory(&self) -> Memory {
        self.options.memory_of(self.budget.total())
    }
}

impl Engine {
    /// Changes how much memory the engine may use. The cache has given back what is too much, and
    /// memtables that are too large are being flushed, when it returns.
    ///
    /// # Errors
    /// `Invalid` for less than 16 MiB, and for less than twice a write buffer of a fixed size: nothing
    /// is changed. `Closed`, `Poisoned`.
    pub fn set_memory_bytes(&self, bytes: u64) -> Result<()> {
        let _call = self.begin_call()?;
        let shared = self.shared();
        let env = &shared.env;
        let memory = env.options.memory_of(bytes);
        memory.check()?;
        {
            let mut beside = env.beside.lock();
            env.locks.set_bytes_max(memory.lock_bytes());
            env.spill.runs_max.store(memory.private_runs_max(), Ordering::Relaxed);
            env.budget.set_total(bytes);
            beside.fit(memory);
            *env.idle.lock() = IdleMemory::allow(memory.idle_bytes());
            shared.work.set_merges_max(memory.merges_max());
        }
        shared.freeze_if_full(&[]);
        shared.work.add_chores();
        if shared.is_manual() {
            shared.run_pending();
        }
        // Blocks that the cache gave up are idle now, not the system's yet.
        frondb_core::mem::trim();
        env.check_health()
    }

    /// Says how much memory the program holds for the engine's sake, as a server does for its connections. It is
    /// charged as the engine's own, up to an eighth of the memory (a sixteenth of less than 64 MiB): the cache
    /// makes room.
    ///
    /// # Errors
    /// `Closed`.
    pub fn set_outside_memory_bytes(&self, bytes: u64) -> Result<()> {
        let _call = self.begin_call()?;
        let env = &self.shared().env;
        let mut beside = env.beside.lock();
        beside.outside = bytes;
        beside.fit(env.memory());
        Ok(())
    }

    /// What each part has charged, and the most it ever had: name, bytes, bytes.
    #[must_use]
    pub fn memory_parts(&self) -> Vec<(&'static str, u64, u64)> {
        let budget = &self.shared().env.budget;
        let of = |part: Part| (part.name(), budget.used_by(part), budget.peak_of(part));
        Part::ALL.map(of).to_vec()
    }

    /// How much memory the engine may use.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.shared().env.budget.total()
    }
}
