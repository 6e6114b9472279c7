//! [`CacheKey`]: the name of a block.

use frondb_core::RunId;

/// A block of a run. Run ids are never reused (rule 7), so a key always means the same block, and
/// correctness never requires removing anything from the cache.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CacheKey {
    /// The run.
    pub run: RunId,
    /// Number of the block in the run, or a number that stands for another part of the run.
    pub block: u32,
}

impl CacheKey {
    /// Block number that stands for the run's index, or for the upper level of an index in parts.
    pub const INDEX: u32 = u32::MAX;
    /// Largest number of data blocks of a run.
    pub const BLOCKS_MAX: u32 = (1 << 31) - 1;
    /// Largest number of parts of a run's filter, and of its index.
    pub const PARTS_MAX: u32 = (1 << 30) - 1;
    /// Block number that stands for the first part of the run's filter; the other parts follow.
    const FILTER: u32 = 1 << 31;
    /// Block number that stands for the first part of the run's index; the other parts follow.
    const INDEX_PART: u32 = 3 << 30;

    /// Returns the key of a block.
    #[inline]
    #[must_use]
    pub const fn block(run: RunId, block: u32) -> Self {
        Self { run, block }
    }

    /// Returns the key of the run's index, or of the upper level of an index in parts.
    #[inline]
    #[must_use]
    pub const fn index(run: RunId) -> Self {
        Self { run, block: Self::INDEX }
    }

    /// Returns the key of a part of the run's index. `part` is below
    /// [`PARTS_MAX`](Self::PARTS_MAX).
    #[inline]
    #[must_use]
    pub const fn index_part(run: RunId, part: u32) -> Self {
        Self { run, block: Self::INDEX_PART + part }
    }

    /// Returns the key of a part of the run's filter. `part` is below
    /// [`PARTS_MAX`](Self::PARTS_MAX).
    #[inline]
    #[must_use]
    pub const fn filter(run: RunId, part: u32) -> Self {
        Self { run, block: Self::FILTER + part }
    }

    /// Returns a hash whose every bit depends on every bit of the key: different bits of it choose
    /// the shard and serve as fingerprints in the table and the ghost. Two multiplications suffice:
    /// the keys are the engine's own numbers, so no attacker can choose them to collide.
    #[inline]
    pub(crate) fn hash64(self) -> u64 {
        let mixed = u128::from(self.run.get() ^ 0x9e37_79b9_7f4a_7c15)
            * u128::from(u64::from(self.block) << 1 | 0xa076_1d64_0000_0001);
        let folded = (mixed >> 64) as u64 ^ mixed as u64;
        let again = u128::from(folded ^ u64::from(self.block)) * 0xe703_7ed1_a0b4_28db;
        (again >> 64) as u64 ^ again as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hashes of neighbouring blocks and runs, as a scan reads them, are spread evenly over any
    /// few bits of the hash.
    #[test]
    fn hashes_of_neighbours_are_spread_evenly() {
        for shift in [0, 7, 32, 54, 58] {
            let mut counts = [0u32; 64];
            for run in 0..64 {
                for block in (0..200)
                    .chain((0..40).map(|part| CacheKey::FILTER + part))
                    .chain((0..17).map(|part| CacheKey::INDEX_PART + part))
                    .chain([CacheKey::INDEX])
                {
                    let hash = CacheKey::block(RunId(run), block).hash64();
                    counts[(hash >> shift) as usize & 63] += 1;
                }
            }
            let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            assert!(*least > 180 && *most < 340, "bits {shift}..: {least} to {most} of 258");
        }
    }
}
