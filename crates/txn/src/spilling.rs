//! [`Spilling`]: where write sets go that are too large for the memory.

use std::ops::Deref;

use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_writeset::SpillEnv;

/// What write sets take to spill, and how much of it there is. Any thread may use it.
pub struct Spilling {
    env: SpillEnv,
    /// Memory of all write sets, about, bytes.
    bytes: AtomicU64,
    spills: AtomicU64,
}

impl Spilling {
    /// Write sets spill by way of `env`.
    #[must_use]
    pub fn new(env: SpillEnv) -> Self {
        Self { env, bytes: AtomicU64::new(0), spills: AtomicU64::new(0) }
    }

    /// Brings the memory of a write set from `before` to `after`; the sum of all then.
    pub(crate) fn resize(&self, before: u64, after: u64) -> u64 {
        if after >= before {
            self.bytes.fetch_add(after - before, Ordering::Relaxed) + (after - before)
        } else {
            self.bytes.fetch_sub(before - after, Ordering::Relaxed) - (before - after)
        }
    }

    pub(crate) fn add_spill(&self) {
        self.spills.fetch_add(1, Ordering::Relaxed);
    }

    /// Parts of large transactions written to disk before they commit, a count.
    #[must_use]
    pub fn spills(&self) -> u64 {
        self.spills.load(Ordering::Relaxed)
    }
}

impl Deref for Spilling {
    type Target = SpillEnv;

    fn deref(&self) -> &SpillEnv {
        &self.env
    }
}
