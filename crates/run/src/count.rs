//! Counts the entries of a key range exactly, by reading the blocks in which the bounds lie, unless
//! the filter excludes the range.
//!
//! The caller will probably read the range next, as after an optimizer's estimate for a short
//! query. So if the range has only a few blocks, those missing from the cache are read with one
//! request, including the blocks between the bounds, provided that one part of the block index
//! lists them all.

use std::ops::Range;

use frondb_block::Block;
use frondb_core::{Error, Result};
use smallvec::SmallVec;

use crate::index::BlockIndex;
use crate::range_filter::RangeAnswer;
use crate::read::ReadMode;
use crate::reader::Run;

/// Maximum number of blocks, and of bytes, that are read together: as much as a short scan of the
/// range would read anyway.
const TOGETHER_BLOCKS_MAX: usize = 8;
const TOGETHER_BYTES_MAX: usize = 128 << 10;

/// Blocks by number. Held during the count, because the cache may evict them in between.
type Blocks = SmallVec<[(usize, Block); 4]>;

impl Run {
    /// Returns the number of entries with a key in `[lo, hi)`; `None` for `hi` is the end of the
    /// run. Returns `None` and reads no block if the block index shows more than `most` entries.
    ///
    /// # Errors
    /// `Corruption` or a device error of the block index, of the filter or of a block that a bound
    /// falls in.
    pub fn count_between(&self, lo: &[u8], hi: Option<&[u8]>, most: u64) -> Result<Option<u64>> {
        let meta = self.meta();
        let cuts = |key: &&[u8]| **key > *meta.first_key && **key <= *meta.last_key;
        let begins_behind = *lo > *meta.last_key;
        let ends_before = hi.is_some_and(|hi| *hi <= *meta.first_key || *hi <= *lo);
        if begins_behind || ends_before {
            return Ok(Some(0));
        }
        let answer = self.ask_range(lo, hi)?;
        if answer == RangeAnswer::Excluded {
            return Ok(Some(0));
        }
        let entries = self.count_in_blocks(Some(lo).filter(cuts), hi.filter(cuts), most)?;
        if answer == RangeAnswer::Unprobed {
            self.note_range(entries != Some(0));
        }
        Ok(entries)
    }

    /// Returns the number of entries in `[lo, hi)`, as [`count_between`](Self::count_between).
    /// REQUIRES: each bound lies within the run or is absent.
    fn count_in_blocks(
        &self,
        lo: Option<&[u8]>,
        hi: Option<&[u8]>,
        most: u64,
    ) -> Result<Option<u64>> {
        let meta = self.meta();
        let place = |key: &[u8]| {
            let index = self.index_for(key, ReadMode::Scan)?;
            let number = index.find(key);
            Ok::<_, Error>((index, number))
        };
        let (first, last) = (lo.map(place).transpose()?, hi.map(place).transpose()?);
        if let (Some((index, first)), Some((_, last))) = (&first, &last)
            && first == last
            && let (Some(lo), Some(hi)) = (lo, hi)
        {
            let block = self.block(index, *first)?;
            return Ok(Some(block.lower_bound(hi).saturating_sub(block.lower_bound(lo)) as u64));
        }
        // Entries in blocks that lie completely in the range.
        let begin = first.as_ref().map_or(0, |(index, first)| index.rank(first + 1));
        let end = last.as_ref().map_or(meta.entries, |(index, last)| index.rank(*last));
        if end.saturating_sub(begin) > most {
            return Ok(None);
        }
        let held = match (&first, &last) {
            (Some((index, first)), Some((_, last))) if index.blocks().contains(last) => {
                self.hold(index, *first..last + 1)
            }
            _ => Blocks::new(),
        };
        let block = |index: &BlockIndex, number| match held.iter().find(|(n, _)| *n == number) {
            Some((_, block)) => Ok(block.clone()),
            None => self.block(index, number),
        };
        let mut count = end.saturating_sub(begin);
        if let Some(((index, number), lo)) = first.zip(lo) {
            let block = block(&index, number)?;
            count += (block.len() - block.lower_bound(lo)) as u64;
        }
        if let Some(((index, number), hi)) = last.zip(hi) {
            count += block(&index, number)?.lower_bound(hi) as u64;
        }
        Ok(Some(count))
    }

    /// Returns the first and the last of `blocks` if they are cached. If one of them is missing and
    /// the blocks are few, reads all missing blocks together and returns these too. A block that
    /// cannot be read is left out; the caller gets the error when it reads that block alone.
    fn hold(&self, index: &BlockIndex, blocks: Range<usize>) -> Blocks {
        let ends = [blocks.start, blocks.end - 1];
        let mut held: Blocks =
            ends.iter().filter_map(|&n| Some((n, self.cached_block(n)?))).collect();
        if held.len() < ends.len() && blocks.len() <= TOGETHER_BLOCKS_MAX {
            let between = ends[0] + 1..ends[1];
            let is_missing = |n: &usize| match between.contains(n) {
                true => !self.has_cached_block(*n),
                false => held.iter().all(|(held, _)| held != n),
            };
            let missing: SmallVec<[usize; TOGETHER_BLOCKS_MAX]> =
                blocks.filter(is_missing).collect();
            self.read_together(index, &missing, &mut held);
        }
        held
    }

    /// Reads `blocks`, which are not cached, with one request, which includes the blocks between
    /// them. Inserts only `blocks` into the cache and into `held`. Reads nothing if the request
    /// would exceed [`TOGETHER_BYTES_MAX`].
    fn read_together(&self, index: &BlockIndex, blocks: &[usize], held: &mut Blocks) {
        let (Some(&first), Some(&last)) = (blocks.first(), blocks.last()) else { return };
        let (offset, (last_offset, last_len)) = (index.extent(first).0, index.extent(last));
        let len = (last_offset - offset) as usize + last_len;
        if len > TOGETHER_BYTES_MAX {
            return;
        }
        let Ok(span) = self.read(offset, len) else { return };
        for &number in blocks {
            let (at, len) = index.extent(number);
            let begin = (at - offset) as usize;
            let frame = &span.bytes()[begin..begin + len];
            if let Ok(block) = self.decode(frame, at) {
                self.cache_block(number, &block, frame);
                held.push((number, block));
            }
        }
    }
}
