//! [`ProcessMemory`]: the memory of the process that no part of the database charges.

use frondb_core::budget::Reservation;
use frondb_core::mem::IdleMemory;
use frondb_core::sync::Mutex;
use frondb_tree::{Memory, MemoryShares};

/// Charges the budget for memory outside of all parts: the memory that the process itself needs
/// ([`Memory::allocator_bytes`]), and the memory that the program reports.
pub(crate) struct UnchargedMemory {
    charged: Reservation,
    /// Bytes that the program uses because of the database, as it has reported.
    outside: u64,
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
    uncharged: Mutex<UnchargedMemory>,
    /// The permission of the block allocator to keep some bytes idle.
    idle: Mutex<IdleMemory>,
}

impl ProcessMemory {
    pub(crate) fn new(uncharged: UnchargedMemory, memory: Memory) -> Self {
        let idle = Mutex::new(IdleMemory::allow(memory.idle_bytes()));
        Self { uncharged: Mutex::new(uncharged), idle }
    }

    /// Notes that the program uses `bytes` because of the database, and charges them.
    pub(crate) fn set_outside(&self, bytes: u64, shares: &MemoryShares) {
        let mut uncharged = self.uncharged.lock();
        uncharged.outside = bytes;
        uncharged.fit(shares.now());
    }

    /// Fits to a new memory budget: `set` sets the budget and what follows from it.
    pub(crate) fn resize(&self, memory: Memory, set: impl FnOnce()) {
        let mut uncharged = self.uncharged.lock();
        set();
        uncharged.fit(memory);
        *self.idle.lock() = IdleMemory::allow(memory.idle_bytes());
    }
}
