//! Estimates of the number of entries in a key range, from the block index.

use std::ops::Range;

use frondb_core::Result;
use frondb_core::chunk::key_prefix;

use crate::read::ReadMode::Scan;
use crate::reader::Run;

/// The result of [`Run::key_after`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyAfter {
    /// The key; `None` if the range ends before `n` entries.
    pub key: Option<Box<[u8]>>,
    /// Estimated entries below the key, or of the whole range.
    pub entries: u64,
}

impl Run {
    /// Returns a key with about `n` entries of `[lo, hi)` below it, from the block index alone: the
    /// separator of the first block that begins at least `n` entries after the beginning of the
    /// block of `lo`.
    pub fn key_after(&self, lo: &[u8], hi: Option<&[u8]>, n: u64) -> Result<KeyAfter> {
        let mut index = self.index_for(lo, Scan)?;
        let from = index.find(lo);
        let below_from = index.rank(from);
        let most = below_from.saturating_add(n);
        if index.rank(index.blocks().end) < most {
            index = self.index_behind(most)?;
        }
        let blocks = from.max(index.blocks().start)..index.blocks().end;
        let mut block = first_not(blocks, |block| index.rank(block) < most);
        // A block that continues a key does not begin with a new key.
        while index.continues(block) {
            if block == index.blocks().end {
                index = self.index_of(block, Scan)?;
            }
            block += 1;
        }
        let is_beyond = |block| hi.is_some_and(|hi| index.separator(block) >= *hi || lo >= hi);
        let has_block = block < index.blocks().end || !index.is_last();
        if has_block && !is_beyond(block) {
            let entries = index.rank(block) - below_from;
            let key = index.separator(block).to_vec().into_boxed_slice().max(lo.into());
            return Ok(KeyAfter { key: Some(key), entries });
        }
        // All entries before `block`, or fewer if `hi` is reached before.
        let mut below = index.rank(block);
        if let Some(hi) = hi {
            let end = if hi <= lo { lo } else { hi };
            let index = self.index_for(end, Scan)?;
            let end = if hi <= lo { from + 1 } else { index.end_before(hi) };
            if end < block || hi <= lo {
                below = index.rank(end);
            }
        }
        Ok(KeyAfter { key: None, entries: below - below_from })
    }

    /// Estimates the number of entries with a key below `key`, from the block index alone. Assumes
    /// that keys are evenly distributed within a block, which may hold thousands of small entries.
    pub fn rank(&self, key: &[u8]) -> Result<u64> {
        let meta = self.meta();
        if *key <= *meta.first_key {
            return Ok(0);
        }
        if *key > *meta.last_key {
            return Ok(meta.entries);
        }
        let index = self.index_for(key, Scan)?;
        let block = index.find(key);
        let begin = match block {
            0 => meta.first_key.to_vec(),
            _ => index.separator(block).to_vec(),
        };
        let after = index.separator_after(block);
        let end = after.map_or_else(|| meta.last_key.to_vec(), |separator| separator.to_vec());
        let entries = index.rank(block + 1) - index.rank(block);
        Ok(index.rank(block) + part_below(key, &begin, &end, entries))
    }
}

/// Returns the first block of a range for which `is_before` is false, or the end of the range.
/// REQUIRES: `is_before` is true for all blocks before that one.
fn first_not(blocks: Range<usize>, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut lo, mut hi) = (blocks.start, blocks.end.max(blocks.start));
    while lo < hi {
        let mid = (lo + hi) / 2;
        if is_before(mid) { lo = mid + 1 } else { hi = mid }
    }
    lo
}

/// Estimates how many of `entries` are below `key`. Assumes that their keys lie evenly between
/// `begin` and `end`, and compares the eight bytes after the common prefix of both ends.
fn part_below(key: &[u8], begin: &[u8], end: &[u8], entries: u64) -> u64 {
    if key <= begin || key >= end {
        return if key <= begin { 0 } else { entries };
    }
    let common = begin.iter().zip(end).take_while(|(a, b)| a == b).count();
    let number = |key: &[u8]| u128::from(key_prefix(&key[common..]));
    let (from, to) = (number(begin), number(end));
    let at = number(key) - from;
    // If the two ends do not differ within those bytes, half of the entries is the best estimate.
    if from == to { entries / 2 } else { (u128::from(entries) * at / (to - from)) as u64 }
}
