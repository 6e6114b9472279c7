//! Trees: reads and writes of single keys, estimates and statistics.

use std::mem::MaybeUninit;

use frondb::{Error, FirstEntries, Snapshot, Tree};

use crate::buffer::{fill, fill_many, frondb_buffer, to_fill};
use crate::call::{call, free};
use crate::error::{frondb_error, frondb_kind};
use crate::handle::{self, object};
use crate::list::{self, frondb_list};
use crate::slice::{
    OutBytes, OutSlices, Slices, cleared, frondb_slice, optional_bytes, out, out_flag,
};
use crate::snapshot::frondb_snapshot;
use crate::stats::{self, frondb_stats};
use crate::tree_options::{TreeOptionsObject, frondb_tree_options, make_tree_options};

/// A tree: keys in byte order, each with a value. The handle stays valid when the tree is renamed.
pub struct frondb_tree {
    _private: [u8; 0],
}

object!(frondb_tree, Tree, Tree);

/// Frees the handle of a tree, not the tree; NULL is ignored.
///
/// Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses the handle.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_free(tree: *mut frondb_tree) -> frondb_kind {
    free::<Tree>(tree)
}

/// Puts the tree's name into a buffer.
///
/// Threads: any for the tree, one at a time for the buffer.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_name(
    tree: *mut frondb_tree,
    buffer: *mut frondb_buffer,
) -> *mut frondb_error {
    call(|| {
        let (tree, buffer) = (handle::shared::<Tree>(tree)?, to_fill(buffer)?);
        fill(buffer, Some(tree.name().into_bytes()));
        Ok(())
    })
}

/// Returns the tree's number, which is never used for another tree. frondb_lock_info identifies
/// trees by this number.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_id(
    tree: *mut frondb_tree,
    id: Option<&mut MaybeUninit<u64>>,
) -> *mut frondb_error {
    call(|| {
        let place = out(id)?;
        place.write(u64::from(handle::shared::<Tree>(tree)?.id().get()));
        Ok(())
    })
}

/// Returns the options of a tree, for example to make another tree with the same options, or to
/// change them with frondb_tree_set_options().
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_options_of(
    tree: *mut frondb_tree,
    options: Option<&mut MaybeUninit<*mut frondb_tree_options>>,
) -> *mut frondb_error {
    make_tree_options(options, || Ok(handle::shared::<Tree>(tree)?.options()))
}

/// Changes the options of a tree that are not fixed, such as the codec and the sizes of blocks and
/// leaves, durably, while other threads read and write. Get the options with
/// frondb_tree_options_of(), change them, and pass them to this function. Data that is written from
/// now on uses the new options. Background work rewrites existing data when there is nothing more
/// urgent to do. frondb_tree_optimize() rewrites all existing data and returns when that is done.
///
/// Threads: any.
///
/// Errors: FRONDB_INVALID if `options` differ in an option that is fixed (the error names those
/// that are not), if an option is out of its range, or if the database was opened read-only;
/// FRONDB_NOT_FOUND if the tree was dropped; FRONDB_NO_SPACE, FRONDB_POISONED, FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_set_options(
    tree: *mut frondb_tree,
    options: *mut frondb_tree_options,
) -> *mut frondb_error {
    call(|| {
        let tree = handle::shared::<Tree>(tree)?;
        let options = handle::shared::<TreeOptionsObject>(options)?;
        tree.set_options(options.0.clone())
    })
}

/// Puts the value of a key into a buffer; `found` is set to whether the key has a value. Without a
/// `snapshot` (NULL) the call reads the newest value.
///
/// Threads: any for the tree, one at a time for the buffer.
///
/// Errors: FRONDB_CORRUPTION; FRONDB_IO; FRONDB_CLOSED; FRONDB_NOT_FOUND if the tree was dropped;
/// FRONDB_INVALID for a snapshot of another database, or if an update of the key cannot be applied
/// (frondb_update_fn).
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_get(
    tree: *mut frondb_tree,
    key: frondb_slice,
    snapshot: *mut frondb_snapshot,
    buffer: *mut frondb_buffer,
    found: Option<&mut MaybeUninit<bool>>,
) -> *mut frondb_error {
    call(|| {
        let (place, buffer) = (out_flag(found)?, to_fill(buffer)?);
        place.write(fill(buffer, get(tree, key, snapshot)?));
        Ok(())
    })
}

/// Copies as much of a key's value to `value` as fits into `capacity` bytes; `value_len` is set to
/// the full length. Otherwise as frondb_tree_get().
///
/// Threads: any.
///
/// Errors: as frondb_tree_get().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_get_into(
    tree: *mut frondb_tree,
    key: frondb_slice,
    snapshot: *mut frondb_snapshot,
    mut value: OutBytes,
    capacity: usize,
    value_len: Option<&mut MaybeUninit<usize>>,
    found: Option<&mut MaybeUninit<bool>>,
) -> *mut frondb_error {
    call(|| {
        let (place, len_place) = (out_flag(found)?, out(value_len)?);
        value.check(capacity)?;
        let got = get(tree, key, snapshot)?;
        let bytes = got.as_deref().unwrap_or_default();
        value.write(capacity, bytes)?;
        len_place.write(bytes.len());
        place.write(got.is_some());
        Ok(())
    })
}

fn get(
    tree: *mut frondb_tree,
    key: frondb_slice,
    snapshot: *mut frondb_snapshot,
) -> frondb::Result<Option<Vec<u8>>> {
    let tree = handle::shared::<Tree>(tree)?;
    match handle::optional::<Snapshot>(snapshot)? {
        Some(at) => tree.get_at(key.bytes()?, &at),
        None => tree.get(key.bytes()?),
    }
}

/// Reads several keys, all at the same moment or at a snapshot. Blocks that are not in memory are
/// read concurrently, so one call takes less time than a call for each key. The values are stored
/// in the buffer, and the array `values` of `count` slices points to them; `data` is NULL for a key
/// without a value. The slices are valid until the buffer is filled again or freed.
///
/// Threads: any for the tree, one at a time for the buffer.
///
/// Errors: as frondb_tree_get().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_multi_get(
    tree: *mut frondb_tree,
    keys: Slices,
    count: usize,
    snapshot: *mut frondb_snapshot,
    buffer: *mut frondb_buffer,
    values: OutSlices,
) -> *mut frondb_error {
    call(|| {
        values.check(count)?;
        let (tree, keys) = (handle::shared::<Tree>(tree)?, keys.bytes(count)?);
        let buffer = to_fill(buffer)?;
        let found = match handle::optional::<Snapshot>(snapshot)? {
            Some(at) => tree.multi_get_at(&keys, &at)?,
            None => tree.multi_get(&keys)?,
        };
        fill_many(buffer, found, values)
    })
}

/// Sets `found` to whether a key has a value. Large values are not read.
///
/// Threads: any.
///
/// Errors: as frondb_tree_get().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_exists(
    tree: *mut frondb_tree,
    key: frondb_slice,
    snapshot: *mut frondb_snapshot,
    found: Option<&mut MaybeUninit<bool>>,
) -> *mut frondb_error {
    call(|| {
        let (place, tree) = (out_flag(found)?, handle::shared::<Tree>(tree)?);
        let found = match handle::optional::<Snapshot>(snapshot)? {
            Some(at) => tree.exists_at(key.bytes()?, &at)?,
            None => tree.exists(key.bytes()?)?,
        };
        place.write(found);
        Ok(())
    })
}

/// Sets the value of one key with the durability of the database handle
/// (frondb_db_with_commit_sync()). For many writes a batch is cheaper.
///
/// Threads: any.
///
/// Errors: as frondb_db_write().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_put(
    tree: *mut frondb_tree,
    key: frondb_slice,
    value: frondb_slice,
) -> *mut frondb_error {
    call(|| handle::shared::<Tree>(tree)?.put(key.bytes()?, value.bytes()?))
}

/// Sets the value of one key and puts its former value into a buffer, with the durability of the
/// database handle; `found` is set to whether the key had a value. No other write of the key
/// happens between the read and the write.
///
/// Threads: any for the tree, one at a time for the buffer.
///
/// Errors: as frondb_db_write() and frondb_tree_get().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_replace(
    tree: *mut frondb_tree,
    key: frondb_slice,
    value: frondb_slice,
    buffer: *mut frondb_buffer,
    found: Option<&mut MaybeUninit<bool>>,
) -> *mut frondb_error {
    call(|| {
        let (place, buffer) = (out_flag(found)?, to_fill(buffer)?);
        let old = handle::shared::<Tree>(tree)?.replace(key.bytes()?, value.bytes()?)?;
        place.write(fill(buffer, old));
        Ok(())
    })
}

/// Removes one key and puts its former value into a buffer, as frondb_tree_replace().
///
/// Threads: any for the tree, one at a time for the buffer.
///
/// Errors: as frondb_tree_replace().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_take(
    tree: *mut frondb_tree,
    key: frondb_slice,
    buffer: *mut frondb_buffer,
    found: Option<&mut MaybeUninit<bool>>,
) -> *mut frondb_error {
    call(|| {
        let (place, buffer) = (out_flag(found)?, to_fill(buffer)?);
        place.write(fill(buffer, handle::shared::<Tree>(tree)?.take(key.bytes()?)?));
        Ok(())
    })
}

/// Removes one key, which need not exist, with the durability of the database handle.
///
/// Threads: any.
///
/// Errors: as frondb_db_write().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_delete(
    tree: *mut frondb_tree,
    key: frondb_slice,
) -> *mut frondb_error {
    call(|| handle::shared::<Tree>(tree)?.delete(key.bytes()?))
}

/// Writes an update of `key` with `operand` and reads nothing, with the durability of the database
/// handle. Readers and merges apply the tree's update function later.
///
/// Threads: any.
///
/// Errors: FRONDB_INVALID if the tree has no update function or the function is not registered;
/// otherwise as frondb_db_write().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_update(
    tree: *mut frondb_tree,
    key: frondb_slice,
    operand: frondb_slice,
) -> *mut frondb_error {
    call(|| handle::shared::<Tree>(tree)?.update(key.bytes()?, operand.bytes()?))
}

/// Removes all keys from `lo` (inclusive) to `hi` (exclusive; NULL: to the end), with the
/// durability of the database handle.
///
/// Threads: any.
///
/// Errors: as frondb_db_write().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_delete_range(
    tree: *mut frondb_tree,
    lo: frondb_slice,
    hi: Option<&frondb_slice>,
) -> *mut frondb_error {
    call(|| handle::shared::<Tree>(tree)?.delete_range(lo.bytes()?, optional_bytes(hi)?))
}

/// The estimated contents of a key range.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct frondb_estimate {
    /// Keys that have a value.
    entries: u64,
    /// Bytes on disk, including the bytes that the messages in memory will take after their flush.
    disk_bytes: u64,
}

/// Estimates the number of entries and the disk space of the keys from `lo` (inclusive) to `hi`
/// (exclusive; NULL: to the end). In a tree that is fully merged the call costs a few searches and
/// reads no data. Otherwise it reads a few blocks at each of up to 42 places of the range, more in
/// a longer range. The result is usually within a factor of two.
///
/// Threads: any.
///
/// Errors: as frondb_tree_get().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_estimate(
    tree: *mut frondb_tree,
    lo: frondb_slice,
    hi: Option<&frondb_slice>,
    estimate: Option<&mut MaybeUninit<frondb_estimate>>,
) -> *mut frondb_error {
    call(|| {
        let (place, tree) = (out(estimate)?, handle::shared::<Tree>(tree)?);
        let found = tree.estimate(lo.bytes()?, optional_bytes(hi)?)?;
        place.write(frondb_estimate { entries: found.entries, disk_bytes: found.disk_bytes });
        Ok(())
    })
}

/// The entries at the beginning of a key range: the result of frondb_tree_estimate_first().
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct frondb_first_entries {
    /// If `is_estimate` is false, the entries among the keys that were counted; otherwise an
    /// estimate for the whole range.
    count: u64,
    /// Whether the range has no keys besides the counted ones.
    is_all: bool,
    /// Whether `count` estimates the whole range.
    is_estimate: bool,
}

impl From<FirstEntries> for frondb_first_entries {
    fn from(found: FirstEntries) -> Self {
        let (count, is_all, is_estimate) = (found.count, found.is_all, found.is_estimate);
        Self { count, is_all, is_estimate }
    }
}

/// Counts or estimates the entries among the first `max_keys` keys from `lo` (inclusive) to `hi`
/// (exclusive; NULL: to the end), for an optimizer that asks before each short query. Deleted keys
/// whose tombstones are still in the tree count as keys. The call costs at most as much as a scan
/// of these keys without values.
///
/// If `max_keys` is at least 8, at least half of the messages of the range are consolidated, and
/// few are deletes, the estimate is the number of consolidated entries: at least half and at most
/// 4/3 of the true number. This estimate costs a fraction of counting. If memtables have many
/// messages in the range, the estimate may be extrapolated from about an eighth of `max_keys` keys,
/// but never from fewer than eight keys. If block indexes show that the range has several times
/// `max_keys` keys, the call counts none (`count` is 0, both flags are false), and reads at most
/// the blocks at the ends of the range.
///
/// Threads: any.
///
/// Errors: as frondb_tree_get().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_estimate_first(
    tree: *mut frondb_tree,
    lo: frondb_slice,
    hi: Option<&frondb_slice>,
    max_keys: u64,
    first: Option<&mut MaybeUninit<frondb_first_entries>>,
) -> *mut frondb_error {
    call(|| {
        let (place, tree) = (out(first)?, handle::shared::<Tree>(tree)?);
        let found = tree.estimate_first(lo.bytes()?, optional_bytes(hi)?, max_keys)?;
        place.write(found.into());
        Ok(())
    })
}

/// The numbers of messages of a key range: the result of frondb_tree_messages().
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct frondb_message_counts {
    /// Puts, deletes and updates, including obsolete ones.
    all: u64,
    /// Consolidated messages among `all`; a key has at most one.
    base: u64,
}

/// Estimates how many messages the keys from `lo` (inclusive) to `hi` (exclusive; NULL: to the end)
/// have. The call adds up counts and assumes that keys are evenly spread within a block. It reads
/// no data, so it is cheaper than frondb_tree_estimate().
///
/// Threads: any.
///
/// Errors: as frondb_tree_get().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_messages(
    tree: *mut frondb_tree,
    lo: frondb_slice,
    hi: Option<&frondb_slice>,
    counts: Option<&mut MaybeUninit<frondb_message_counts>>,
) -> *mut frondb_error {
    call(|| {
        let (place, tree) = (out(counts)?, handle::shared::<Tree>(tree)?);
        let found = tree.messages(lo.bytes()?, optional_bytes(hi)?)?;
        place.write(frondb_message_counts { all: found.all, base: found.base });
        Ok(())
    })
}

/// Returns up to `parts` - 1 ascending keys that split the tree into parts with about equally many
/// messages, for sampling or for parallel work. Returns fewer keys if `parts` is above 1,024, or if
/// the tree has few keys. The call costs a few searches for each part and reads no data.
///
/// Threads: any.
///
/// Errors: as frondb_tree_get().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_split_keys(
    tree: *mut frondb_tree,
    parts: usize,
    keys: Option<&mut MaybeUninit<*mut frondb_list>>,
) -> *mut frondb_error {
    call(|| {
        let keys = cleared(keys);
        list::give(keys, handle::shared::<Tree>(tree)?.split_keys(parts)?)
    })
}

/// Returns statistics of a tree; docs/operating/status.md lists their names.
///
/// Threads: any.
///
/// Errors: FRONDB_NOT_FOUND if the tree was dropped; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_stats(
    tree: *mut frondb_tree,
    stats: Option<&mut MaybeUninit<*mut frondb_stats>>,
) -> *mut frondb_error {
    call(|| {
        let stats = cleared(stats);
        let found = handle::shared::<Tree>(tree)?.stats()?;
        stats::give(stats, found.named_values(), Some(found.to_string()))
    })
}

/// Puts the smallest key above all keys that begin with `prefix` into a buffer. This key is the
/// `hi` of the range of keys that begin with `prefix`. `found` is set to false if there is no such
/// key: the range then extends to the end, and its `hi` is NULL.
///
/// Threads: one at a time for the buffer.
///
/// Errors: FRONDB_INVALID for a prefix of more than 32 KiB.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_prefix_end(
    prefix: frondb_slice,
    buffer: *mut frondb_buffer,
    found: Option<&mut MaybeUninit<bool>>,
) -> *mut frondb_error {
    call(|| {
        let place = out_flag(found)?;
        let prefix = prefix.bytes()?;
        if prefix.len() > frondb::limits::KEY_BYTES_MAX {
            return Err(Error::invalid(format!("a prefix of {} bytes is too long", prefix.len())));
        }
        place.write(fill(to_fill(buffer)?, frondb::tuple::prefix_end(prefix)));
        Ok(())
    })
}
