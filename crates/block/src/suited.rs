//! Chooses the best block size for use with a dictionary.
//!
//! A point read decodes a whole block for one row, so smaller blocks make it faster. The space that
//! smaller blocks cost depends on the data. If the dictionary has all that rows have in common, as
//! with the keys of JSON events, blocks of a quarter of the size take 2 % more space. If a row
//! mostly resembles its neighbours, as with the lines of a log, they take an eighth more. So the
//! sizes are tried with samples.

use frondb_core::sync::Arc;

use crate::codec::Check;
use crate::dictionary::{Dictionary, DictionaryEncoder};
use crate::format::FRAME_HEADER_BYTES;

/// Smallest block size that is tried, bytes: by default a base has blocks of this size until it is
/// packed.
const SMALLEST: usize = 32 << 10;
/// The most additional space that smaller blocks may take, percent.
const EXCESS_PERCENT: u64 = 2;
/// Bytes that a block takes besides its payload: the header of its frame, and its entry in the
/// block index.
const OVERHEAD: usize = FRAME_HEADER_BYTES + 20;

impl Dictionary {
    /// Returns the smallest block size, in raw bytes, with which the data takes at most 2 % more
    /// space than with blocks of `most` bytes, if both use this dictionary at `level`: `most`, or a
    /// half or a quarter of it if that is at least 32 KiB. `samples` are pieces of the data, each
    /// of about `most` consecutive bytes. `charge` is called with the bytes of memory that the
    /// trial takes; its result is kept until the trial ends. A block that zstd fails to compress
    /// counts with its raw size, because it would be stored uncompressed.
    pub fn suited_block_bytes<M>(
        self: &Arc<Self>,
        level: u8,
        samples: &[Vec<u8>],
        most: usize,
        charge: impl FnOnce(u64) -> M,
    ) -> usize {
        let mut encoder = DictionaryEncoder::new(self, level);
        let _charged = charge(encoder.memory_bytes() as u64);
        let mut packed = Vec::new();
        let mut bytes_in = |size: usize| -> u64 {
            let mut sum = 0;
            for block in samples.iter().flat_map(|sample| sample.chunks(size)) {
                packed.clear();
                let shrinks = encoder.compress(block, &mut packed, Check::No).unwrap_or(false);
                sum += OVERHEAD + if shrinks { packed.len() } else { block.len() };
            }
            sum as u64
        };
        let allowed = bytes_in(most) * (100 + EXCESS_PERCENT) / 100;
        for size in [most / 4, most / 2] {
            if size >= SMALLEST && bytes_in(size) <= allowed {
                return size;
            }
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frondb_core::prng::Prng;

    const MOST: usize = 128 << 10;

    /// Returns JSON events, each with one of 50 kinds, one of `names` names and a random number.
    /// The names depend on `seed`.
    fn rows(seed: u64, bytes: usize, names: usize) -> Vec<u8> {
        let mut prng = Prng::new(seed);
        let mut name = || format!("{:016x}{:016x}", prng.next_u64(), prng.next_u64());
        let names: Vec<String> = (0..names).map(|_| name()).collect();
        let mut rows = Vec::with_capacity(bytes + 200);
        while rows.len() < bytes {
            let (kind, n) = (prng.below(50), prng.below(1 << 48));
            let name = &names[prng.index(names.len())];
            let row = format!("{{\"kind\":\"of-the-kind-{kind}\",\"of\":\"{name}\",\"n\":{n}}}\0");
            rows.extend_from_slice(row.as_bytes());
        }
        rows
    }

    fn suited(names: usize) -> usize {
        let dictionary = Dictionary::train(&rows(1, 4 << 20, names), 64 << 10, 0).unwrap().unwrap();
        let samples: Vec<Vec<u8>> = (2..5).map(|seed| rows(seed, MOST, names)).collect();
        Arc::new(dictionary).suited_block_bytes(12, &samples, MOST, |_| ())
    }

    #[test]
    fn blocks_are_small_where_the_dictionary_has_what_rows_share() {
        assert_eq!(suited(1), MOST / 2);
    }

    #[test]
    fn an_encoder_that_miswrites_fails_no_trial() {
        let before = crate::miscoded_blocks();
        assert_eq!(crate::faulty::with_faulty_encoders(|| suited(1)), MOST / 2);
        assert!(crate::miscoded_blocks() > before);
    }

    #[test]
    fn blocks_are_large_where_rows_resemble_their_neighbours() {
        assert_eq!(suited(300), MOST);
    }
}
