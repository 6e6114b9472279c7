//! [`Spilling`]: writes large write sets to disk before their transactions commit.

use std::ops::Deref;

use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_writeset::SpillEnv;

/// The handles for writing write sets to disk, and the total memory of all write sets. Any thread
/// may use it.
pub struct Spilling {
    env: SpillEnv,
    /// Approximate memory of all write sets, bytes.
    bytes: AtomicU64,
    spills: AtomicU64,
}

impl Spilling {
    /// Creates the handles; `env` writes the private runs.
    #[must_use]
    pub fn new(env: SpillEnv) -> Self {
        Self { env, bytes: AtomicU64::new(0), spills: AtomicU64::new(0) }
    }

    /// Notes that the memory of one write set has changed from `before` to `after` bytes. Returns
    /// the new total of all write sets, in bytes.
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

    /// Returns how many times a transaction wrote a part of its messages to disk because all write
    /// sets together took too much memory. Does not count what commits write.
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
