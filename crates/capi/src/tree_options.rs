//! Options of a tree: an object with setters.

use std::mem::MaybeUninit;

use frondb::{Codec, Error, FilterPolicy, Result, TreeOptions};

use crate::call::{call, create, free};
use crate::error::{frondb_error, frondb_kind};
use crate::handle::{self, object};
use crate::slice::Text;

/// Options with which a tree is created; they are stored with the tree. frondb_db_create_tree()
/// checks the values. May be used for several trees.
pub struct frondb_tree_options {
    _private: [u8; 0],
}

object!(frondb_tree_options, TreeOptionsObject, TreeOptions);

/// The options set so far.
pub struct TreeOptionsObject(pub(crate) TreeOptions);

/// The options of a handle; the defaults for NULL.
pub(crate) fn tree_options(options: *mut frondb_tree_options) -> Result<TreeOptions> {
    Ok(match handle::optional::<TreeOptionsObject>(options)? {
        Some(options) => options.0.clone(),
        None => TreeOptions::new(),
    })
}

fn make(
    place: Option<&mut MaybeUninit<*mut frondb_tree_options>>,
    options: impl FnOnce() -> Result<TreeOptions>,
) -> *mut frondb_error {
    create(place, || Ok(TreeOptionsObject(options()?)))
}

fn set(
    options: *mut frondb_tree_options,
    change: impl FnOnce(TreeOptions) -> Result<TreeOptions>,
) -> *mut frondb_error {
    call(|| {
        let mut options = handle::exclusive::<TreeOptionsObject>(options)?;
        options.0 = change(options.0.clone())?;
        Ok(())
    })
}

/// Options of a primary or unique index: point reads by full key, values stored with the keys.
/// Free them with frondb_tree_options_free().
///
/// Threads: any. One thread at a time may use the options; a second one gets FRONDB_BUSY.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_options_new(
    options: Option<&mut MaybeUninit<*mut frondb_tree_options>>,
) -> *mut frondb_error {
    make(options, || Ok(TreeOptions::new()))
}

/// Options of a non-unique secondary index: scanned by prefix, without point reads of full keys, so
/// its consolidated data has no filters.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_options_new_secondary(
    options: Option<&mut MaybeUninit<*mut frondb_tree_options>>,
) -> *mut frondb_error {
    make(options, || Ok(TreeOptions::secondary()))
}

/// Options for the smallest files: zstd at level 19 with a dictionary that is trained from the
/// tree's data, in blocks of 128 KiB, or smaller ones if they take hardly any more space. Rows are
/// first written with a quick codec, and packed in the background.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_options_new_aggressive(
    options: Option<&mut MaybeUninit<*mut frondb_tree_options>>,
) -> *mut frondb_error {
    make(options, || Ok(TreeOptions::aggressive()))
}

/// The options of a tree, for example to make another one like it, or to change them with
/// frondb_tree_set_options().
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_options_of(
    tree: *mut crate::tree::frondb_tree,
    options: Option<&mut MaybeUninit<*mut frondb_tree_options>>,
) -> *mut frondb_error {
    make(options, || Ok(handle::shared::<frondb::Tree>(tree)?.options()))
}

/// Frees options; NULL is ignored.
///
/// Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses them.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_options_free(options: *mut frondb_tree_options) -> frondb_kind {
    free::<TreeOptionsObject>(options)
}

/// The compression of blocks.
pub type frondb_codec = u32;
/// No compression.
pub const FRONDB_CODEC_NONE: frondb_codec = 0;
/// LZ4: the cheapest. No levels.
pub const FRONDB_CODEC_LZ4: frondb_codec = 1;
/// Zstandard, levels 1 to 19.
pub const FRONDB_CODEC_ZSTD: frondb_codec = 2;
/// zlib, levels 1 to 9.
pub const FRONDB_CODEC_ZLIB: frondb_codec = 3;
/// LZMA, presets 0 to 9: the smallest and slowest; works best with blocks of 128 KiB.
pub const FRONDB_CODEC_LZMA: frondb_codec = 4;
/// Zstandard, levels 1 to 19, with a dictionary that is trained from the tree's data; works best with
/// blocks of 128 KiB.
pub const FRONDB_CODEC_ZSTD_DICTIONARY: frondb_codec = 5;

fn codec(codec: frondb_codec, level: u32) -> Result<Codec> {
    let level = u8::try_from(level);
    let level = level.map_err(|_| Error::invalid("the level of a codec must be 0 to 19"));
    match codec {
        FRONDB_CODEC_NONE => Ok(Codec::None),
        FRONDB_CODEC_LZ4 => Ok(Codec::Lz4),
        FRONDB_CODEC_ZSTD => level.map(Codec::Zstd),
        FRONDB_CODEC_ZLIB => level.map(Codec::Zlib),
        FRONDB_CODEC_LZMA => level.map(Codec::Lzma),
        FRONDB_CODEC_ZSTD_DICTIONARY => level.map(Codec::ZstdDictionary),
        other => Err(Error::invalid(format!("unknown frondb_codec {other}"))),
    }
}

/// The codec of bases, which hold consolidated data, and its level if it has levels. Default zstd
/// level 1. FRONDB_CODEC_NONE also turns off the compression of runs that are not consolidated
/// yet; otherwise runs use lz4.
///
/// Slow codecs (zstd from level 10, zstd with a dictionary, LZMA) do not delay writers: bases are
/// first packed with zstd level 1, and packed again in the background. The statistic packed_bytes
/// is the data that is already packed again; frondb_tree_optimize() packs the rest.
///
/// Threads: one at a time.
///
/// Errors: FRONDB_INVALID for a codec that does not exist; frondb_db_create_tree() checks the
/// level.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_options_set_codec(
    options: *mut frondb_tree_options,
    of: frondb_codec,
    level: u32,
) -> *mut frondb_error {
    set(options, |options| Ok(options.codec(codec(of, level)?)))
}

/// Sets the codec of bases by name: "none", "lz4", "zstd:LEVEL", "zstd-dictionary:LEVEL",
/// "zlib:LEVEL", "lzma:LEVEL" or "aggressive", which is "zstd-dictionary:19". `block_bytes` gets
/// the block size that suits the codec, for frondb_tree_options_set_block_bytes(), or 0 if any
/// does; it may be NULL.
///
/// Threads: one at a time.
///
/// Errors: FRONDB_INVALID for a codec or a level that does not exist.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_options_set_codec_name(
    options: *mut frondb_tree_options,
    name: Text,
    block_bytes: Option<&mut MaybeUninit<u32>>,
) -> *mut frondb_error {
    set(options, |options| {
        let codec: Codec = name.str("name of the codec")?.parse()?;
        if let Some(block_bytes) = block_bytes {
            block_bytes.write(codec.preferred_block_bytes().unwrap_or_default() as u32);
        }
        Ok(options.codec(codec))
    })
}

/// The codec of runs that are not consolidated yet. Default lz4. frondb_tree_options_set_codec()
/// sets it too, so call this function after that one.
///
/// Threads: one at a time.
///
/// Errors: FRONDB_INVALID for a codec that does not exist.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_options_set_run_codec(
    options: *mut frondb_tree_options,
    of: frondb_codec,
    level: u32,
) -> *mut frondb_error {
    set(options, |options| {
        let codec = codec(of, level)?;
        Ok(options.shape(|shape| shape.run_codec = codec))
    })
}

/// Key and value bytes in a block of consolidated data, 256 bytes to 4 MiB. Default 16 KiB. The
/// size that suits a codec with a dictionary, 128 KiB, is an upper limit: blocks are smaller if
/// that takes hardly any more space. With any other size, all blocks have that size.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_options_set_block_bytes(
    options: *mut frondb_tree_options,
    bytes: u32,
) -> *mut frondb_error {
    set(options, |options| Ok(options.block_bytes(bytes as usize)))
}

/// Target number of children of an inner node below the root, 2 to 1,024; a node may have up to
/// twice as many. Default 16.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_options_set_fanout(
    options: *mut frondb_tree_options,
    fanout: u32,
) -> *mut frondb_error {
    set(options, |options| Ok(options.fanout(fanout as usize)))
}

/// The filters of a tree.
pub type frondb_filter = u32;
/// No filters.
pub const FRONDB_FILTER_NONE: frondb_filter = 0;
/// Filters of whole keys on all data, for trees with point reads by full key. The default.
pub const FRONDB_FILTER_FULL: frondb_filter = 1;
/// Filters of whole keys, but not on consolidated data.
pub const FRONDB_FILTER_RUNS: frondb_filter = 2;
/// Filters of the first bytes of keys, but not on consolidated data, for indexes that are scanned by
/// prefix: a cursor or a count whose bounds have these bytes in common skips runs without them.
pub const FRONDB_FILTER_PREFIX: frondb_filter = 3;

/// The tree's filters; `prefix_bytes` is used for FRONDB_FILTER_PREFIX only. Default
/// FRONDB_FILTER_FULL.
///
/// Threads: one at a time.
///
/// Errors: FRONDB_INVALID for a filter that does not exist.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_options_set_filter(
    options: *mut frondb_tree_options,
    filter: frondb_filter,
    prefix_bytes: u16,
) -> *mut frondb_error {
    set(options, |options| {
        let policy = match filter {
            FRONDB_FILTER_NONE => FilterPolicy::None,
            FRONDB_FILTER_FULL => FilterPolicy::Full,
            FRONDB_FILTER_RUNS => FilterPolicy::Runs,
            FRONDB_FILTER_PREFIX => FilterPolicy::Prefix(prefix_bytes),
            other => return Err(Error::invalid(format!("unknown frondb_filter {other}"))),
        };
        Ok(options.filter(policy))
    })
}

/// The tree's update function, by the name and version registered with
/// frondb_options_add_update_fn().
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_options_set_update_fn(
    options: *mut frondb_tree_options,
    name: Text,
    version: u32,
) -> *mut frondb_error {
    set(options, |options| Ok(options.update_fn(name.str("name of the update function")?, version)))
}

/// Sets a number of the tree's shape, for experts and tests. `name` is a field of "A tree's shape"
/// in docs/operating/options.md, for example "leaf_bytes_max".
///
/// Threads: one at a time.
///
/// Errors: FRONDB_INVALID for an unknown name or a number that is too large;
/// frondb_db_create_tree() checks the range.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_options_set_shape(
    options: *mut frondb_tree_options,
    name: Text,
    value: u64,
) -> *mut frondb_error {
    set(options, |options| {
        let name = name.str("name of the option")?;
        let mut found = Ok(());
        let options = options.shape(|shape| found = set_shape(shape, name, value));
        found.map(|()| options)
    })
}

fn set_shape(shape: &mut frondb::TrunkOptions, name: &str, value: u64) -> Result<()> {
    let too_large = |_| Error::invalid(format!("{name} is {value}, which is too large"));
    let size = || usize::try_from(value).map_err(too_large);
    match name {
        "base_block_bytes" => shape.base_block_bytes = size()?,
        "run_block_bytes" => shape.run_block_bytes = size()?,
        "fanout" => shape.fanout = size()?,
        "leaf_bytes_min" => shape.leaf_bytes_min = value,
        "leaf_bytes_max" => shape.leaf_bytes_max = value,
        "slice_bytes_min" => shape.slice_bytes_min = value,
        "writes_before_base" => {
            shape.writes_before_base = u8::try_from(value).map_err(too_large)?;
        }
        "growth_percent" => shape.growth_percent = value,
        "garbage_percent" => shape.garbage_percent = value,
        _ => return Err(Error::invalid(format!("a tree has no shape option {name:?}"))),
    }
    Ok(())
}
