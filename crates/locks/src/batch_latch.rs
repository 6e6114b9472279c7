//! [`BatchLatch`]: lets plain batches write without locks while no transaction has locks in the
//! tree.
//!
//! One number counts the lockers, and the batches that are writing ("inside"):
//!
//! ```text
//!   locker, first lock: lockers += 1; if batches were inside: wait for 0    ... lockers -= 1
//!   batch:              if lockers = 0: batches += 1, in the same step      ... batches -= 1
//! ```
//!
//! Invariant: while a locker has entered, no batch is inside. No batch can enter once a locker is
//! counted, so the locker waits only for batches that are already inside. A batch inside must not
//! wait for locks, because the locker that holds them may be waiting for this batch.

use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::sync::{Condvar, Mutex};

const LOCKER: u64 = 1 << 32;
const BATCHES: u64 = LOCKER - 1;

#[derive(Default)]
pub(crate) struct BatchLatch {
    /// The number of lockers in the upper half, the number of batches in the lower.
    inside: AtomicU64,
    /// Used by a waiting locker; guards no data.
    waiting: Mutex<()>,
    left: Condvar,
}

impl BatchLatch {
    /// Counts a locker, and returns when no batch is inside.
    #[inline]
    pub(crate) fn enter(&self) {
        if self.inside.fetch_add(LOCKER, Ordering::AcqRel) & BATCHES != 0 {
            self.wait_for_batches();
        }
    }

    #[cold]
    fn wait_for_batches(&self) {
        let mut waiting = self.waiting.lock();
        while self.inside.load(Ordering::Acquire) & BATCHES != 0 {
            self.left.wait(&mut waiting);
        }
    }

    /// Uncounts a locker, which has released all its locks.
    #[inline]
    pub(crate) fn leave(&self) {
        self.inside.fetch_sub(LOCKER, Ordering::AcqRel);
    }

    /// Lets a batch in if there is no locker. Returns whether the batch is inside.
    #[inline]
    pub(crate) fn try_enter_batch(&self) -> bool {
        let add = |inside| (inside < LOCKER).then_some(inside + 1);
        self.inside.fetch_update(Ordering::AcqRel, Ordering::Acquire, add).is_ok()
    }

    /// Uncounts a batch, which has finished its writes.
    #[inline]
    pub(crate) fn leave_batch(&self) {
        let left = self.inside.fetch_sub(1, Ordering::AcqRel) - 1;
        if left >= LOCKER && left & BATCHES == 0 {
            // Notify under the lock. Otherwise a locker that has read the count and does not wait
            // yet would miss the notification.
            let _waiting = self.waiting.lock();
            self.left.notify_all();
        }
    }

    pub(crate) fn lockers(&self) -> u64 {
        self.inside.load(Ordering::Acquire) / LOCKER
    }
}
