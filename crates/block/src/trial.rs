//! [`CodecTrial`]: finds out whether compression pays off, and skips it if it does not.
//!
//! lz4 takes nearly as long for bytes that do not shrink (hashes, encrypted or compressed values,
//! random keys) as for bytes that do. So one block in [`INTERVAL`] is a trial. If the trial saves
//! less than an eighth (ZFS discards such a result, too), the blocks up to the next trial are
//! stored uncompressed. All other codecs are always used: a user who chose one wants every byte
//! saved, and each block is written only once.

use crate::codec::Codec;

/// One block in this many is a trial.
const INTERVAL: u32 = 16;
/// Compression pays off if it saves at least the raw bytes divided by this number.
const SAVED_PART: usize = 8;

/// The trials of one stream of blocks. For one thread at a time.
#[derive(Debug)]
pub struct CodecTrial {
    codec: Codec,
    pays: bool,
    /// Number of blocks until the next trial.
    blocks_left: u32,
}

impl CodecTrial {
    /// Starts trials for blocks that use `codec` if it pays off. The first block is a trial.
    #[must_use]
    pub fn new(codec: Codec) -> Self {
        Self { codec, pays: true, blocks_left: 0 }
    }

    /// Returns the codec of the next block.
    #[must_use]
    pub fn next(&self) -> Codec {
        let is_doubted = self.codec == Codec::Lz4 && self.blocks_left > 0;
        if is_doubted && !self.pays { Codec::None } else { self.codec }
    }

    /// Records that the block shrank from `raw_bytes` to `bytes`.
    pub fn record(&mut self, raw_bytes: usize, bytes: usize) {
        if self.blocks_left == 0 {
            self.blocks_left = INTERVAL;
            self.pays = bytes <= raw_bytes - raw_bytes / SAVED_PART;
        }
        self.blocks_left -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether each of the blocks that shrink to these percentages is compressed.
    fn choices(codec: Codec, parts: impl IntoIterator<Item = usize>) -> Vec<bool> {
        let mut trial = CodecTrial::new(codec);
        let choose = |part| {
            let chosen = trial.next();
            trial.record(1000, if chosen == Codec::None { 1000 } else { part * 10 });
            chosen != Codec::None
        };
        parts.into_iter().map(choose).collect()
    }

    #[test]
    fn one_block_in_sixteen_is_tried_where_little_is_saved() {
        let mut expected = vec![false; 40];
        (0..40).step_by(16).for_each(|i| expected[i] = true);
        assert_eq!(choices(Codec::Lz4, [88; 40]), expected);
        assert_eq!(choices(Codec::Lz4, [87; 40]), [true; 40]);
    }

    #[test]
    fn a_trial_notices_both_changes() {
        let parts = [[99; 20], [10; 20]].concat();
        let compressed = choices(Codec::Lz4, parts).iter().filter(|&&yes| yes).count();
        assert_eq!(compressed, 2 + 8);
        let parts = [[10; 20], [99; 20]].concat();
        let compressed = choices(Codec::Lz4, parts).iter().filter(|&&yes| yes).count();
        assert_eq!(compressed, 33);
    }

    #[test]
    fn slow_codecs_are_always_used() {
        assert_eq!(choices(Codec::Zstd(1), [100; 40]), [true; 40]);
        assert_eq!(choices(Codec::None, [100; 40]), [false; 40]);
    }
}
