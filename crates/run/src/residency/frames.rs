//! Blocks and indexes that the cache holds as they are on disk (as *frames*), and their hits.

use frondb_core::mem::Buf;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// One hit in this many replaces the cached frame by the decoded object. The decoded object takes
/// the memory of several frames, so it pays only for frames that are read far more often than most.
pub(crate) const HITS: u64 = 256;
/// The same number, once the cache would insert decoded objects instead of frames.
pub(crate) const HITS_WITHOUT_REASON: u64 = 16;
/// Bytes of a block or an index as they are on disk.
pub type Frame = Arc<Buf>;

/// Returns a copy of a frame for the cache, and the memory that it takes, in bytes.
pub(crate) fn copy_of(frame: &[u8]) -> (Frame, u64) {
    let copy = Buf::copy_from(frame);
    let bytes = copy.footprint() + 2 * size_of::<usize>();
    (Arc::new(copy), bytes as u64)
}

/// The evictions of the cache during the last hits on frames: without evictions, each hit may
/// replace its frame. One object for all threads.
#[derive(Debug, Default)]
pub(crate) struct FrameHits {
    /// Number of evictions of the cache when the last [`HITS`] hits began.
    evictions: AtomicU64,
    /// Whether the cache evicted nothing during those hits.
    is_calm: AtomicBool,
}

impl FrameHits {
    /// Notes a hit. `hits` is the number of hits before it, `evictions` the cache's evictions so
    /// far.
    pub(crate) fn note(&self, hits: u64, evictions: u64) {
        if hits.is_multiple_of(HITS) {
            let before = self.evictions.swap(evictions, Ordering::Relaxed);
            self.is_calm.store(hits > 0 && evictions == before, Ordering::Relaxed);
        }
    }

    /// Returns whether the cache evicted nothing during the last [`HITS`] hits.
    pub(crate) fn is_calm(&self) -> bool {
        self.is_calm.load(Ordering::Relaxed)
    }
}

/// Returns whether the hit after `hits` other hits is chosen; one hit in `one_in` is. Multiples of
/// the golden ratio spread the choices evenly: two choices are at most twice `one_in` hits apart,
/// and if readers visit the same frames in turn, the choice does not fall on the same frame each
/// time.
pub(crate) fn is_chosen(hits: u64, one_in: u64) -> bool {
    hits.wrapping_mul(0x9E37_79B9_7F4A_7C15) < u64::MAX / one_in
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use super::*;

    #[test]
    fn one_hit_in_this_many_is_chosen_in_any_order_of_readers() {
        for one_in in [HITS_WITHOUT_REASON, HITS] {
            let count = |step: usize| {
                let hits = (0..one_in * 1_000 * step as u64).step_by(step);
                hits.filter(|&hits| is_chosen(hits, one_in)).count()
            };
            for step in [1, 2, 16, 100, 256] {
                assert!((900..1_100).contains(&count(step)), "every {step}th hit: {}", count(step));
            }
            let chosen: Vec<u64> =
                (0..one_in * 1_000).filter(|&hits| is_chosen(hits, one_in)).collect();
            assert!(chosen.windows(2).all(|pair| pair[1] - pair[0] <= 2 * one_in));
        }
    }
}
