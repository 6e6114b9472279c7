//! Locks, atomics and shared pointers: the standard ones, or shuttle's when built with `--cfg
//! shuttle`, so that a schedule can be explored and replayed. All crates import them from here.
//!
//! The lock API is parking_lot's: no poisoning, `lock()` returns the guard, and a [`Condvar`] waits
//! on a `&mut` guard. The `scheduled` module offers only the part of that API which shuttle can
//! provide; code that uses more does not build under shuttle.

#[cfg(not(shuttle))]
mod imp {
    pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
    pub use std::sync::atomic;
    pub use std::sync::{Arc, Weak};
}

#[cfg(shuttle)]
#[path = "sync/scheduled.rs"]
mod imp;

// A value that is set once and then only read gives a scheduler nothing to interleave.
pub use std::sync::OnceLock;

pub use imp::{
    Arc, Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak, atomic,
};

/// A static counter whose numbers are unique in the process. It is an atomic of the standard
/// library under shuttle, too: shuttle's atomics belong to one schedule, and tests run several
/// schedules at a time.
#[derive(Debug)]
pub struct ProcessCounter(std::sync::atomic::AtomicU64);

impl ProcessCounter {
    /// A counter that returns `first`, then the numbers after it.
    #[must_use]
    pub const fn new(first: u64) -> Self {
        Self(std::sync::atomic::AtomicU64::new(first))
    }

    /// Returns the next number.
    pub fn next(&self) -> u64 {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }

    /// The number that the next call of [`next`](Self::next) returns.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}
