//! [`TreeOptions`]: the options of a tree. Most are options of its trunk: rows of a table
//! (`frondb_trunk::TrunkOptions`), which also defines their check and encoding.

mod encoding;

use frondb_block::Codec;
use frondb_core::{Error, Result};
use frondb_trunk::{FilterPolicy, OptionRow, TrunkOptions};

/// Smallest leaf of a tree with a dictionary, bytes. Each leaf has a copy of the dictionary, which
/// takes some percent of its disk space; in smaller leaves the share would be larger.
const DICTIONARY_LEAF_BYTES: u64 = 64 << 20;

/// Options of a tree. Stored with the tree; `Tree::set_options` changes the codecs and the sizes of
/// blocks and leaves later.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TreeOptions {
    #[doc(hidden)]
    pub trunk: TrunkOptions,
    /// Name and version of the update function; `None` if the tree accepts no updates.
    #[doc(hidden)]
    pub update_fn: Option<(String, u32)>,
}

impl TreeOptions {
    /// Options for a primary or unique index: point reads by full key, values stored with the keys.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Options for a non-unique secondary index: scanned by prefix and rarely probed for a full
    /// key, so its bases have no filters. If most scans give the same number of first bytes of the
    /// key, such as its first columns, `filter(FilterPolicy::Prefix(bytes))` makes short scans
    /// cheaper.
    #[must_use]
    pub fn secondary() -> Self {
        Self::default().filter(FilterPolicy::Runs)
    }

    /// Options for the smallest files: zstd with a dictionary that is trained from the tree's data
    /// ([`Codec::AGGRESSIVE`]), blocks of 32 to 128 KiB, and leaves of 64 MiB or more. Rows are
    /// first written with a quick codec, and packed in the background ([`codec`](Self::codec)). A
    /// lookup decompresses a whole block.
    ///
    /// Blocks have 128 KiB unless smaller blocks take hardly any more space.
    #[must_use]
    pub fn aggressive() -> Self {
        Self::default().codec_with_blocks(Codec::AGGRESSIVE)
    }

    /// The codec of bases, which hold consolidated data; default: [`TrunkOptions::base_codec`].
    /// Runs that are not consolidated yet have lz4, or no codec with [`Codec::None`]. A slow codec
    /// never delays writers: bases are first written with [`Codec::QUICK`], and packed in the
    /// background.
    ///
    /// Background threads that have nothing more urgent to do pack bases of a slow codec
    /// (`Codec::is_slow`) leaf by leaf. The statistic `packed_bytes` is the size of the data that
    /// is packed already; `Tree::optimize` packs the rest and waits for it.
    ///
    /// A codec with a dictionary also raises the smallest leaf to 64 MiB, because each leaf has a
    /// copy of the dictionary; changing to a codec without one resets a smallest leaf of that size
    /// to its default.
    #[must_use]
    pub fn codec(mut self, codec: Codec) -> Self {
        let has_dictionary = |codec| matches!(codec, Codec::ZstdDictionary(_));
        let had_dictionary = has_dictionary(self.trunk.base_codec);
        self.trunk.base_codec = codec;
        self.trunk.run_codec = if codec == Codec::None { Codec::None } else { Codec::Lz4 };
        let large = DICTIONARY_LEAF_BYTES.min(self.trunk.leaf_bytes_max);
        if has_dictionary(codec) {
            self.trunk.leaf_bytes_min = self.trunk.leaf_bytes_min.max(large);
        } else if had_dictionary && self.trunk.leaf_bytes_min == large {
            let default = TrunkOptions::default().leaf_bytes_min;
            self.trunk.leaf_bytes_min = default.min(self.trunk.leaf_bytes_max);
        }
        self
    }

    /// As [`codec`](Self::codec), and sets the block size that the codec prefers
    /// ([`Codec::preferred_block_bytes`]). If the new codec prefers none, the block size becomes
    /// the default if it was the size that the former codec preferred, and otherwise stays.
    #[must_use]
    pub fn codec_with_blocks(mut self, codec: Codec) -> Self {
        let suited = self.trunk.base_codec.preferred_block_bytes();
        let had_suiting = suited == Some(self.trunk.base_block_bytes);
        self = self.codec(codec);
        match codec.preferred_block_bytes() {
            Some(bytes) => self.block_bytes(bytes),
            None if had_suiting => self.block_bytes(TrunkOptions::default().base_block_bytes),
            None => self,
        }
    }

    /// Key and value bytes in a block of consolidated data; default and range:
    /// [`TrunkOptions::base_block_bytes`]. 0 means the size that the codec prefers
    /// (`Codec::preferred_block_bytes`), or the default if it prefers none.
    ///
    /// With a dictionary, the preferred size, 128 KiB, is an upper limit: blocks are smaller if
    /// smaller blocks take hardly any more space. With any other size, all blocks have that size.
    #[must_use]
    pub fn block_bytes(mut self, bytes: usize) -> Self {
        self.trunk.base_block_bytes = match (bytes, self.trunk.base_codec.preferred_block_bytes()) {
            (0, None) => TrunkOptions::default().base_block_bytes,
            (0, Some(suited)) => suited,
            (bytes, _) => bytes,
        };
        self
    }

    /// Target number of children of an inner node below the root; a node may have up to twice as
    /// many. 0 means the default. Default and range: [`TrunkOptions::fanout`]. Fixed when
    /// the tree is created.
    #[must_use]
    pub fn fanout(mut self, fanout: usize) -> Self {
        self.trunk.fanout = if fanout == 0 { TrunkOptions::default().fanout } else { fanout };
        self
    }

    /// Which runs have filters, for point reads or for short scans. Default:
    /// [`TrunkOptions::filter`]. Fixed when the tree is created.
    #[must_use]
    pub fn filter(mut self, policy: FilterPolicy) -> Self {
        self.trunk.filter = policy;
        self
    }

    /// The tree's update function, by name and version, which must be registered in `Options`.
    /// Fixed when the tree is created.
    #[must_use]
    pub fn update_fn(mut self, name: impl Into<String>, version: u32) -> Self {
        self.update_fn = Some((name.into(), version));
        self
    }

    /// Sets an option by its name, for a command line or a configuration file. `codec` and
    /// `block_bytes` act like the methods of these names; all other names are fields of
    /// [`TrunkOptions`]. Values are as in [`TrunkOptions::set`].
    ///
    /// # Errors
    /// `Invalid` if there is no such option, or the text is not a value in its range.
    pub fn set(mut self, name: &str, text: &str) -> Result<Self> {
        let row = match name {
            "codec" => "base_codec",
            "block_bytes" => "base_block_bytes",
            name => name,
        };
        let has_row = TrunkOptions::ROWS.iter().any(|known| known.name == row);
        if !has_row {
            let rows = TrunkOptions::ROWS.iter().map(|row| row.name);
            let names: Vec<_> = ["codec", "block_bytes"].into_iter().chain(rows).collect();
            let known = names.join(", ");
            return Err(Error::invalid(format!("a tree has no option {name:?}; it has {known}")));
        }
        let mut set = self.trunk;
        set.set(row, text).map_err(|e| Error::invalid(e.message().replacen(row, name, 1)))?;
        match name {
            "codec" => self = self.codec(set.base_codec),
            "block_bytes" if TrunkOptions::is_default(text) => self = self.block_bytes(0),
            _ => self.trunk = set,
        }
        Ok(self)
    }

    /// The tree's shape, for experts and tests: sizes of leaves and slices, merge schedule.
    #[must_use]
    pub fn shape(mut self, change: impl FnOnce(&mut TrunkOptions)) -> Self {
        change(&mut self.trunk);
        self
    }
}

impl TreeOptions {
    /// Returns the codec of bases, which hold consolidated data.
    #[must_use]
    pub fn base_codec(&self) -> Codec {
        self.trunk.base_codec
    }

    /// Checks that every option is in its range, and that the smallest leaf is not larger than the
    /// largest.
    ///
    /// # Errors
    /// `Invalid`, with the name of the option and its range.
    pub fn check(&self) -> Result<()> {
        self.trunk.check()
    }

    /// Checks that a tree with these options can change to `next`.
    ///
    /// # Errors
    /// `Invalid` if an option is out of its range, or if a fixed option would change.
    pub fn check_change(&self, next: &Self) -> Result<()> {
        next.check()?;
        let differs =
            |row: &&OptionRow<TrunkOptions>| (row.text)(&self.trunk) != (row.text)(&next.trunk);
        let changed = TrunkOptions::ROWS.iter().filter(|row| row.is_fixed).find(differs);
        let function = (self.update_fn != next.update_fn).then_some("update_fn");
        match changed.map(|row| row.name).or(function) {
            None => Ok(()),
            Some(name) => {
                let rows = TrunkOptions::ROWS.iter().filter(|row| !row.is_fixed);
                let free = rows.map(|row| row.name).collect::<Vec<_>>().join(", ");
                Err(Error::invalid(format!(
                    "{name} is fixed when a tree is created; only these can be changed: {free}"
                )))
            }
        }
    }
}
