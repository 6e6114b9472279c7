//! [`ReadProfile`]: the cost of the reads of one call.
//!
//! Each thread counts its own reads, and only between `begin` and `end`; at other times, a read
//! costs one additional comparison. Background work that a read causes is not counted, because it
//! runs on other threads.

use std::cell::Cell;
use std::ops::Sub;

/// The cost of reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ReadProfile {
    /// Blocks that were in the cache, decoded or in their encoded form.
    pub cached_blocks: u64,
    /// Blocks that were read from the device and decoded.
    pub blocks: u64,
    /// Read requests to the device: for one block, for several adjacent blocks, for an index or a
    /// filter, or for a large value.
    pub reads: u64,
    /// Bytes that these requests read.
    pub read_bytes: u64,
    /// Time that these requests took, nanoseconds.
    pub read_nanos: u64,
    /// Lookups and short ranges that the filter of a run excluded: the run has no such key.
    pub filter_negatives: u64,
    /// Lookups and short ranges that the filter of a run did not exclude.
    pub filter_positives: u64,
}

thread_local! {
    /// Number of `begin` calls on this thread without their `end`. While it is above 0, reads are
    /// added to `COUNTS`.
    static WANTED: Cell<u32> = const { Cell::new(0) };
    static COUNTS: Cell<ReadProfile> = const { Cell::new(ReadProfile::ZERO) };
}

impl ReadProfile {
    const ZERO: Self = Self {
        cached_blocks: 0,
        blocks: 0,
        reads: 0,
        read_bytes: 0,
        read_nanos: 0,
        filter_negatives: 0,
        filter_positives: 0,
    };

    /// Starts counting on this thread. The caller must pass the result to [`end`](Self::end) on the
    /// same thread. Pairs may be nested.
    #[must_use = "counting ends with `end`"]
    pub fn begin() -> Self {
        WANTED.with(|wanted| wanted.set(wanted.get().saturating_add(1)));
        COUNTS.with(Cell::get)
    }

    /// Stops counting. Returns the cost since the call of [`begin`](Self::begin) that returned
    /// `begun`.
    #[must_use]
    pub fn end(begun: Self) -> Self {
        WANTED.with(|wanted| wanted.set(wanted.get().saturating_sub(1)));
        COUNTS.with(Cell::get) - begun
    }

    /// Runs `work`. Returns its result and the cost of its reads on this thread, in all databases
    /// together.
    ///
    /// ```
    /// # use frondb_core::profile::ReadProfile;
    /// let (sum, profile) = ReadProfile::of(|| 1 + 1);
    /// assert_eq!((sum, profile.reads), (2, 0));
    /// ```
    pub fn of<T>(work: impl FnOnce() -> T) -> (T, Self) {
        /// Stops counting also if `work` panics.
        struct Ending(Option<ReadProfile>);
        impl Drop for Ending {
            fn drop(&mut self) {
                if let Some(begun) = self.0 {
                    let _ = ReadProfile::end(begun);
                }
            }
        }
        let mut ending = Ending(Some(Self::begin()));
        let result = work();
        let begun = ending.0.take().unwrap_or_default();
        (result, Self::end(begun))
    }
}

impl Sub for ReadProfile {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            cached_blocks: self.cached_blocks.wrapping_sub(earlier.cached_blocks),
            blocks: self.blocks.wrapping_sub(earlier.blocks),
            reads: self.reads.wrapping_sub(earlier.reads),
            read_bytes: self.read_bytes.wrapping_sub(earlier.read_bytes),
            read_nanos: self.read_nanos.wrapping_sub(earlier.read_nanos),
            filter_negatives: self.filter_negatives.wrapping_sub(earlier.filter_negatives),
            filter_positives: self.filter_positives.wrapping_sub(earlier.filter_positives),
        }
    }
}

/// Whether this thread is counting.
#[inline]
#[must_use]
pub fn is_wanted() -> bool {
    WANTED.with(|wanted| wanted.get() > 0)
}

/// Calls `change` with the counts of this thread if the thread is counting.
#[inline]
pub fn count(change: impl FnOnce(&mut ReadProfile)) {
    if is_wanted() {
        COUNTS.with(|counts| {
            let mut now = counts.get();
            change(&mut now);
            counts.set(now);
        });
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    fn read(bytes: u64) {
        count(|profile| {
            profile.reads += 1;
            profile.read_bytes += bytes;
        });
    }

    #[test]
    fn only_what_happens_within_is_counted() {
        read(1);
        let ((), outer) = ReadProfile::of(|| {
            read(10);
            let ((), inner) = ReadProfile::of(|| read(100));
            assert_eq!((inner.reads, inner.read_bytes), (1, 100));
            read(1000);
        });
        assert_eq!((outer.reads, outer.read_bytes), (3, 1110));
        read(1);
        let ((), nothing) = ReadProfile::of(|| ());
        assert_eq!(nothing, ReadProfile::default());
    }

    #[test]
    fn counting_ends_with_a_panic_and_other_threads_do_not_count() {
        let caught = std::panic::catch_unwind(|| ReadProfile::of(|| panic!("on purpose")));
        assert!(caught.is_err() && !is_wanted());
        let begun = ReadProfile::begin();
        std::thread::spawn(|| assert!(!is_wanted())).join().unwrap();
        assert!(is_wanted());
        let _ = ReadProfile::end(begun);
        assert!(!is_wanted());
    }
}
