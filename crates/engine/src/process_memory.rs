//! [`ProcessMemory`]: memory of the process beside what the parts of the engine charge.

use frondb_core::budget::Reservation;
use frondb_core::mem::IdleMemory;
use frondb_core::sync::Mutex;
use frondb_tree::Memory;

/// What the process takes beside what the parts charge, charged ahead.
pub(crate) struct Beside {
    charged: Reservation,
    /// What the program holds for the engine's sake, as it says.
    pub(crate) outside: u64,
}

impl Beside {
    pub(crate) fn new(charged: Reservation) -> Self {
        Self { charged, outside: 0 }
    }

    pub(crate) fn fit(&mut self, memory: Memory) {
        let outside = self.outside.min(memory.outside_bytes_max());
        self.charged.resize(memory.allocator_bytes() + outside);
    }
}

/// What is kept of the process's memory. The first lock is held while the memory is changed.
pub(crate) struct ProcessMemory {
    pub(crate) beside: Mutex<Beside>,
    /// How much the block allocator may keep idle.
    pub(crate) idle: Mutex<IdleMemory>,
}

impl ProcessMemory {
    pub(crate) fn new(beside: Beside, memory: Memory) -> Self {
        let idle = Mutex::new(IdleMemory::allow(memory.idle_bytes()));
        Self { beside: Mutex::new(beside), idle }
    }
}
