//! [`Gate`]: plain batches pass without locks as long as nobody has locks.
//!
//! One number holds how many lockers there are and how many batches are inside:
//!
//! ```text
//!   locker, first lock: lockers += 1; if batches were inside: wait for 0    ... lockers -= 1
//!   batch:              if lockers = 0: batches += 1, in the same step      ... batches -= 1
//! ```
//!
//! Invariant: while a locker is past its entry no batch is inside. A locker that is counted lets
//! no batch in, so it waits for those that are inside and for no other. A batch inside must not
//! wait for locks, or it would wait for who waits for it.

use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::sync::{Condvar, Mutex};

const LOCKER: u64 = 1 << 32;
const BATCHES: u64 = LOCKER - 1;

#[derive(Default)]
pub(crate) struct BatchLatch {
    /// Lockers in the upper half, batches in the lower.
    inside: AtomicU64,
    /// For a locker that waits; guards nothing.
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

    /// A locker has no locks any more.
    #[inline]
    pub(crate) fn leave(&self) {
        self.inside.fetch_sub(LOCKER, Ordering::AcqRel);
    }

    /// Lets a batch in if there is no locker.
    #[inline]
    pub(crate) fn try_pass(&self) -> bool {
        let add = |inside| (inside < LOCKER).then_some(inside + 1);
        self.inside.fetch_update(Ordering::AcqRel, Ordering::Acquire, add).is_ok()
    }

    /// A batch leaves.
    #[inline]
    pub(crate) fn pass_ended(&self) {
        let left = self.inside.fetch_sub(1, Ordering::AcqRel) - 1;
        if left >= LOCKER && left & BATCHES == 0 {
            // Under the lock: a locker that has looked and not begun to wait would miss it.
            let _waiting = self.waiting.lock();
            self.left.notify_all();
        }
    }

    pub(crate) fn lockers(&self) -> u64 {
        self.inside.load(Ordering::Acquire) / LOCKER
    }
}
