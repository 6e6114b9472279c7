//! [`SeqOracle`]: reserves SeqNos and publishes them in order.
//!
//! ```text
//!        1 2 3 4 5 6 7 8 9 10
//!       [inserted ] . .[ins ]     visible = 5: 6 and 7 are reserved and not yet inserted, so
//!                 ^               8 to 10 wait for them although they are inserted
//!              visible
//! ```
//!
//! Invariants: every SeqNo up to `visible` is in its memtable, or belongs to a commit that failed
//! and inserted nothing; `visible` never decreases and never passes the last reserved SeqNo.

use std::collections::BTreeMap;

use frondb_core::SeqNo;
use frondb_core::sync::Mutex;
use frondb_core::sync::atomic::{AtomicU64, Ordering};

/// The order of commits. See the module documentation.
///
/// Any thread may call any method. [`reserve`](Self::reserve) must be called under the lock that
/// also reserves the position in the log, so that both orders agree (rule 8).
pub struct SeqOracle {
    last_reserved: AtomicU64,
    /// Written under `waiting`; read without a lock.
    visible: AtomicU64,
    /// Ranges that were published before an earlier range: first SeqNo to last SeqNo.
    waiting: Mutex<BTreeMap<u64, u64>>,
}

impl SeqOracle {
    /// Creates an oracle that continues after `last`, the largest SeqNo that recovery found.
    #[must_use]
    pub fn new(last: SeqNo) -> Self {
        Self {
            last_reserved: AtomicU64::new(last.get()),
            visible: AtomicU64::new(last.get()),
            waiting: Mutex::default(),
        }
    }

    /// Reserves `n` consecutive SeqNos and returns the first. The caller must publish them even if
    /// its commit fails, because later SeqNos become visible only after these.
    ///
    /// # Panics
    /// If `n` is zero.
    pub fn reserve(&self, n: u64) -> SeqNo {
        assert!(n > 0, "a commit without messages needs no SeqNo");
        SeqNo(self.last_reserved.fetch_add(n, Ordering::Relaxed) + 1)
    }

    /// Returns the largest reserved SeqNo.
    #[must_use]
    pub fn last_reserved(&self) -> SeqNo {
        SeqNo(self.last_reserved.load(Ordering::Relaxed))
    }

    /// Declares that the reserved SeqNos `first..=last` are in their memtables, or never will be.
    /// They become visible once all earlier SeqNos are published, too.
    ///
    /// # Panics
    /// If the range is empty or was published before.
    pub fn publish(&self, first: SeqNo, last: SeqNo) {
        assert!(first <= last, "published an empty range");
        let mut waiting = self.waiting.lock();
        let mut visible = self.visible.load(Ordering::Relaxed);
        assert!(first.get() > visible, "SeqNo {first} was published before");
        if first.get() != visible + 1 {
            let before = waiting.insert(first.get(), last.get());
            assert!(before.is_none(), "SeqNo {first} was published before");
            return;
        }
        visible = last.get();
        while let Some(last) = waiting.remove(&(visible + 1)) {
            visible = last;
        }
        // Release: a thread that reads this number also sees the earlier insertions into the
        // memtables.
        self.visible.store(visible, Ordering::Release);
    }

    /// Returns the SeqNo up to which everything is visible.
    ///
    /// A point read needs no snapshot: it pins the version of its tree first and reads `visible`
    /// afterwards. In the other order, a merge between the two steps could drop a message that only
    /// this SeqNo sees.
    #[inline]
    #[must_use]
    pub fn visible(&self) -> SeqNo {
        SeqNo(self.visible.load(Ordering::Acquire))
    }
}

impl std::fmt::Debug for SeqOracle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SeqOracle(visible {}, reserved {})", self.visible(), self.last_reserved())
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn an_unpublished_range_delays_later_ones() {
        let oracle = SeqOracle::new(SeqNo(10));
        let (a, b, c) = (oracle.reserve(2), oracle.reserve(3), oracle.reserve(1));
        assert_eq!((a, b, c), (SeqNo(11), SeqNo(13), SeqNo(16)));
        assert_eq!(oracle.visible(), SeqNo(10));
        oracle.publish(c, c);
        oracle.publish(b, SeqNo(15));
        assert_eq!(oracle.visible(), SeqNo(10));
        oracle.publish(a, SeqNo(12));
        assert_eq!(oracle.visible(), SeqNo(16));
        assert_eq!(oracle.last_reserved(), SeqNo(16));
    }

    #[test]
    #[should_panic(expected = "published before")]
    fn publishing_twice_is_a_bug() {
        let oracle = SeqOracle::new(SeqNo::MIN);
        let seq = oracle.reserve(1);
        oracle.publish(seq, seq);
        oracle.publish(seq, seq);
    }

    #[test]
    fn a_commit_becomes_visible_after_all_earlier_ones() {
        let oracle = SeqOracle::new(SeqNo::MIN);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let first = oracle.reserve(3);
                        let last = SeqNo(first.get() + 2);
                        oracle.publish(first, last);
                        while oracle.visible() < last {
                            std::thread::yield_now();
                        }
                    }
                });
            }
        });
        assert_eq!(oracle.visible(), SeqNo(6000));
    }
}
