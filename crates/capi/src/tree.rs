//! Trees: reading and writing single keys, estimates and figures.

use std::mem::MaybeUninit;

use frondb::{Error, Snapshot, Tree};

use crate::buffer::{fill, fill_many, frondb_buffer, to_fill};
use crate::call::{call, free};
use crate::error::{frondb_error, frondb_kind};
use crate::figures::{self, frondb_figures};
use crate::handle::{self, object};
use crate::list::{self, frondb_list};
use crate::slice::{
    OutBytes, OutSlices, Slices, cleared, frondb_slice, optional_bytes, out, out_flag,
};
use crate::snapshot::frondb_snapshot;

/// A tree: keys in byte order, each with a value. Stays good when the tree is renamed.
pub struct frondb_tree {
    _private: [u8; 0],
}

object!(frondb_tree, Tree, Tree);

/// Frees the handle of a tree; the tree stays. NULL is ignored.
///
/// Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses the handle.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_free(tree: *mut frondb_tree) -> frondb_kind {
    free::<Tree>(tree)
}

/// The tree's name, put into a buffer.
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

/// The tree's number: never used for another tree; frondb_lock_info names trees by it.
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

/// Puts the value of a key into a buffer; `found` says whether it has one. `snapshot` may be NULL
/// for the newest.
///
/// Threads: any for the tree, one at a time for the buffer.
///
/// Errors: FRONDB_CORRUPTION; FRONDB_IO; FRONDB_CLOSED; FRONDB_NOT_FOUND if the tree was dropped;
/// FRONDB_INVALID for a snapshot of another database.
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

/// Copies the value of a key to `value`, as much of it as `capacity` has room for; `value_len` is its
/// full length. Else as frondb_tree_get().
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

/// Reads several keys as of one moment, or at a snapshot. The values are put into the buffer, and
/// `values`, an array of `count`, says where: data is NULL for a key that has none. They are good
/// until the buffer is filled again or freed.
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

/// Whether a key has a value. A large one is not read.
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

/// Sets one key, durably unless the database's handle says otherwise
/// (frondb_db_with_commit_sync()). Many are better put in a batch.
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

/// Removes one key, whether it exists or not; as durable as frondb_tree_put().
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

/// Applies the update function to one key without reading it; as durable as frondb_tree_put().
///
/// Threads: any.
///
/// Errors: FRONDB_INVALID if the tree has no update function, or the database was opened without it;
/// else as frondb_db_write().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_update(
    tree: *mut frondb_tree,
    key: frondb_slice,
    operand: frondb_slice,
) -> *mut frondb_error {
    call(|| handle::shared::<Tree>(tree)?.update(key.bytes()?, operand.bytes()?))
}

/// Removes all keys from `lo` on that are below `hi`, all to the end if `hi` is NULL; as durable
/// as frondb_tree_put().
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

/// What a key range is estimated to hold.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct frondb_estimate {
    /// Keys that have a value.
    entries: u64,
    /// Bytes on disk, and what is still in memory will take there.
    disk_bytes: u64,
}

/// About how much the keys from `lo` on that are below `hi` hold (`hi` NULL: to the end). Costs a few
/// searches; usually within a factor of two.
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

/// Entries at the beginning of a key range.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct frondb_first_entries {
    /// How many there are among the keys that were looked at, or what `is_estimate` says.
    count: u64,
    /// Whether those are all keys of the range.
    is_all: bool,
    /// Whether `count` is about how many entries the range has: there are many messages, and only
    /// the first keys were looked at.
    is_estimate: bool,
}

/// Counts the entries among the first `max_keys` keys from `lo` on that are below `hi` (`hi` NULL: to
/// the end). Deleted keys whose deletes still lie in the tree count as keys. Costs as much as a scan of
/// these keys that does not look at their values. Where the range has many messages in memory, its
/// entries are estimated by the first keys, an eighth of `max_keys` or more, but never by fewer than
/// eight. If it is known without a look that there are several times as many keys, 0 is counted and
/// nothing read.
///
/// Threads: any.
///
/// Errors: as frondb_tree_get().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_count_first(
    tree: *mut frondb_tree,
    lo: frondb_slice,
    hi: Option<&frondb_slice>,
    max_keys: u64,
    first: Option<&mut MaybeUninit<frondb_first_entries>>,
) -> *mut frondb_error {
    call(|| {
        let (place, tree) = (out(first)?, handle::shared::<Tree>(tree)?);
        let found = tree.count_first(lo.bytes()?, optional_bytes(hi)?, max_keys)?;
        let (count, is_all, is_estimate) = (found.count, found.is_all, found.is_estimate);
        place.write(frondb_first_entries { count, is_all, is_estimate });
        Ok(())
    })
}

/// How many messages a key range has.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct frondb_message_counts {
    /// Puts, deletes and updates, those too that newer ones make obsolete.
    all: u64,
    /// Those of them that are consolidated: each is the only one of its key that is.
    base: u64,
}

/// About how many messages the keys from `lo` on that are below `hi` have (`hi` NULL: to the end). By
/// counts alone: cheaper than frondb_tree_estimate(), and reads no data. Within a block keys count
/// as even.
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

/// Keys that cut the tree into parts that hold about as many entries each: up to `parts` - 1 of them,
/// ascending, fewer where there are few keys; at most 1,024 parts are made. For a sample that stands for all of
/// the tree, or work in parts. Costs a few searches a part and reads no data.
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

/// Figures of a tree; docs/operating/status.md has their names.
///
/// Threads: any.
///
/// Errors: FRONDB_NOT_FOUND if the tree was dropped; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_stats(
    tree: *mut frondb_tree,
    stats: Option<&mut MaybeUninit<*mut frondb_figures>>,
) -> *mut frondb_error {
    call(|| {
        let stats = cleared(stats);
        let found = handle::shared::<Tree>(tree)?.stats()?;
        figures::give(stats, found.figures(), Some(found.to_string()))
    })
}

/// Puts the smallest key above all that begin with `prefix` into a buffer: the `hi` of a range of
/// them. `found` is false if there is no such key: then the range goes to the end, `hi` is NULL.
///
/// Threads: one at a time for the buffer.
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
            return Err(Error::invalid(format!("a prefix of {} bytes", prefix.len())));
        }
        place.write(fill(to_fill(buffer)?, frondb::tuple::prefix_end(prefix)));
        Ok(())
    })
}
