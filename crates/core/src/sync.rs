//! Locks, atomics and shared pointers: the standard ones, or shuttle's when built with
//! `--cfg shuttle`, so that a schedule can be explored and replayed. All crates take theirs from
//! here.
//!
//! The lock API is parking_lot's: no poisoning, `lock()` returns the guard, and a [`Condvar`] waits
//! on a `&mut` guard. What the `scheduled` side has is the part of it that both sides share; code
//! that uses more does not build under shuttle.

#[cfg(not(shuttle))]
mod imp {
    pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
    pub use std::sync::Arc;
    pub use std::sync::atomic;
}

#[cfg(shuttle)]
#[path = "sync/scheduled.rs"]
mod imp;

// Set once and then only read: there is nothing for a scheduler to interleave.
pub use std::sync::OnceLock;

pub use imp::{Arc, Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic};

/// Numbers that no two callers in the process get: for a static. An atomic of the standard library
/// also under shuttle, whose own belong to one schedule, and tests run several at a time.
#[derive(Debug)]
pub struct ProcessCounter(std::sync::atomic::AtomicU64);

impl ProcessCounter {
    /// One that gives `first`, then the numbers after it.
    #[must_use]
    pub const fn new(first: u64) -> Self {
        Self(std::sync::atomic::AtomicU64::new(first))
    }

    /// The next number.
    pub fn next(&self) -> u64 {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }
}
