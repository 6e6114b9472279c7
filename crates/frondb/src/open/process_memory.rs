//! [`ProcessMemory`]: the memory of the process that no part of the database charges.

use frondb_core::budget::Reservation;
use frondb_core::mem::IdleMemory;
use frondb_core::sync::Mutex;
use frondb_tree::Memory;

/// Charges the budget for memory outside of all parts: the allocator's overhead, and what the
/// program reports.
pub(crate) struct UnchargedMemory {
    charged: Reservation,
    /// Bytes that the program reports as held because of the database.
    pub(crate) outside: u64,
}

impl UnchargedMemory {
    pub(crate) fn new(charged: Reservation) -> Self {
        Self { charged, outside: 0 }
    }

    pub(crate) fn fit(&mut self, memory: Memory) {
        let outside = self.outside.min(memory.outside_bytes_max());
        self.charged.resize(memory.allocator_bytes() + outside);
    }
}

/// The process's memory settings. A change of the memory budget holds the lock of `uncharged`.
pub(crate) struct ProcessMemory {
    pub(crate) uncharged: Mutex<UnchargedMemory>,
    /// How many bytes the block allocator may keep idle.
    pub(crate) idle: Mutex<IdleMemory>,
}

impl ProcessMemory {
    pub(crate) fn new(uncharged: UnchargedMemory, memory: Memory) -> Self {
        let idle = Mutex::new(IdleMemory::allow(memory.idle_bytes()));
        Self { uncharged: Mutex::new(uncharged), idle }
    }
}
