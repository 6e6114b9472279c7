//! Changes and reports the memory budget of an open database. [`frondb_tree::Memory`] says how the
//! parts share the budget.

use frondb_core::Result;
use frondb_core::budget::Part;
use frondb_core::mem::IdleMemory;
use frondb_core::sync::atomic::Ordering;

use crate::engine::Engine;

impl Engine {
    /// Changes the memory budget, bytes. On return the cache has shrunk to its new share, and
    /// flushes of memtables above theirs have begun.
    ///
    /// # Errors
    /// `Invalid` for less than 16 MiB, and for less than twice a write buffer of a fixed size:
    /// nothing has changed. `Closed`, `Poisoned`.
    pub fn set_memory_bytes(&self, bytes: u64) -> Result<()> {
        let _call = self.begin_call()?;
        let background = self.background();
        let memory = background.jobs.shares.of(bytes);
        memory.check()?;
        {
            let mut uncharged = self.memory.uncharged.lock();
            self.txns.locks.set_bytes_max(memory.lock_bytes());
            self.txns.spill.runs_max.store(memory.private_runs_max(), Ordering::Relaxed);
            self.txns.reads.budget.set_total(bytes);
            uncharged.fit(memory);
            *self.memory.idle.lock() = IdleMemory::allow(memory.idle_bytes());
            background.queue.set_merges_max(memory.merges_max());
        }
        background.freeze_if_full(&[]);
        background.queue.add_maintenance();
        if background.is_manual() {
            background.run_pending();
        }
        // The allocator keeps the memory of evicted blocks idle: return it to the system.
        frondb_core::mem::trim();
        self.txns.reads.health.check_unpoisoned()
    }

    /// Sets how many bytes the program holds because of the database, such as a server's memory
    /// for its connections. The budget is charged with them, up to an eighth of the budget (a
    /// sixteenth of a budget below 64 MiB), and the cache shrinks accordingly.
    ///
    /// # Errors
    /// `Closed`.
    pub fn set_outside_memory_bytes(&self, bytes: u64) -> Result<()> {
        let _call = self.begin_call()?;
        let mut uncharged = self.memory.uncharged.lock();
        uncharged.outside = bytes;
        uncharged.fit(self.background().jobs.shares.now());
        Ok(())
    }

    /// The name, the current charge and the peak charge of each part; both in bytes.
    #[must_use]
    pub fn memory_parts(&self) -> Vec<(&'static str, u64, u64)> {
        let budget = &self.txns.reads.budget;
        let of = |part: Part| (part.name(), budget.used_by(part), budget.peak_of(part));
        Part::ALL.map(of).to_vec()
    }

    /// The memory budget, bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.txns.reads.budget.total()
    }
}
