//! Batches: writes that are committed atomically.

use std::mem::MaybeUninit;

use frondb::{Batch, Error, Result, Tree};

use crate::call::{call, create, free, number};
use crate::error::{frondb_error, frondb_kind};
use crate::handle::{self, object};
use crate::slice::{frondb_slice, optional_bytes, out};
use crate::tree::frondb_tree;

/// A list of writes to any number of trees of one database, which frondb_db_write() commits
/// atomically. Within a tree the writes take effect in the order in which they were added: the last
/// put or delete of a key wins, and updates after it apply to its result. A batch may be committed
/// several times, and cleared and reused.
pub struct frondb_batch {
    _private: [u8; 0],
}

object!(frondb_batch, Batch, Batch);

/// What a commit waits for.
pub type frondb_durability = u32;
/// When the call returns, the commit survives power loss, unless the sync mode (frondb_sync_mode)
/// is weaker than FRONDB_SYNC_ALWAYS.
pub const FRONDB_SYNC: frondb_durability = 0;
/// When the call returns, the operating system has the commit: it survives the end of the process,
/// but not power loss.
pub const FRONDB_NO_SYNC: frondb_durability = 1;

pub(crate) fn durability(durability: frondb_durability) -> Result<frondb::Durability> {
    match durability {
        FRONDB_SYNC => Ok(frondb::Durability::Sync),
        FRONDB_NO_SYNC => Ok(frondb::Durability::NoSync),
        other => Err(Error::invalid(format!("unknown frondb_durability {other}"))),
    }
}

/// Makes an empty batch. Free it with frondb_batch_free().
///
/// Threads: any. One thread at a time may use the batch; a second one gets FRONDB_BUSY.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_batch_new(
    batch: Option<&mut MaybeUninit<*mut frondb_batch>>,
) -> *mut frondb_error {
    create(batch, || Ok(Batch::new()))
}

/// Frees a batch; NULL is ignored.
///
/// Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses it.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_batch_free(batch: *mut frondb_batch) -> frondb_kind {
    free::<Batch>(batch)
}

/// Sets the value of a key. Keys have 0 to 32 KiB, values 0 to 64 MiB; frondb_db_write() rejects
/// longer ones.
///
/// Threads: one at a time for the batch, any for the tree.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_batch_put(
    batch: *mut frondb_batch,
    tree: *mut frondb_tree,
    key: frondb_slice,
    value: frondb_slice,
) -> *mut frondb_error {
    call(|| {
        let (mut batch, tree) = (handle::exclusive::<Batch>(batch)?, handle::shared::<Tree>(tree)?);
        batch.put(&*tree, key.bytes()?, value.bytes()?);
        Ok(())
    })
}

/// Removes a key; it need not exist.
///
/// Threads: one at a time for the batch, any for the tree.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_batch_delete(
    batch: *mut frondb_batch,
    tree: *mut frondb_tree,
    key: frondb_slice,
) -> *mut frondb_error {
    call(|| {
        let (mut batch, tree) = (handle::exclusive::<Batch>(batch)?, handle::shared::<Tree>(tree)?);
        batch.delete(&*tree, key.bytes()?);
        Ok(())
    })
}

/// Removes all keys from `lo` (inclusive) to `hi` (exclusive; NULL: to the end of the tree).
///
/// Threads: one at a time for the batch, any for the tree.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_batch_delete_range(
    batch: *mut frondb_batch,
    tree: *mut frondb_tree,
    lo: frondb_slice,
    hi: Option<&frondb_slice>,
) -> *mut frondb_error {
    call(|| {
        let (mut batch, tree) = (handle::exclusive::<Batch>(batch)?, handle::shared::<Tree>(tree)?);
        batch.delete_range(&*tree, lo.bytes()?, optional_bytes(hi)?);
        Ok(())
    })
}

/// Adds an update of `key` with `operand` and reads nothing. Readers and merges apply the tree's
/// update function later. Operands have at most 64 KiB.
///
/// Threads: one at a time for the batch, any for the tree.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_batch_update(
    batch: *mut frondb_batch,
    tree: *mut frondb_tree,
    key: frondb_slice,
    operand: frondb_slice,
) -> *mut frondb_error {
    call(|| {
        let (mut batch, tree) = (handle::exclusive::<Batch>(batch)?, handle::shared::<Tree>(tree)?);
        batch.update(&*tree, key.bytes()?, operand.bytes()?);
        Ok(())
    })
}

/// Marks the batch as a step of an operation that frees space, for example removing the names of
/// trees before they are dropped. The database then accepts the batch on a full disk, as it accepts
/// batches of deletes. Only for small batches: the disk space reserved for this case is small.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_batch_set_frees_space(batch: *mut frondb_batch) -> *mut frondb_error {
    call(|| {
        handle::exclusive::<Batch>(batch)?.set_frees_space();
        Ok(())
    })
}

/// Exempts the batch from write stalls, which delay commits while background work is behind. For
/// small and rare writes for which other threads wait, such as a counter.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_batch_exempt_from_pacing(batch: *mut frondb_batch) -> *mut frondb_error {
    call(|| {
        handle::exclusive::<Batch>(batch)?.exempt_from_pacing();
        Ok(())
    })
}

/// Removes all writes, undoes frondb_batch_set_frees_space() and frondb_batch_exempt_from_pacing(),
/// and keeps the allocated memory.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_batch_clear(batch: *mut frondb_batch) -> *mut frondb_error {
    call(|| {
        handle::exclusive::<Batch>(batch)?.clear();
        Ok(())
    })
}

/// The size of a batch.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct frondb_batch_size {
    /// The number of writes.
    writes: u64,
    /// About the number of bytes of the batch in the log.
    log_bytes: u64,
    /// About the number of bytes of memory that the batch takes after its commit.
    /// frondb_db_batch_bytes_max() returns the limit.
    memory_bytes: u64,
}

/// Returns the present size of a batch.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_batch_measure(
    batch: *mut frondb_batch,
    size: Option<&mut MaybeUninit<frondb_batch_size>>,
) -> *mut frondb_error {
    call(|| {
        let (batch, place) = (handle::shared::<Batch>(batch)?, out(size)?);
        place.write(frondb_batch_size {
            writes: number(batch.len()),
            log_bytes: number(batch.bytes()),
            memory_bytes: number(batch.memory_bytes()),
        });
        Ok(())
    })
}
