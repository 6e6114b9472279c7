//! [`ProcessMemory`]: the memory of the process that no part of the database charges.

use frondb_core::budget::Reservation;
use frondb_core::mem::IdleMemory;
use frondb_core::sync::Mutex;
use frondb_tree::Memory;

/// Charges the budget for memory outside of all parts: the memory that the process itself needs
/// ([`Memory::allocator_bytes`]), and the memory that the program reports.
pub(crate) struct UnchargedMemory {
    charged: Reservation,
    /// Bytes that the program uses because of the database, as it has reported.
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

/// The memory settings of the process. A thread that changes the memory budget holds the lock of
/// `uncharged` meanwhile.
pub(crate) struct ProcessMemory {
    pub(crate) uncharged: Mutex<UnchargedMemory>,
    /// The permission of the block allocator to keep some bytes idle.
    pub(crate) idle: Mutex<IdleMemory>,
}

impl ProcessMemory {
    pub(crate) fn new(uncharged: UnchargedMemory, memory: Memory) -> Self {
        let idle = Mutex::new(IdleMemory::allow(memory.idle_bytes()));
        Self { uncharged: Mutex::new(uncharged), idle }
    }
}
