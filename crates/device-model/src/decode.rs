//! Times in which a processor decodes blocks: the other part of a read that misses the cache.
//!
//! The blocks have sample rows: keys of 16 bytes in ascending order, and values of 50 random bytes,
//! which no codec shrinks, and 50 equal ones. The blocks use the codec of a new tree. The decoding
//! time per byte of rows is about the same for other rows. The compression of other rows differs,
//! so a caller that knows the compression of its rows should use it instead of the sample's.

use frondb_block::{Block, BlockBuilder, BlockOptions, Place};
use frondb_core::prng::Prng;
use frondb_core::{MessageKind, Result, SeqNo};

use crate::machine::Machine;

/// Sizes of the blocks that are decoded, and compared in the advice; key and value bytes.
const BLOCK_BYTES: [usize; 4] = [8 << 10, 16 << 10, 32 << 10, 64 << 10];
/// Number of blocks of each size.
const BLOCKS: u64 = 16;
/// Number of times that each block is decoded.
const REPEATS: usize = 8;
const VALUE_BYTES: usize = 100;
const SEED: u64 = 7;

/// The time to decode blocks of one size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DecodeTime {
    /// Key and value bytes of a block.
    pub block_bytes: u64,
    /// The compression factor of the sample's blocks: size in memory divided by size on disk.
    pub compression: f64,
    /// Median time to decode one block, seconds.
    pub seconds: f64,
}

/// Measures how long this machine takes to decode blocks of 8, 16, 32 and 64 KiB; takes some
/// milliseconds.
///
/// # Errors
/// `Internal` if the codec fails.
pub fn decode_times(machine: &Machine) -> Result<Vec<DecodeTime>> {
    BLOCK_BYTES.into_iter().map(|bytes| decode_time(machine, bytes)).collect()
}

fn decode_time(machine: &Machine, block_bytes: usize) -> Result<DecodeTime> {
    let mut random = Prng::new(SEED);
    let place = Place { file: "sample", offset: 0 };
    let mut times = Vec::new();
    let (mut raw, mut stored) = (0, 0);
    for number in 0..BLOCKS {
        let frame = block(number << 32, block_bytes, &mut random)?;
        raw += frame.0;
        stored += frame.1.len();
        for _ in 0..REPEATS {
            let before = machine.clock.now();
            let decoded = Block::decode(&frame.1, &place)?;
            times.push(machine.clock.now() - before);
            drop(decoded);
        }
    }
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    Ok(DecodeTime {
        block_bytes: block_bytes as u64,
        compression: raw as f64 / stored.max(1) as f64,
        seconds: median.as_secs_f64(),
    })
}

/// Makes a block of sample rows. Returns the length of its keys and values, and its frame.
fn block(first: u64, bytes: usize, random: &mut Prng) -> Result<(usize, Vec<u8>)> {
    let mut builder = BlockBuilder::new(BlockOptions::default());
    let mut value = [b'v'; VALUE_BYTES];
    let mut key = [0; 16];
    for row in first.. {
        key[..8].copy_from_slice(&(row >> 3).to_be_bytes());
        key[8..].copy_from_slice(&row.to_be_bytes());
        random.fill(&mut value[..VALUE_BYTES / 2]);
        builder.add(&key, SeqNo(row + 1), MessageKind::Put, &value);
        if builder.raw_bytes() >= bytes {
            break;
        }
    }
    let mut frame = Vec::new();
    let raw = builder.raw_bytes();
    builder.finish(&mut frame)?;
    Ok((raw, frame))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_decoded() -> Result<()> {
        let times = decode_times(&Machine::this())?;
        let sizes: Vec<u64> = times.iter().map(|time| time.block_bytes >> 10).collect();
        assert_eq!(sizes, [8, 16, 32, 64]);
        for time in times {
            assert!(time.seconds > 0.0 && (1.2..4.0).contains(&time.compression), "{time:?}");
        }
        Ok(())
    }
}
