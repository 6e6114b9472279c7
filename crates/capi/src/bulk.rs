//! Bulk loads: entries in any order, sorted outside of the trees and ingested with one commit.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

use frondb::{BulkLoad, BulkOptions, BulkWriter, Db, Duplicates, Tree};
use frondb_core::sync::Mutex;

use crate::batch::{durability, frondb_durability};
use crate::buffer::{fill, frondb_buffer, to_fill};
use crate::call::{call, create, free};
use crate::db::frondb_db;
use crate::error::{frondb_error, frondb_kind};
use crate::handle::{self, object};
use crate::slice::{Text, cleared, frondb_slice, out, out_flag};
use crate::stats::{frondb_stats, give_bulk_report};
use crate::tree::frondb_tree;
use crate::tree_options::{frondb_tree_options, new_tree_options};
use crate::verify::frondb_progress;

/// A bulk load, which puts much data into new or existing trees with less work than batches.
/// Entries may be added in any order and by several threads. The load sorts them in part of the
/// memory budget and on disk, and ingests them into all trees with one commit. The trees do not
/// change before that commit, nor if the load fails, is cancelled or freed, or the process crashes.
pub struct frondb_bulk {
    _private: [u8; 0],
}

object!(frondb_bulk, BulkLoad, Bulk);

/// Adds entries to a bulk load.
pub struct frondb_bulk_writer {
    _private: [u8; 0],
}

object!(frondb_bulk_writer, BulkWriterObject, BulkWriter);

/// A writer. Objects of the handle table must be `Sync`, and a `BulkWriter` is not; hence the
/// mutex. No thread ever waits for the mutex, because every call holds the handle exclusively.
pub struct BulkWriterObject(Mutex<BulkWriter>);

/// Begins a bulk load. `memory_bytes` is the memory that all writers together use for sorting; 0
/// means a quarter of the database's memory budget, divided among the bulk loads in progress. With
/// `refuse_duplicates` a key that is given twice makes frondb_bulk_finish() fail with
/// FRONDB_EXISTS; otherwise the last entry that a writer added wins, or, if several writers added
/// the key, the last entry of any one of them. `waits_for` is what the commit waits for. Finish the
/// load with frondb_bulk_finish(), and free it with frondb_bulk_free(), finished or not.
///
/// Threads: any.
///
/// Errors: FRONDB_INVALID for an unknown durability; FRONDB_POISONED; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_bulk_load(
    db: *mut frondb_db,
    memory_bytes: u64,
    refuse_duplicates: bool,
    waits_for: frondb_durability,
    bulk: Option<&mut MaybeUninit<*mut frondb_bulk>>,
) -> *mut frondb_error {
    create(bulk, || {
        let duplicates = if refuse_duplicates { Duplicates::Fail } else { Duplicates::Replace };
        let durability = durability(waits_for)?;
        let options =
            BulkOptions { duplicates, memory_bytes, durability, ..BulkOptions::default() };
        let load = handle::shared::<Db>(db)?.bulk_load(options)?;
        Ok(load)
    })
}

/// Frees a load, and abandons it if it was not finished; NULL is ignored.
///
/// Threads: any; FRONDB_BUSY, and nothing is freed, while another thread is in a call with it.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_bulk_free(bulk: *mut frondb_bulk) -> frondb_kind {
    free::<BulkLoad>(bulk)
}

/// Makes frondb_bulk_writer_put(), frondb_bulk_writer_finish() and frondb_bulk_finish() of this
/// load fail with FRONDB_CANCELLED soon, including calls in progress. No effect once
/// frondb_bulk_finish() has committed.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_bulk_cancel(bulk: *mut frondb_bulk) -> *mut frondb_error {
    call(|| {
        handle::shared::<BulkLoad>(bulk)?.cancel();
        Ok(())
    })
}

/// Adds a new tree to the load. The commit of the load creates the tree together with the entries
/// loaded into it, if any. A load that fails, is freed or is killed leaves no tree. Until the
/// commit only writers of this load accept the handle; every other read or write with it fails with
/// FRONDB_NOT_FOUND. `options` may be NULL for the defaults. Free the handle with
/// frondb_tree_free().
///
/// Threads: any.
///
/// Errors: FRONDB_EXISTS if another tree has the name; if another tree gets the name later,
/// frondb_bulk_finish() fails with this error. FRONDB_INVALID for a bad name or option, an update
/// function that is not registered, or a finished load; FRONDB_POISONED; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_bulk_new_tree(
    bulk: *mut frondb_bulk,
    name: Text,
    options: *mut frondb_tree_options,
    tree: Option<&mut MaybeUninit<*mut frondb_tree>>,
) -> *mut frondb_error {
    create(tree, || {
        let options = new_tree_options(options)?;
        let load = handle::shared::<BulkLoad>(bulk)?;
        let tree = load.new_tree(name.str("name of the tree")?, options)?;
        Ok(tree)
    })
}

/// Makes a new writer. All writers of a load share its memory. Finish the writer with
/// frondb_bulk_writer_finish().
///
/// Threads: any for the load. One thread at a time may use the writer; a second one gets
/// FRONDB_BUSY.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_bulk_writer_new(
    bulk: *mut frondb_bulk,
    writer: Option<&mut MaybeUninit<*mut frondb_bulk_writer>>,
) -> *mut frondb_error {
    create(writer, || {
        let writer = BulkWriterObject(Mutex::new(handle::shared::<BulkLoad>(bulk)?.writer()));
        Ok(writer)
    })
}

/// Adds an entry. Keys have 0 to 32 KiB, values 0 to 64 MiB.
///
/// Threads: one at a time for the writer, any for the tree.
///
/// Errors: FRONDB_INVALID for a key or value that is too long, or a tree of another database;
/// FRONDB_NOT_FOUND if the tree was dropped; FRONDB_CANCELLED; FRONDB_NO_SPACE, FRONDB_IO,
/// FRONDB_CLOSED. After the last three the load can only be freed.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_bulk_writer_put(
    writer: *mut frondb_bulk_writer,
    tree: *mut frondb_tree,
    key: frondb_slice,
    value: frondb_slice,
) -> *mut frondb_error {
    call(|| {
        let mut writer = handle::exclusive::<BulkWriterObject>(writer)?;
        let tree = handle::shared::<Tree>(tree)?;
        writer.0.get_mut().put(&*tree, key.bytes()?, value.bytes()?)
    })
}

/// Gives the writer's entries to the load. Frees the writer, also if the call fails with
/// FRONDB_CANCELLED.
///
/// Threads: any; FRONDB_BUSY, and nothing is done, while another thread uses the writer.
///
/// Errors: FRONDB_CANCELLED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_bulk_writer_finish(writer: *mut frondb_bulk_writer) -> *mut frondb_error {
    call(|| handle::remove::<BulkWriterObject>(writer)?.0.into_inner().finish())
}

/// Frees a writer without giving its entries to the load; then the load cannot be finished. NULL is
/// ignored.
///
/// Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses it.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_bulk_writer_free(writer: *mut frondb_bulk_writer) -> frondb_kind {
    free::<BulkWriterObject>(writer)
}

/// Merges the entries of all writers and commits them. Call it once, when all writers are finished;
/// free the load afterwards. `progress`, unless NULL, receives the number of entries merged and to
/// merge (each counted once for each pass; with an empty tree name), and can stop the work.
/// `report`, which may be NULL, has `entries` (loaded), `duplicates` (dropped), `raw_bytes` (key
/// and value bytes loaded, without large values) and `sorted_runs` (written to disk because the
/// memory for sorting was full).
///
/// Threads: any.
///
/// Errors: FRONDB_INVALID if a writer is not finished or the load was finished before;
/// FRONDB_CANCELLED, also if a writer was freed; FRONDB_EXISTS if a key was given twice and
/// duplicates are refused, or the name of a new tree is taken; FRONDB_NOT_FOUND if a tree was
/// dropped; FRONDB_LOCK_TIMEOUT or FRONDB_DEADLOCK if transactions kept the trees locked for a
/// minute; FRONDB_NO_SPACE, FRONDB_IO, FRONDB_POISONED, FRONDB_CLOSED. After an error nothing is
/// loaded, but after FRONDB_POISONED the reopened database may have the load.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_bulk_finish(
    bulk: *mut frondb_bulk,
    progress: frondb_progress,
    user_data: *mut c_void,
    report: Option<&mut MaybeUninit<*mut frondb_stats>>,
) -> *mut frondb_error {
    call(|| {
        let report = cleared(report);
        let load = handle::shared::<BulkLoad>(bulk)?;
        let name: *const c_char = c"".as_ptr();
        let done = load.finish(&mut |at| {
            progress.is_none_or(|progress| progress(user_data, name, at.done, at.total) == 0)
        })?;
        give_bulk_report(report, done)
    })
}

/// Puts a key that was given twice into a buffer, and the number of its tree (see frondb_tree_id())
/// into `tree`; `found` is set to whether there is such a key. After a successful finish it is the
/// smallest such key in the earliest created tree that has one; after FRONDB_EXISTS it may be any
/// such key.
///
/// Threads: any for the load, one at a time for the buffer.
///
/// Errors: FRONDB_INVALID for a bad handle or a NULL pointer for a result.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_bulk_duplicate(
    bulk: *mut frondb_bulk,
    tree: Option<&mut MaybeUninit<u64>>,
    key: *mut frondb_buffer,
    found: Option<&mut MaybeUninit<bool>>,
) -> *mut frondb_error {
    call(|| {
        let (found, tree) = (out_flag(found)?, out(tree)?);
        let (load, buffer) = (handle::shared::<BulkLoad>(bulk)?, to_fill(key)?);
        let duplicate = load.duplicate();
        tree.write(duplicate.as_ref().map_or(0, |of| u64::from(of.tree.get())));
        found.write(fill(buffer, duplicate.map(|of| of.key.into_vec())));
        Ok(())
    })
}
