//! How the memory is changed while the engine is open; how it is shared out says
//! [`frondb_tree::Memory`].

use frondb_core::Result;
use frondb_core::budget::Part;
use frondb_core::mem::IdleMemory;
use frondb_core::sync::atomic::Ordering;

use crate::engine::Engine;

impl Engine {
    /// Changes how much memory the engine may use. The cache has given back what is too much, and
    /// memtables that are too large are being flushed, when it returns.
    ///
    /// # Errors
    /// `Invalid` for less than 16 MiB, and for less than twice a write buffer of a fixed size: nothing
    /// is changed. `Closed`, `Poisoned`.
    pub fn set_memory_bytes(&self, bytes: u64) -> Result<()> {
        let _call = self.begin_call()?;
        let background = self.background();
        let memory = background.jobs.shares.of(bytes);
        memory.check()?;
        {
            let mut beside = self.memory.beside.lock();
            self.txns.locks.set_bytes_max(memory.lock_bytes());
            self.txns.spill.runs_max.store(memory.private_runs_max(), Ordering::Relaxed);
            self.txns.reads.budget.set_total(bytes);
            beside.fit(memory);
            *self.memory.idle.lock() = IdleMemory::allow(memory.idle_bytes());
            background.queue.set_merges_max(memory.merges_max());
        }
        background.freeze_if_full(&[]);
        background.queue.add_maintenance();
        if background.is_manual() {
            background.run_pending();
        }
        // Blocks that the cache gave up are idle now, not the system's yet.
        frondb_core::mem::trim();
        self.txns.reads.health.check_unpoisoned()
    }

    /// Says how much memory the program holds for the engine's sake, as a server does for its connections. It is
    /// charged as the engine's own, up to an eighth of the memory (a sixteenth of less than 64 MiB): the cache
    /// makes room.
    ///
    /// # Errors
    /// `Closed`.
    pub fn set_outside_memory_bytes(&self, bytes: u64) -> Result<()> {
        let _call = self.begin_call()?;
        let mut beside = self.memory.beside.lock();
        beside.outside = bytes;
        beside.fit(self.background().jobs.shares.now());
        Ok(())
    }

    /// What each part has charged, and the most it ever had: name, bytes, bytes.
    #[must_use]
    pub fn memory_parts(&self) -> Vec<(&'static str, u64, u64)> {
        let budget = &self.txns.reads.budget;
        let of = |part: Part| (part.name(), budget.used_by(part), budget.peak_of(part));
        Part::ALL.map(of).to_vec()
    }

    /// How much memory the engine may use.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.txns.reads.budget.total()
    }
}
