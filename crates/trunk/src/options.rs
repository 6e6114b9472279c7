//! Options of one tree: its shape and the encoding of its runs.

use frondb_block::Codec;
use frondb_filter::FilterKind;
use frondb_run::{FILTER_PART_KEYS, INDEX_PART_BLOCKS, RunOptions};

/// Which runs of a tree get filters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FilterPolicy {
    /// No filters: lookups read a block of every run whose key range contains the key.
    None,
    /// Filters over whole keys, on runs and on the base: for trees that are searched by full key.
    Full,
    /// Filters over whole keys, on runs but not on the base.
    Runs,
    /// Filters over this many first bytes of keys, on runs only: for indexes that are scanned by
    /// prefix. If the bounds of a cursor or count share these bytes, it reads no block of a run
    /// that has no key with them; longer bounds work too, but a shorter prefix cannot use the
    /// filters. Shorter keys are hashed whole.
    Prefix(u16),
}

/// Shape and encoding of one tree.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TrunkOptions {
    /// Codec of base blocks. If it is slow (`Codec::is_slow`), bases have [`Codec::QUICK`] until
    /// background work has time to pack them.
    pub base_codec: Codec,
    /// Codec of run blocks.
    pub run_codec: Codec,
    /// Key and value bytes of a base block, 256 bytes to 4 MiB.
    pub base_block_bytes: usize,
    /// Key and value bytes of a run block, 256 bytes to 4 MiB.
    pub run_block_bytes: usize,
    /// Which runs get filters.
    pub filter: FilterPolicy,
    /// Target number of children of an inner node below the root; a node may have up to twice as
    /// many. 2 to 1,024.
    pub fanout: usize,
    /// Smallest leaf target, key and value bytes: 4 KiB to `leaf_bytes_max`.
    pub leaf_bytes_min: u64,
    /// Largest leaf target, key and value bytes: 4 KiB to 4 GiB.
    pub leaf_bytes_max: u64,
    /// Smallest slice worth writing to a leaf, key and value bytes: 256 bytes to 64 MiB.
    pub slice_bytes_min: u64,
    /// How often a message is written before it reaches the base; 1 to 4.
    pub writes_before_base: u8,
    /// A leaf is rewritten when its runs above the base have grown to this percentage of the base's
    /// size; 10 to 1,000.
    pub growth_percent: u64,
    /// A leaf is rewritten when more than this percentage of its messages is estimated to be
    /// garbage; 5 to 95.
    pub garbage_percent: u64,
}

impl Default for TrunkOptions {
    fn default() -> Self {
        Self {
            base_codec: Codec::Zstd(1),
            run_codec: Codec::Lz4,
            base_block_bytes: 16 * 1024,
            run_block_bytes: 32 * 1024,
            filter: FilterPolicy::Full,
            fanout: 16,
            leaf_bytes_min: 8 << 20,
            leaf_bytes_max: 256 << 20,
            slice_bytes_min: 256 << 10,
            writes_before_base: 2,
            growth_percent: 100,
            garbage_percent: 35,
        }
    }
}

impl TrunkOptions {
    /// The encoding of a run that has been written `writes` times.
    #[must_use]
    pub fn run(&self, writes: u8) -> RunOptions {
        let (filter, filter_prefix) = match self.filter {
            FilterPolicy::None => (FilterKind::None, None),
            FilterPolicy::Full | FilterPolicy::Runs => (FilterKind::BlockedBloom, None),
            FilterPolicy::Prefix(n) => (FilterKind::BlockedBloom, Some(n)),
        };
        RunOptions {
            codec: self.run_codec,
            block_bytes: self.run_block_bytes,
            tree_block_bytes: self.run_block_bytes,
            filter,
            filter_prefix,
            filter_part_keys: FILTER_PART_KEYS,
            index_part_blocks: INDEX_PART_BLOCKS,
            writes,
        }
    }

    /// The encoding of a base that writers may be waiting for.
    #[must_use]
    pub fn quick_base(&self) -> RunOptions {
        let base = self.base();
        if !self.base_codec.is_slow() {
            return base;
        }
        // Only the slow codec makes large blocks worth their cost for readers.
        let block_bytes = base.block_bytes.min(self.run_block_bytes);
        RunOptions { codec: Codec::QUICK, block_bytes, ..base }
    }

    /// The encoding of a packed base.
    #[must_use]
    pub fn base(&self) -> RunOptions {
        let filter = match self.filter {
            FilterPolicy::Full => FilterKind::BinaryFuse8,
            _ => FilterKind::None,
        };
        RunOptions {
            codec: self.base_codec,
            block_bytes: self.base_block_bytes,
            tree_block_bytes: self.base_block_bytes,
            filter,
            filter_prefix: None,
            filter_part_keys: FILTER_PART_KEYS,
            index_part_blocks: INDEX_PART_BLOCKS,
            writes: u8::MAX,
        }
    }

    /// Whether a base packed with this codec and block size is already in its final form. `None`
    /// and 0 mean unknown, as in bases of earlier versions.
    #[must_use]
    pub fn is_packed(&self, codec: Option<Codec>, tree_block_bytes: u32) -> bool {
        let has_wanted_blocks =
            tree_block_bytes == 0 || tree_block_bytes as usize == self.base_block_bytes;
        self.base_codec.is_final_for(codec) && has_wanted_blocks
    }

    /// Whether a user chose the block size of bases: it differs from the size that the codec
    /// prefers. A dictionary that suits smaller blocks then does not change it.
    #[must_use]
    pub fn are_blocks_chosen(&self) -> bool {
        self.base_codec.preferred_block_bytes() != Some(self.base_block_bytes)
    }

    /// Number of first bytes of a key that the filters of runs hash; `None` for the whole key.
    #[must_use]
    pub fn filter_prefix(&self) -> Option<u16> {
        match self.filter {
            FilterPolicy::Prefix(n) => Some(n),
            _ => None,
        }
    }
}
