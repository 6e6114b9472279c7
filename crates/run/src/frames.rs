//! Blocks and indexes that the cache holds as they are on disk (as *frames*), and when the decoded
//! object replaces such a frame.

use frondb_core::mem::Buf;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::env::RunEnv;

/// A frame is cached instead of its decoded block, on any device, if it is at least this many times
/// smaller. If the cache holds one decoded block in `n`, one hit in `n` saves a decoding; as
/// frames, six times as many blocks save reads, which pays once a read takes a fifth of a decoding
/// (decision 0079). Rows that are read again come from the row cache.
const MUCH_SMALLER: u64 = 6;

/// Frames save nothing while the cache has room for 1/4 of the memory budget, which is more than
/// background work and readers use for a short time.
const MUCH_ROOM_DIVISOR: u64 = 4;
/// One hit in this many replaces the cached frame by the decoded object. The decoded object takes
/// the memory of several frames, so only frames that are read far more often than most are worth
/// it.
const HITS: u64 = 256;
/// The same, once the cache would no longer insert frames.
const HITS_WITHOUT_REASON: u64 = 16;
/// Every hit replaces its frame if the cache has recently evicted nothing and has room for 1/16 of
/// the memory budget: then everything that is read fits.
const ROOM_DIVISOR: u64 = 16;

/// Bytes of a block or an index as they are on disk.
pub type Frame = Arc<Buf>;

/// A copy of a frame for the cache, and the memory that it takes, in bytes.
pub(crate) fn copy_of(frame: &[u8]) -> (Frame, u64) {
    let copy = Buf::copy_from(frame);
    let bytes = copy.footprint() + 2 * size_of::<usize>();
    (Arc::new(copy), bytes as u64)
}

/// Decides which hits replace a frame. One object for all threads.
#[derive(Debug, Default)]
pub(crate) struct FrameHits {
    /// Number of evictions of the cache when the last [`HITS`] hits began.
    evictions: AtomicU64,
    /// Whether the cache evicted nothing during those hits.
    is_calm: AtomicBool,
}

impl FrameHits {
    /// Whether the decoded object should replace the frame at a hit, given the number of `hits`
    /// before it. `has_reason` says whether the cache would still insert a frame.
    pub(crate) fn replaces(&self, env: &RunEnv, hits: u64, has_reason: bool) -> bool {
        if hits.is_multiple_of(HITS) {
            let evictions = env.cache.evictions();
            let before = self.evictions.swap(evictions, Ordering::Relaxed);
            self.is_calm.store(hits > 0 && evictions == before, Ordering::Relaxed);
        }
        let one_in = if has_reason { HITS } else { HITS_WITHOUT_REASON };
        is_chosen(hits, one_in) || self.all_fits(env) || env.has_much_room()
    }

    fn all_fits(&self, env: &RunEnv) -> bool {
        self.is_calm.load(Ordering::Relaxed)
            && env.cache.room() >= env.budget.total() / ROOM_DIVISOR
    }
}

/// Whether to choose a hit, one in `one_in`. Multiples of the golden ratio are spread evenly: the
/// distance of two choices is at most twice `one_in`, and readers that visit the same frames in
/// turn do not get the same frame chosen each time.
fn is_chosen(hits: u64, one_in: u64) -> bool {
    hits.wrapping_mul(0x9E37_79B9_7F4A_7C15) < u64::MAX / one_in
}

impl RunEnv {
    /// Whether the cache should hold a block of `bytes` decoded bytes as its frame of `frame`
    /// bytes.
    pub(crate) fn wants_frame(&self, frame: usize, bytes: u64) -> bool {
        self.prefers_frame(frame, bytes) && !self.has_much_room()
    }

    /// Whether, in a full cache, the reads that a frame of `frame` bytes saves outweigh decoding it
    /// at each hit. The decoded block takes `bytes` bytes.
    pub(crate) fn prefers_frame(&self, frame: usize, bytes: u64) -> bool {
        let frame = frame as u64;
        let saves_a_quarter = frame * 4 <= bytes * 3;
        frame * MUCH_SMALLER <= bytes || saves_a_quarter && self.pace.is_slow()
    }

    /// Whether the cache should hold indexes, or parts of them, as frames.
    pub(crate) fn wants_index_frames(&self) -> bool {
        self.index_pressure.is_high() && !self.has_much_room()
    }

    fn has_much_room(&self) -> bool {
        self.cache.room() >= self.budget.total() / MUCH_ROOM_DIVISOR
    }
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
