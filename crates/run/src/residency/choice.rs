//! When the cache holds a block or an index as it is on disk (as a *frame*), and when the decoded
//! object replaces such a frame. Pure decisions from the measurements of the other files.

use crate::env::RunEnv;
use crate::residency::frames::{FrameHits, HITS, HITS_WITHOUT_REASON, is_chosen};

/// A frame is cached instead of its decoded block, on any device, if the frame is at least this
/// many times smaller. With room for 1/n of the decoded blocks, the cache saves a read and a
/// decoding for one lookup in n. With frames, it saves a read for six lookups in n, but no
/// decoding, so frames are better as soon as a read takes a fifth of the time of a decoding. Rows
/// that are read again come from the row cache.
const MUCH_SMALLER: u64 = 6;

/// Frames save nothing while the cache has room for 1/4 of the memory budget, which is more than
/// background work and readers use for a short time.
const MUCH_ROOM_DIVISOR: u64 = 4;

/// Every hit replaces its frame if the cache has recently evicted nothing and has room for 1/16 of
/// the memory budget: then everything that is read fits.
const CALM_ROOM_DIVISOR: u64 = 16;

/// While the cache has room for 1/64 of the memory budget, blocks are decoded with rows.
const ROWS_ROOM_DIVISOR: u64 = 64;

/// Upper bound of the memory of a block or an index, as a multiple of its raw bytes.
const READER_FACTOR: u64 = 2;

impl RunEnv {
    /// Returns whether a block of `bytes` bytes that is decoded now should have rows: the cache has
    /// room for it, so many reads will find it there. The room changes with the blocks that other
    /// threads are reading, so little room counts as none.
    pub(crate) fn wants_rows(&self, bytes: u64) -> bool {
        let least = (self.budget.total() / ROWS_ROOM_DIVISOR).max(2 * bytes);
        self.cache.room() >= least
    }

    /// Returns whether the cache has room for `bytes` decoded bytes and the lookup tables of their
    /// reader, and `reads` reads justify caching them. If so, spends one read credit.
    pub(crate) fn warms(&self, bytes: u64, reads: u64) -> bool {
        self.cache.room() / READER_FACTOR >= bytes && self.read_credit.take(reads)
    }

    /// Returns whether the cache should hold a block of `bytes` decoded bytes as its frame of
    /// `frame` bytes.
    pub(crate) fn wants_frame(&self, frame: usize, bytes: u64) -> bool {
        self.prefers_frame(frame, bytes) && !self.has_much_room()
    }

    /// Returns whether, in a full cache, a frame of `frame` bytes saves more time in reads than it
    /// costs to decode at each hit. The decoded block takes `bytes` bytes.
    pub(crate) fn prefers_frame(&self, frame: usize, bytes: u64) -> bool {
        let frame = frame as u64;
        let saves_a_quarter = frame * 4 <= bytes * 3;
        frame * MUCH_SMALLER <= bytes || saves_a_quarter && self.pace.is_slow()
    }

    /// Returns whether the cache should hold indexes, or parts of them, as frames.
    pub(crate) fn wants_index_frames(&self) -> bool {
        self.index_pressure.is_high() && !self.has_much_room()
    }

    fn has_much_room(&self) -> bool {
        self.cache.room() >= self.budget.total() / MUCH_ROOM_DIVISOR
    }

    /// Returns whether the decoded object should replace the frame at a hit. `hits` is the number
    /// of hits on frames before it; `has_reason` says whether the cache would insert a frame now.
    pub(crate) fn replaces_frame(&self, counter: &FrameHits, hits: u64, has_reason: bool) -> bool {
        counter.note(hits, self.cache.evictions());
        let one_in = if has_reason { HITS } else { HITS_WITHOUT_REASON };
        is_chosen(hits, one_in) || self.all_fits(counter) || self.has_much_room()
    }

    fn all_fits(&self, counter: &FrameHits) -> bool {
        counter.is_calm() && self.cache.room() >= self.budget.total() / CALM_ROOM_DIVISOR
    }
}
