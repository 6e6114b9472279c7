//! Locks, atomics and shared pointers, which all crates import from here. They are parking_lot's
//! and the standard library's, or shuttle's in a build with `--cfg shuttle`, which can explore and
//! replay schedules.
//!
//! The lock API is parking_lot's: no poisoning, `lock()` returns the guard, and a [`Condvar`] waits
//! on a `&mut` guard. The `scheduled` module has only the part of that API that shuttle can
//! provide; code that uses more does not compile under shuttle.

#[cfg(not(shuttle))]
mod imp {
    pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
    pub use std::sync::atomic;
    pub use std::sync::{Arc, Weak};
}

#[cfg(shuttle)]
#[path = "sync/scheduled.rs"]
mod imp;

// Not shuttle's: a value that is set once and then only read needs no scheduling points.
pub use std::sync::OnceLock;

pub use imp::{
    Arc, Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak, atomic,
};

/// A static counter whose numbers are unique in the process. Under shuttle it is an atomic of the
/// standard library too: shuttle's atomics belong to one schedule, and tests run several schedules
/// at a time.
#[derive(Debug)]
pub struct ProcessCounter(std::sync::atomic::AtomicU64);

impl ProcessCounter {
    /// Creates a counter that returns `first`, then the following numbers.
    #[must_use]
    pub const fn new(first: u64) -> Self {
        Self(std::sync::atomic::AtomicU64::new(first))
    }

    /// Returns the next number.
    pub fn next(&self) -> u64 {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }

    /// Returns the number that the next call of [`next`](Self::next) will return.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}
