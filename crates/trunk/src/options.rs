//! Options of one tree: its shape and the encoding of its runs. Each option is one row of
//! [`tree_options!`]. All code that reads, checks, stores or documents options uses the rows.

mod row;

use frondb_block::Codec;
use frondb_core::option_value::OptionValue;
use frondb_core::{Error, Result};
use frondb_filter::FilterKind;
use frondb_run::{FILTER_PART_KEYS, INDEX_PART_BLOCKS, RunOptions};

use crate::filter_policy::FilterPolicy;

pub use row::OptionRow;

/// Makes [`TrunkOptions`] and its rows. A row is `TAG changeable NAME: TYPE = DEFAULT, MIN..=MAX;`.
/// It has `fixed` instead of `changeable` if the option is fixed when the tree is created, and no
/// range if the type checks its values itself.
///
/// Files store options by tag, so a tag never changes and is never used again; 13 is the update
/// function of a tree, so the next one is 14. Options with tags above
/// [`TrunkOptions::LAST_UNNAMED_TAG`] are stored with their names, so that a build that lacks the
/// option can name it. A tree keeps the values with which it was created: a new default applies to
/// new trees.
macro_rules! tree_options {
    ($($(#[doc = $doc:literal])*
       $tag:literal $change:ident $name:ident: $type:ty = $default:expr
       $(, $min:literal..=$max:expr)?;)*) => {
        /// Shape and encoding of one tree.
        #[derive(Clone, Copy, PartialEq, Debug)]
        pub struct TrunkOptions {
            $($(#[doc = $doc])*
            ///
            #[doc = concat!("Default `", stringify!($default), "`"
                $(, ", range `", stringify!($min..=$max), "`")?, ".")]
            pub $name: $type,)*
        }

        impl Default for TrunkOptions {
            fn default() -> Self {
                Self { $($name: $default,)* }
            }
        }

        impl TrunkOptions {
            /// One row for each option.
            #[doc(hidden)]
            pub const ROWS: &'static [OptionRow<Self>] = &[$(OptionRow {
                tag: $tag,
                name: stringify!($name),
                is_fixed: is_fixed!($change),
                text: |options| options.$name.to_string(),
                set: |options, text| {
                    options.$name = OptionValue::read(text).map_err(|e| {
                        Error::invalid(format!("{}: {}", stringify!($name), e.message()))
                    })?;
                    Ok(())
                },
                reset: |options| options.$name = $default,
                check: |options| {
                    let limits: &[(u64, u64)] = &[$(($min, $max))?];
                    OptionValue::check(&options.$name, stringify!($name), limits.first())
                },
            }),*];
        }
    };
}

macro_rules! is_fixed {
    (fixed) => {
        true
    };
    (changeable) => {
        false
    };
}

tree_options! {
    /// Codec of base blocks. If it is slow (`Codec::is_slow`), bases have [`Codec::QUICK`] until
    /// background work has time to pack them.
    1 changeable base_codec: Codec = Codec::Zstd(1);
    /// Codec of run blocks.
    2 changeable run_codec: Codec = Codec::Lz4;
    /// Key and value bytes of a base block.
    3 changeable base_block_bytes: usize = 16 << 10, 256..=4 << 20;
    /// Key and value bytes of a run block.
    4 changeable run_block_bytes: usize = 32 << 10, 256..=4 << 20;
    /// Which runs get filters.
    5 fixed filter: FilterPolicy = FilterPolicy::Full;
    /// Target number of children of an inner node below the root; a node may have up to twice as
    /// many.
    6 fixed fanout: usize = 16, 2..=1024;
    /// Smallest size that a leaf should have (its target), key and value bytes; at most
    /// `leaf_bytes_max`.
    7 changeable leaf_bytes_min: u64 = 8 << 20, 4096..=4 << 30;
    /// Largest size that a leaf should have, key and value bytes.
    8 changeable leaf_bytes_max: u64 = 256 << 20, 4096..=4 << 30;
    /// Size that the slices of a flush should at least have, key and value bytes. If they would be
    /// smaller, leaves get larger, or the tree gets a level of inner nodes.
    9 fixed slice_bytes_min: u64 = 256 << 10, 256..=64 << 20;
    /// Most writes of a message before it reaches the base; each level of inner nodes below the
    /// root adds one.
    10 fixed writes_before_base: u8 = 2, 1..=4;
    /// A leaf is rewritten when its runs above the base have grown to this percentage of the base's
    /// size.
    11 fixed growth_percent: u64 = 100, 10..=1000;
    /// A leaf is rewritten when more than this percentage of its messages is estimated to be
    /// garbage.
    12 fixed garbage_percent: u64 = 35, 5..=95;
}

impl TrunkOptions {
    /// The largest tag that files store without the option's name.
    pub const LAST_UNNAMED_TAG: u32 = 13;

    /// Whether a text asks for the default of an option.
    #[must_use]
    pub fn is_default(text: &str) -> bool {
        matches!(text, "0" | "default")
    }

    /// Sets the option `name` to the value that `text` names: a number, for a size also with a
    /// suffix, such as K or KiB; a codec, such as `zstd:3`; or for `filter` none, full, runs or
    /// `prefix:N`. 0 and `default` mean the default.
    ///
    /// # Errors
    /// `Invalid` if there is no such option, or if the text is not a value in its range. Does not
    /// test that `leaf_bytes_min` is at most `leaf_bytes_max`; [`check`](Self::check) does.
    pub fn set(&mut self, name: &str, text: &str) -> Result<()> {
        let row = Self::ROWS.iter().find(|row| row.name == name);
        let row = row.ok_or_else(|| Error::invalid(format!("a tree has no option {name:?}")))?;
        if Self::is_default(text) {
            (row.reset)(self);
            return Ok(());
        }
        (row.set)(self, text)?;
        (row.check)(self)
    }

    /// Checks that every option is in its range, and that `leaf_bytes_min` is at most
    /// `leaf_bytes_max`.
    ///
    /// # Errors
    /// `Invalid`, with the name of the option and its range.
    pub fn check(&self) -> Result<()> {
        Self::ROWS.iter().try_for_each(|row| (row.check)(self))?;
        let (min, max) = (self.leaf_bytes_min, self.leaf_bytes_max);
        if min <= max {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "leaf_bytes_min is {min}; it must be at most leaf_bytes_max, {max}"
        )))
    }
}

impl TrunkOptions {
    /// Returns the encoding of a run whose messages have been written `writes` times.
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

    /// Returns the encoding of a base for which writers may be waiting.
    #[must_use]
    pub fn quick_base(&self) -> RunOptions {
        let base = self.base();
        if !self.base_codec.is_slow() {
            return base;
        }
        // Large blocks cost readers time, and only a slow codec makes them worthwhile.
        let block_bytes = base.block_bytes.min(self.run_block_bytes);
        RunOptions { codec: Codec::QUICK, block_bytes, ..base }
    }

    /// Returns the encoding of a packed base.
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

    /// Whether a base that was packed with this codec and block size is already in its final form.
    /// `None` and 0 mean unknown, as in bases of earlier versions.
    #[must_use]
    pub fn is_packed(&self, codec: Option<Codec>, tree_block_bytes: u32) -> bool {
        let has_wanted_blocks =
            tree_block_bytes == 0 || tree_block_bytes as usize == self.base_block_bytes;
        self.base_codec.is_final_for(codec) && has_wanted_blocks
    }

    /// Whether a user chose the block size of bases: it differs from the size that the codec
    /// prefers. A dictionary that suits smaller blocks does not change a chosen size.
    #[must_use]
    pub fn are_blocks_chosen(&self) -> bool {
        self.base_codec.preferred_block_bytes() != Some(self.base_block_bytes)
    }

    /// Returns the number of first bytes of a key that the filters of runs hash; `None` for all
    /// bytes.
    #[must_use]
    pub fn filter_prefix(&self) -> Option<u16> {
        match self.filter {
            FilterPolicy::Prefix(n) => Some(n),
            _ => None,
        }
    }
}
