//! A database: opening, trees, batches, transactions, snapshots, maintenance and statistics.

use std::mem::MaybeUninit;
use std::time::Duration;

use frondb::{Batch, Db, Error, Options, Result, SyncMode, TransactionOptions, Tree};

use crate::batch::{durability, frondb_batch, frondb_durability};
use crate::call::{call, call_or, create, free};
use crate::error::{frondb_error, frondb_kind};
use crate::handle::{self, object};
use crate::list::{self, frondb_list};
use crate::options::{
    FRONDB_SYNC_ALWAYS, FRONDB_SYNC_EVERY_MILLIS, FRONDB_SYNC_NEVER, OptionsObject, frondb_options,
    frondb_sync_mode, sync_mode,
};
use crate::slice::{Array, Text, cleared, out, out_flag, out_handle};
use crate::snapshot::frondb_snapshot;
use crate::stats::{self, frondb_stats};
use crate::transaction::{TransactionObject, frondb_txn, frondb_txn_options};
use crate::tree::frondb_tree;
use crate::tree_options::{frondb_tree_options, new_tree_options};

/// An open database.
pub struct frondb_db {
    _private: [u8; 0],
}

object!(frondb_db, Db, Db);

/// Opens the database in the directory `path`, or creates one there. `options` may be NULL for the
/// defaults. Free the database with frondb_db_free().
///
/// Threads: any, and any number of threads may use the database.
///
/// Errors: FRONDB_BUSY if the database is open already; FRONDB_NOT_FOUND if there is no database
/// and the options do not create one; FRONDB_EXISTS if there is one and the options ask for a new
/// one; FRONDB_INVALID for an option out of its range, or if the directory has other files;
/// FRONDB_UNSUPPORTED if a newer version wrote the database; FRONDB_CORRUPTION; FRONDB_IO.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_open(
    path: Text,
    options: *mut frondb_options,
    db: Option<&mut MaybeUninit<*mut frondb_db>>,
) -> *mut frondb_error {
    create(db, || {
        let options = match handle::optional::<OptionsObject>(options)? {
            Some(options) => options.0.clone(),
            None => Options::new(),
        };
        Db::open(path.path()?, options)
    })
}

/// Closes a database and unlocks its directory. The handles of the database, its trees, cursors and
/// transactions stay valid, but later calls that read or write data fail with FRONDB_CLOSED. Calls
/// that only report, such as frondb_db_stats(), still work. Waits for calls of other threads that
/// may write, not for reads.
///
/// Threads: any.
///
/// Errors: FRONDB_POISONED or FRONDB_IO if something could not be written. The database is closed
/// nevertheless, and durable commits stay durable. A repeated call returns the same result.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_close(db: *mut frondb_db) -> *mut frondb_error {
    call(|| handle::shared::<Db>(db)?.close())
}

/// Frees the handle of a database; NULL is ignored. If the database was not closed, it stays open
/// until its trees, transactions (with their cursors and commits), bulk loads and backups are freed
/// too. Cursors of frondb_tree_cursor() do not keep it open: afterwards their moves fail with
/// FRONDB_CLOSED. No commit is lost: the next open replays the log.
///
/// Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses the handle.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_free(db: *mut frondb_db) -> frondb_kind {
    free::<Db>(db)
}

/// Opens the tree of this name. If there is none, creates it with these options, durably. The
/// options of an existing tree stay as they are. `options` may be NULL for the defaults. Free the
/// handle with frondb_tree_free().
///
/// Threads: any.
///
/// Errors: FRONDB_INVALID for a bad name or option, for an update function that is not registered,
/// or if the options name an update function and the existing tree has another one, or none.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_open_or_create_tree(
    db: *mut frondb_db,
    name: Text,
    options: *mut frondb_tree_options,
    tree: Option<&mut MaybeUninit<*mut frondb_tree>>,
) -> *mut frondb_error {
    create(tree, || {
        let options = new_tree_options(options)?;
        handle::shared::<Db>(db)?.open_or_create_tree(name.str("name of the tree")?, options)
    })
}

/// Creates an empty tree, durably. `options` may be NULL for the defaults. Free the handle with
/// frondb_tree_free().
///
/// Threads: any.
///
/// Errors: FRONDB_EXISTS; FRONDB_INVALID for a bad name or option, or an update function that is
/// not registered.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_create_tree(
    db: *mut frondb_db,
    name: Text,
    options: *mut frondb_tree_options,
    tree: Option<&mut MaybeUninit<*mut frondb_tree>>,
) -> *mut frondb_error {
    create(tree, || {
        let options = new_tree_options(options)?;
        let tree = handle::shared::<Db>(db)?.create_tree(name.str("name of the tree")?, options)?;
        Ok(tree)
    })
}

/// Opens the tree of this name. Free the handle with frondb_tree_free().
///
/// Threads: any.
///
/// Errors: FRONDB_NOT_FOUND.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_open_tree(
    db: *mut frondb_db,
    name: Text,
    tree: Option<&mut MaybeUninit<*mut frondb_tree>>,
) -> *mut frondb_error {
    create(tree, || {
        let tree = handle::shared::<Db>(db)?.open_tree(name.str("name of the tree")?)?;
        Ok(tree)
    })
}

/// Lists the names of all trees, sorted.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_list_trees(
    db: *mut frondb_db,
    names: Option<&mut MaybeUninit<*mut frondb_list>>,
) -> *mut frondb_error {
    call(|| list::give(cleared(names), handle::shared::<Db>(db)?.list_trees()))
}

/// Renames a tree, durably. Open handles stay valid.
///
/// Threads: any.
///
/// Errors: FRONDB_NOT_FOUND, FRONDB_EXISTS, FRONDB_INVALID.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_rename_tree(
    db: *mut frondb_db,
    from: Text,
    to: Text,
) -> *mut frondb_error {
    call(|| {
        let (from, to) = (from.str("old name")?, to.str("new name")?);
        handle::shared::<Db>(db)?.rename_tree(from, to)
    })
}

/// Removes a tree and all of its data, durably. Cursors of frondb_tree_cursor() that have moved
/// before stay usable; other reads and writes of the tree fail with FRONDB_NOT_FOUND.
///
/// Threads: any.
///
/// Errors: FRONDB_NOT_FOUND; FRONDB_BUSY if a prepared transaction has written to the tree: commit
/// or roll back that transaction first.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_drop_tree(db: *mut frondb_db, name: Text) -> *mut frondb_error {
    call(|| handle::shared::<Db>(db)?.drop_tree(name.str("name of the tree")?))
}

/// Commits a batch atomically. Like a transaction, the call waits for conflicting locks of
/// transactions, up to 10 s for each lock.
///
/// Threads: any for the database, one at a time for the batch.
///
/// Errors: FRONDB_LOCK_TIMEOUT, FRONDB_DEADLOCK or FRONDB_TOO_MANY_LOCKS while it locks, and
/// FRONDB_NO_SPACE: nothing has changed. FRONDB_INVALID for an invalid write in the batch or a
/// batch that is too large; FRONDB_NOT_FOUND if a tree was dropped; FRONDB_POISONED; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_write(
    db: *mut frondb_db,
    batch: *mut frondb_batch,
    waits_for: frondb_durability,
) -> *mut frondb_error {
    call(|| {
        // Lock the batch exclusively, so that no other thread adds to it during the commit.
        let batch = handle::exclusive::<Batch>(batch)?;
        handle::shared::<Db>(db)?.write(&batch, durability(waits_for)?)
    })
}

/// Returns the size of the largest batch that can be committed, in bytes of memory: the limit of
/// `memory_bytes` of frondb_batch_size.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_batch_bytes_max(
    db: *mut frondb_db,
    bytes: Option<&mut MaybeUninit<u64>>,
) -> *mut frondb_error {
    call(|| {
        out(bytes)?.write(handle::shared::<Db>(db)?.batch_bytes_max());
        Ok(())
    })
}

/// Begins a transaction. A transaction costs next to nothing until it writes or locks. `options`
/// may be NULL for the defaults. Free the transaction with frondb_txn_free().
///
/// Threads: any.
///
/// Errors: FRONDB_INVALID for options that contradict each other
/// (frondb_txn_options_set_snapshot_isolation()); FRONDB_POISONED, FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_begin(
    db: *mut frondb_db,
    options: *mut frondb_txn_options,
    txn: Option<&mut MaybeUninit<*mut frondb_txn>>,
) -> *mut frondb_error {
    create(txn, || {
        let options = match handle::optional::<TransactionOptions>(options)? {
            Some(options) => options.clone(),
            None => TransactionOptions::new(),
        };
        let txn = handle::shared::<Db>(db)?.begin(options)?;
        Ok(TransactionObject::new(txn))
    })
}

/// An array of trees.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct TreeHandles(Array<*mut frondb_tree>);

impl TreeHandles {
    pub(crate) fn handles(&self, count: usize) -> Result<&[*mut frondb_tree]> {
        self.0.items(count)
    }
}

/// Takes a snapshot of everything that is committed. Free the snapshot with frondb_snapshot_free().
///
/// Threads: any, and any number of threads may read at the snapshot.
///
/// Errors: FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_snapshot(
    db: *mut frondb_db,
    snapshot: Option<&mut MaybeUninit<*mut frondb_snapshot>>,
) -> *mut frondb_error {
    create(snapshot, || {
        let snapshot = handle::shared::<Db>(db)?.snapshot()?;
        Ok(snapshot)
    })
}

/// Waits until all transactions that have written to one of `count` trees have ended, prepared ones
/// included, up to `timeout_millis` for each tree. Then takes a snapshot, which sees the committed
/// writes of these transactions. Transactions and batches that begin to write to the trees
/// meanwhile wait until the call returns. For an index build that must not miss a row: create the
/// tree of the index, make all writers write to this tree, then read the existing data at this
/// snapshot.
///
/// Threads: any.
///
/// Errors: FRONDB_BUSY if a prepared transaction that wrote to a tree has not ended in time: commit
/// or roll back that transaction first; FRONDB_LOCK_TIMEOUT; FRONDB_DEADLOCK if a deadlock remains
/// at the timeout; FRONDB_INVALID for a tree of another database; FRONDB_NOT_FOUND if a tree was
/// dropped; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_snapshot_behind_writers(
    db: *mut frondb_db,
    trees: TreeHandles,
    count: usize,
    timeout_millis: u64,
    snapshot: Option<&mut MaybeUninit<*mut frondb_snapshot>>,
) -> *mut frondb_error {
    create(snapshot, || {
        let trees = trees.handles(count)?.iter().map(|tree| handle::shared::<Tree>(*tree));
        let trees = trees.collect::<Result<Vec<_>>>()?;
        let trees: Vec<&Tree> = trees.iter().map(|tree| &**tree).collect();
        let timeout = Duration::from_millis(timeout_millis);
        let snapshot = handle::shared::<Db>(db)?.snapshot_behind_writers(&trees, timeout)?;
        Ok(snapshot)
    })
}

/// Makes a handle to the same database with another default durability. The durability applies to
/// single writes (frondb_tree_put() and similar) to trees that the new handle creates or opens, and
/// to its transactions unless their options say otherwise. The given handle and trees that are open
/// already keep their durability. Free the new handle with frondb_db_free(), before or after the
/// given handle.
///
/// Threads: any.
///
/// Errors: FRONDB_INVALID for an unknown durability.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_with_commit_sync(
    db: *mut frondb_db,
    waits_for: frondb_durability,
    other: Option<&mut MaybeUninit<*mut frondb_db>>,
) -> *mut frondb_error {
    create(other, || {
        let other = handle::shared::<Db>(db)?.with_commit_sync(durability(waits_for)?);
        Ok(other)
    })
}

/// Changes what FRONDB_SYNC waits for, for all handles and threads until the database is closed.
/// `millis` is used for FRONDB_SYNC_EVERY_MILLIS only. Everything that was committed before the
/// call is durable when it returns.
///
/// Threads: any.
///
/// Errors: FRONDB_INVALID for a bad mode or interval: nothing is changed. Otherwise as
/// frondb_db_sync(); except after FRONDB_CLOSED the mode is changed nevertheless.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_set_sync_mode(
    db: *mut frondb_db,
    mode: frondb_sync_mode,
    millis: u64,
) -> *mut frondb_error {
    call(|| handle::shared::<Db>(db)?.set_sync_mode(sync_mode(mode, millis)?))
}

/// Changes the option `checkpoint_period`: about the longest time, in milliseconds, between a
/// commit and the flush of its messages from the memtable; 0 means no limit. If an
/// earlier commit is older than the new period, a checkpoint is due at once.
///
/// Threads: any.
///
/// Errors: FRONDB_INVALID for more than a year: nothing is changed; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_set_checkpoint_millis(
    db: *mut frondb_db,
    millis: u64,
) -> *mut frondb_error {
    call(|| handle::shared::<Db>(db)?.set_checkpoint_period(Duration::from_millis(millis)))
}

/// Limits the bytes per second that flushes and merges write; 0 means no limit. Jobs that wait
/// because of the old limit continue at once. Commits, bulk loads and the spilled writes of large
/// transactions are not limited.
///
/// Threads: any.
///
/// Errors: FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_set_background_bytes_per_second(
    db: *mut frondb_db,
    bytes: u64,
) -> *mut frondb_error {
    call(|| handle::shared::<Db>(db)?.set_background_bytes_per_second(bytes))
}

/// Changes the memory budget to `bytes`; 0 means a quarter of the machine's memory. When the call
/// returns, the cache has shrunk to fit, and flushes of memtables beyond the new write buffer have
/// begun. Merges and bulk loads that are running keep their memory until they end.
///
/// Threads: any.
///
/// Errors: FRONDB_INVALID for less than the option "memory_bytes" allows, or less than twice a
/// write buffer of a fixed size: nothing is changed; FRONDB_CLOSED, FRONDB_POISONED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_set_memory_bytes(db: *mut frondb_db, bytes: u64) -> *mut frondb_error {
    call(|| handle::shared::<Db>(db)?.set_memory_bytes(bytes))
}

/// Tells the database how many bytes of memory the program itself uses for work with the database,
/// for example a server for its connections; initially 0. The statistic memory_used includes these
/// bytes, and the cache makes room for them, up to an eighth of the budget (a sixteenth of a budget
/// below 64 MiB). May be called often.
///
/// Threads: any.
///
/// Errors: FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_set_outside_memory_bytes(
    db: *mut frondb_db,
    bytes: u64,
) -> *mut frondb_error {
    call(|| handle::shared::<Db>(db)?.set_outside_memory_bytes(bytes))
}

/// Returns the current sync mode, which is what FRONDB_SYNC waits for, and its interval in
/// milliseconds (0 if the mode has none).
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_sync_mode(
    db: *mut frondb_db,
    mode: Option<&mut MaybeUninit<frondb_sync_mode>>,
    millis: Option<&mut MaybeUninit<u64>>,
) -> *mut frondb_error {
    call(|| {
        let (mode, millis) = (out(mode)?, out(millis)?);
        let (found, interval) = match handle::shared::<Db>(db)?.sync_mode() {
            SyncMode::Always => (FRONDB_SYNC_ALWAYS, 0),
            SyncMode::EveryMillis(millis) => (FRONDB_SYNC_EVERY_MILLIS, millis),
            SyncMode::Never => (FRONDB_SYNC_NEVER, 0),
            other => return Err(Error::internal(format!("a new sync mode: {other:?}"))),
        };
        mode.write(found);
        millis.write(interval);
        Ok(())
    })
}

/// Makes everything committed so far durable.
///
/// Threads: any.
///
/// Errors: FRONDB_POISONED if the sync failed; FRONDB_NO_SPACE; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_sync(db: *mut frondb_db) -> *mut frondb_error {
    call(|| handle::shared::<Db>(db)?.sync())
}

/// Flushes all memtables and waits until they are flushed.
///
/// Threads: any.
///
/// Errors: FRONDB_NO_SPACE: nothing is lost, the log still has the data; FRONDB_POISONED;
/// FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_flush(db: *mut frondb_db) -> *mut frondb_error {
    call(|| handle::shared::<Db>(db)?.flush())
}

/// Flushes all memtables and frees the log, so that the next open has nothing to replay from the
/// time before this call.
///
/// Threads: any.
///
/// Errors: as frondb_db_flush().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_checkpoint(db: *mut frondb_db) -> *mut frondb_error {
    call(|| handle::shared::<Db>(db)?.checkpoint())
}

/// Waits until no background work is so overdue that it slows commits, and until the space of
/// deleted and overwritten large values (over 64 KiB) is freed. A leaf is rewritten only if it has
/// enough such values for its size, so a few of them in a much larger leaf stay. Values that an
/// open snapshot or cursor can see stay too.
///
/// Threads: any.
///
/// Errors: FRONDB_NO_SPACE while the disk is full; FRONDB_POISONED; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_wait_settled(db: *mut frondb_db) -> *mut frondb_error {
    call(|| handle::shared::<Db>(db)?.wait_settled())
}

/// Returns whether no background work is so overdue that it slows commits; false for a pointer that
/// is not a database.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_is_settled(db: *mut frondb_db) -> bool {
    call_or(false, || Ok(handle::shared::<Db>(db)?.is_settled()))
}

/// Runs one background job if one is due; `did` is set to whether a job was run. For databases
/// without background threads, in which background work otherwise happens only inside of writes.
/// `idle` also allows the jobs that normally run only while there are no writes.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_run_one(
    db: *mut frondb_db,
    idle: bool,
    did: Option<&mut MaybeUninit<bool>>,
) -> *mut frondb_error {
    call(|| {
        let place = out_flag(did)?;
        place.write(handle::shared::<Db>(db)?.run_one(idle));
        Ok(())
    })
}

/// Returns statistics of the whole database; docs/operating/status.md lists their names. The values
/// of each kind of latency follow the statistics: `latency_KIND_count`, `latency_KIND_nanos` (the
/// sum), `latency_KIND_p50_nanos`, `_p99_nanos`, `_p999_nanos` and `_max_nanos`.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_stats(
    db: *mut frondb_db,
    stats: Option<&mut MaybeUninit<*mut frondb_stats>>,
) -> *mut frondb_error {
    call(|| {
        let stats = cleared(stats);
        let db = handle::shared::<Db>(db)?;
        let (found, latencies) = (db.stats(), db.latencies());
        let mut values = found.named_values();
        values.extend(latencies.named_values());
        stats::give(stats, values, Some(format!("{found}{latencies}")))
    })
}

fn check_endurance(tbw: f64) -> frondb::Result<()> {
    if !tbw.is_finite() || tbw < 0.0 {
        return Err(Error::invalid(format!("{tbw} terabytes is not the endurance of a drive")));
    }
    Ok(())
}

/// Returns how much the database has written to its files, in two periods: since the database was
/// created, or first opened by a version that counts writes (`total_...`), and in the last hour
/// (`last_hour_...`). `since` and `until` are seconds since 1970. Each period has its length in
/// `seconds`; `user_bytes`, which batches and transactions have written; `bytes` and `requests` of
/// all writes; and both for each cause: `log`, `flush`, `merge`, `relocation`, `manifest`,
/// `private_runs`, `large_values`. frondb_stats_text() is a page with the write amplification and,
/// unless `tbw` is 0, the lifetime of a new drive with an endurance of `tbw` terabytes.
///
/// Threads: any.
///
/// Errors: FRONDB_INVALID if `tbw` is negative, infinite or not a number.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_wear(
    db: *mut frondb_db,
    tbw: f64,
    wear: Option<&mut MaybeUninit<*mut frondb_stats>>,
) -> *mut frondb_error {
    call(|| {
        let place = cleared(wear);
        let db = handle::shared::<Db>(db)?;
        check_endurance(tbw)?;
        let wear = db.wear();
        stats::give(place, wear.named_values(), Some(wear.page(tbw).to_string()))
    })
}

/// Returns the wear of the database in a directory as last recorded, in the form of
/// frondb_db_wear(). Does not open the database, which may be open in this or another process: then
/// the record is some minutes old (`until`). `wear` is set to NULL if only versions that do not
/// count writes have written the database.
///
/// Threads: any.
///
/// Errors: FRONDB_NOT_FOUND if there is no database; FRONDB_INVALID, FRONDB_UNSUPPORTED and
/// FRONDB_CORRUPTION if its superblocks cannot be read, FRONDB_INVALID also if `tbw` is negative,
/// infinite or not a number; FRONDB_IO.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_recorded_wear(
    path: Text,
    tbw: f64,
    wear: Option<&mut MaybeUninit<*mut frondb_stats>>,
) -> *mut frondb_error {
    call(|| {
        let place = out_handle(wear)?;
        check_endurance(tbw)?;
        match Db::recorded_wear(path.path()?)? {
            Some(wear) => {
                stats::give(Some(place), wear.named_values(), Some(wear.page(tbw).to_string()))
            }
            None => Ok(()),
        }
    })
}

/// Returns the statistics of frondb_db_stats(); frondb_stats_text() is a page in the text format of
/// Prometheus, version 0.0.4, for a program that serves its own metrics. Counters end in `_total`,
/// times are in seconds; the latencies are one histogram, `frondb_latency_seconds`, with a label
/// `kind`.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_prometheus(
    db: *mut frondb_db,
    stats: Option<&mut MaybeUninit<*mut frondb_stats>>,
) -> *mut frondb_error {
    call(|| {
        let stats = cleared(stats);
        let db = handle::shared::<Db>(db)?;
        let mut values = db.stats().named_values();
        values.extend(db.latencies().named_values());
        stats::give(stats, values, Some(db.prometheus()))
    })
}

/// Returns the results of the recovery when the database was opened: `created` (1 if the open
/// created the database), `records` (log records replayed), `log_bytes` (log bytes read),
/// `messages` (messages replayed into memtables), and `log_tail` and `manifest_tail`, which are 1
/// if a torn tail was cut off. frondb_stats_text() also describes the torn tails in words.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_recovery(
    db: *mut frondb_db,
    recovery: Option<&mut MaybeUninit<*mut frondb_stats>>,
) -> *mut frondb_error {
    call(|| {
        let recovery = cleared(recovery);
        let db = handle::shared::<Db>(db)?;
        let found = db.recovery();
        let list = vec![
            ("created", u64::from(found.created)),
            ("records", found.records),
            ("log_bytes", found.log_bytes),
            ("messages", found.messages),
            ("log_tail", u64::from(found.log_tail.is_some())),
            ("manifest_tail", u64::from(found.manifest_tail.is_some())),
        ];
        let mut page: String =
            list.iter().map(|(name, value)| format!("{name:<24} {value}\n")).collect();
        for tail in [&found.log_tail, &found.manifest_tail].into_iter().flatten() {
            page.push_str(tail);
            page.push('\n');
        }
        stats::give(recovery, list, Some(page))
    })
}
