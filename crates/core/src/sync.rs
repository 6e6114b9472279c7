//! Locks, atomics and shared pointers: the standard ones, or shuttle's when built with
//! `--cfg shuttle`, so that a schedule can be replayed. All crates take theirs from here.
//!
//! The lock API is parking_lot's: no poisoning, `lock()` returns the guard.

#[cfg(not(shuttle))]
mod imp {
    pub use parking_lot::{
        Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
    };
    pub use std::sync::Arc;
    pub use std::sync::atomic;
}

#[cfg(not(shuttle))]
pub use imp::{Arc, Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic};
