//! [`Spilling`]: writes large write sets to disk before their transactions commit.

use std::ops::Deref;

use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_writeset::SpillEnv;

/// The context for spilling write sets, and the total memory of all write sets. Any thread may use
/// it.
pub struct Spilling {
    env: SpillEnv,
    /// Approximate memory of all write sets, bytes.
    bytes: AtomicU64,
    spills: AtomicU64,
}

impl Spilling {
    /// A context that writes its private runs with `env`.
    #[must_use]
    pub fn new(env: SpillEnv) -> Self {
        Self { env, bytes: AtomicU64::new(0), spills: AtomicU64::new(0) }
    }

    /// Changes the counted memory of one write set from `before` to `after` bytes. Returns the new
    /// total of all write sets, in bytes.
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

    /// Number of parts of large transactions that were written to disk before commit.
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
