//! Transactions: their options, reads with and without locks, writes, savepoints and the end.

use std::mem::MaybeUninit;

use std::time::Duration;

use frondb::{
    Committing, Error, ErrorKind, Isolation, LockMode, Result, Savepoint, Transaction,
    TransactionCursorOptions, TransactionOptions, Tree, Wait,
};
use frondb_core::sync::{Mutex, ProcessCounter};

use crate::batch::{durability, frondb_durability};
use crate::buffer::{fill, fill_many, frondb_buffer, to_fill};
use crate::call::{call, free, free_if};
use crate::cursor::{CursorObject, frondb_cursor};
use crate::error::{frondb_error, frondb_kind};
use crate::handle::{self, object};
use crate::slice::{
    OutBytes, OutSlices, Slices, frondb_slice, optional_bytes, out, out_flag, out_handle,
};
use crate::tree::frondb_tree;

/// What a transaction is begun with. May be used for any number of them.
pub struct frondb_txn_options {
    _private: [u8; 0],
}

object!(frondb_txn_options, TransactionOptions, TransactionOptions);

/// Reads and writes over any number of trees that take effect together or not at all. What it
/// writes is its own until it commits: it sees it, others do not. Each key it writes is locked
/// until it ends.
///
/// Any thread may use it; calls take turns. The victim of a deadlock is rolled back at once:
/// every later call but frondb_txn_rollback() and frondb_txn_free() fails. After its end every
/// call but frondb_txn_free() fails with FRONDB_INVALID.
pub struct frondb_txn {
    _private: [u8; 0],
}

object!(frondb_txn, TransactionObject, Transaction);

/// A commit that has happened: all later reads see it. What is left is the wait for the disk.
pub struct frondb_committing {
    _private: [u8; 0],
}

object!(frondb_committing, CommittingObject, Committing);

/// A transaction and its savepoints.
pub struct TransactionObject {
    txn: Transaction,
    /// Those that are set, with the numbers C has for them, ascending.
    savepoints: Mutex<Vec<(u64, Savepoint)>>,
}

impl TransactionObject {
    pub(crate) fn new(txn: Transaction) -> Self {
        Self { txn, savepoints: Mutex::new(Vec::new()) }
    }

    pub(crate) fn txn(&self) -> &Transaction {
        &self.txn
    }
}

/// The first half of a commit.
pub struct CommittingObject(pub(crate) Committing);

/// Runs a body with the transaction of a handle.
#[inline]
fn with(
    txn: *mut frondb_txn,
    body: impl FnOnce(&TransactionObject) -> Result<()>,
) -> *mut frondb_error {
    call(|| body(&*handle::shared::<TransactionObject>(txn)?))
}

/// The same with a tree.
#[inline]
fn with_tree(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    body: impl FnOnce(&Transaction, &Tree) -> Result<()>,
) -> *mut frondb_error {
    with(txn, |txn| body(&txn.txn, &*handle::shared::<Tree>(tree)?))
}

/// What a transaction sees of others.
pub type frondb_isolation = u32;
/// As read committed: uncommitted data is never shown.
pub const FRONDB_READ_UNCOMMITTED: frondb_isolation = 0;
/// Each statement sees what was committed when it began. Locking reads lock rows only.
pub const FRONDB_READ_COMMITTED: frondb_isolation = 1;
/// All plain reads see the state of the first one; locking reads and writes see the newest, and
/// locking cursors lock the gaps they pass. The default.
pub const FRONDB_REPEATABLE_READ: frondb_isolation = 2;
/// All reads lock what they read.
pub const FRONDB_SERIALIZABLE: frondb_isolation = 3;

/// How a read locks.
pub type frondb_lock = u32;
/// Not at all (at serializable: shared).
pub const FRONDB_LOCK_NONE: frondb_lock = 0;
/// Shared: the newest value; nobody else can write it until the transaction ends.
pub const FRONDB_LOCK_SHARED: frondb_lock = 1;
/// Exclusive: the newest value; nobody else can lock or write it until the transaction ends.
pub const FRONDB_LOCK_EXCLUSIVE: frondb_lock = 2;

/// What to do where a lock is held by another transaction.
pub type frondb_wait = u32;
/// Wait, up to the transaction's lock timeout.
pub const FRONDB_WAIT: frondb_wait = 0;
/// Fail at once with FRONDB_BUSY.
pub const FRONDB_NO_WAIT: frondb_wait = 1;
/// Cursors pass over such rows, and lock no gaps; a single read fails with FRONDB_BUSY.
pub const FRONDB_SKIP_LOCKED: frondb_wait = 2;

fn wait(wait: frondb_wait) -> Result<Wait> {
    match wait {
        FRONDB_WAIT => Ok(Wait::Timeout),
        FRONDB_NO_WAIT => Ok(Wait::NoWait),
        FRONDB_SKIP_LOCKED => Ok(Wait::SkipLocked),
        other => Err(Error::invalid(format!("there is no frondb_wait {other}"))),
    }
}

fn bad_lock(lock: frondb_lock) -> Error {
    Error::invalid(format!("there is no frondb_lock {lock}"))
}

// --- Options ---

/// Makes options with the defaults: repeatable read, waits of 10 s for a lock, and a commit that
/// waits for the disk. Free them with frondb_txn_options_free().
///
/// Threads: any. The options are for one thread at a time to set, for any number to begin with.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_options_new(
    options: Option<&mut MaybeUninit<*mut frondb_txn_options>>,
) -> *mut frondb_error {
    call(|| {
        let place = out_handle(options)?;
        place.write(handle::insert(TransactionOptions::new())?);
        Ok(())
    })
}

/// Frees options. NULL is ignored.
///
/// Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses them.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_options_free(options: *mut frondb_txn_options) -> frondb_kind {
    free::<TransactionOptions>(options)
}

fn set(
    options: *mut frondb_txn_options,
    change: impl FnOnce(TransactionOptions) -> Result<TransactionOptions>,
) -> *mut frondb_error {
    call(|| {
        let mut options = handle::exclusive::<TransactionOptions>(options)?;
        *options = change(options.clone())?;
        Ok(())
    })
}

/// What the transaction sees of others. Default FRONDB_REPEATABLE_READ.
///
/// Threads: one at a time.
///
/// Errors: FRONDB_INVALID for a level that does not exist.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_options_set_isolation(
    options: *mut frondb_txn_options,
    isolation: frondb_isolation,
) -> *mut frondb_error {
    set(options, |options| {
        let isolation = match isolation {
            FRONDB_READ_UNCOMMITTED => Isolation::ReadUncommitted,
            FRONDB_READ_COMMITTED => Isolation::ReadCommitted,
            FRONDB_REPEATABLE_READ => Isolation::RepeatableRead,
            FRONDB_SERIALIZABLE => Isolation::Serializable,
            other => return Err(Error::invalid(format!("there is no frondb_isolation {other}"))),
        };
        Ok(options.isolation(isolation))
    })
}

/// Whether a write to a row that was changed since the transaction's snapshot fails with
/// FRONDB_CONFLICT. Default false. For repeatable read only: at another level frondb_db_begin() fails
/// with FRONDB_INVALID.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_options_set_snapshot_isolation(
    options: *mut frondb_txn_options,
    on: bool,
) -> *mut frondb_error {
    set(options, |options| Ok(options.snapshot_isolation(on)))
}

/// How long each lock is waited for before the call fails with FRONDB_LOCK_TIMEOUT, milliseconds.
/// Default 10,000.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_options_set_lock_timeout_millis(
    options: *mut frondb_txn_options,
    millis: u64,
) -> *mut frondb_error {
    set(options, |options| Ok(options.lock_timeout(Duration::from_millis(millis))))
}

/// What the commit waits for. Default: what the handle says that begins it
/// (frondb_db_with_commit_sync()), which is FRONDB_SYNC if nothing else was said.
///
/// Threads: one at a time.
///
/// Errors: FRONDB_INVALID for one that does not exist.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_options_set_durability(
    options: *mut frondb_txn_options,
    waits_for: frondb_durability,
) -> *mut frondb_error {
    set(options, |options| Ok(options.durability(durability(waits_for)?)))
}

// --- The transaction itself ---

/// Frees a transaction; one that has not ended is rolled back. NULL is ignored.
///
/// Threads: any; FRONDB_BUSY, and nothing is freed, while another thread is in a call with it, or with one
/// of its cursors (frondb_txn_cancel() ends its wait).
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_free(txn: *mut frondb_txn) -> frondb_kind {
    free_if::<TransactionObject>(txn, |txn| {
        // A cursor's call has another handle. Rolled back here, so that no such call comes between.
        if txn.txn.try_abandon() { Ok(()) } else { Err(handle::busy::<TransactionObject>()) }
    })
}

/// The transaction's number: ascending in the order in which transactions begin; names it in
/// frondb_lock_info.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_id(
    txn: *mut frondb_txn,
    id: Option<&mut MaybeUninit<u64>>,
) -> *mut frondb_error {
    with(txn, |txn| {
        out(id)?.write(txn.txn.id());
        Ok(())
    })
}

/// Begins a statement: at read committed, all plain reads until the next call of this see one state.
/// Without it each call, and each cursor, is a statement of its own. A frondb_txn_cancel() that no wait
/// has met is forgotten: it was meant for the statement before.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if the transaction has ended; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_begin_statement(txn: *mut frondb_txn) -> *mut frondb_error {
    with(txn, |txn| txn.txn.begin_statement())
}

/// Ends a statement: at read committed, the state that its reads saw is kept for it no longer, also if
/// the next frondb_txn_begin_statement() comes late.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if the transaction has ended; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_end_statement(txn: *mut frondb_txn) -> *mut frondb_error {
    with(txn, |txn| txn.txn.end_statement())
}

/// Changes how long each lock is waited for, milliseconds, from the next call on.
/// frondb_txn_options_set_lock_timeout_millis() is what a transaction begins with.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if the transaction has ended or is prepared; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_set_lock_timeout_millis(
    txn: *mut frondb_txn,
    millis: u64,
) -> *mut frondb_error {
    with(txn, |txn| txn.txn.set_lock_timeout(Duration::from_millis(millis)))
}

/// Changes what the prepare and the commit to come wait for. Also once it is prepared, for
/// frondb_txn_commit(). frondb_txn_options_set_durability() is what a transaction begins with.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if the transaction has ended, or for a durability that does not exist;
/// FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_set_durability(
    txn: *mut frondb_txn,
    waits_for: frondb_durability,
) -> *mut frondb_error {
    with(txn, |txn| txn.txn.set_durability(durability(waits_for)?))
}

/// Fixes now what a repeatable read sees; else its first read does.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if the transaction has ended; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_take_snapshot(txn: *mut frondb_txn) -> *mut frondb_error {
    with(txn, |txn| txn.txn.take_snapshot())
}

/// Makes the transaction's wait for a lock fail with FRONDB_CANCELLED, or its commit or prepare while that
/// waits for background work to make room: it is then as if it had not been tried. If the transaction does
/// not wait, its next wait fails, unless frondb_txn_begin_statement() or frondb_txn_forget_cancel() comes
/// before. Never waits itself.
///
/// Threads: any; this is for another one than the one that waits.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_cancel(txn: *mut frondb_txn) -> *mut frondb_error {
    with(txn, |txn| {
        txn.txn.canceller().cancel();
        Ok(())
    })
}

/// Forgets a frondb_txn_cancel() that no wait has met, as frondb_txn_begin_statement() does: for a commit
/// that is a statement of its own.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if the transaction has ended; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_forget_cancel(txn: *mut frondb_txn) -> *mut frondb_error {
    with(txn, |txn| txn.txn.forget_cancel())
}

// --- Reading ---

fn get(
    txn: &Transaction,
    tree: &Tree,
    key: frondb_slice,
    lock: frondb_lock,
    wait_for: frondb_wait,
) -> Result<Option<Vec<u8>>> {
    let (key, wait_for) = (key.bytes()?, wait(wait_for)?);
    match lock {
        FRONDB_LOCK_NONE => txn.get(tree, key),
        FRONDB_LOCK_SHARED => txn.get_for_share(tree, key, wait_for),
        FRONDB_LOCK_EXCLUSIVE => txn.get_for_update(tree, key, wait_for),
        other => Err(bad_lock(other)),
    }
}

/// Puts the value of a key into a buffer, own writes included; `found` says whether it has one. With
/// a lock it is the newest value, whatever the snapshot, and the key is locked also if it has none.
///
/// Threads: any for the transaction, calls take turns; one at a time for the buffer.
///
/// Errors: FRONDB_INVALID if the transaction has ended, or for a tree of another database;
/// FRONDB_NOT_FOUND if the tree was dropped; FRONDB_CORRUPTION, FRONDB_IO, FRONDB_CLOSED. Where it
/// locks: FRONDB_LOCK_TIMEOUT; FRONDB_DEADLOCK: the transaction was rolled back, try it again;
/// FRONDB_BUSY if it is locked and is not to be waited for; FRONDB_CANCELLED; FRONDB_CONFLICT under
/// snapshot isolation.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_get(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    key: frondb_slice,
    lock: frondb_lock,
    wait_for: frondb_wait,
    buffer: *mut frondb_buffer,
    found: Option<&mut MaybeUninit<bool>>,
) -> *mut frondb_error {
    let place = out_flag(found);
    with_tree(txn, tree, |txn, tree| {
        let (place, buffer) = (place?, to_fill(buffer)?);
        place.write(fill(buffer, get(txn, tree, key, lock, wait_for)?));
        Ok(())
    })
}

/// Copies the value of a key to `value`, as much of it as `capacity` has room for; `value_len` is its
/// full length. Else as frondb_txn_get().
///
/// Threads: any; calls take turns.
///
/// Errors: as frondb_txn_get().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_get_into(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    key: frondb_slice,
    lock: frondb_lock,
    wait_for: frondb_wait,
    mut value: OutBytes,
    capacity: usize,
    value_len: Option<&mut MaybeUninit<usize>>,
    found: Option<&mut MaybeUninit<bool>>,
) -> *mut frondb_error {
    let place = out_flag(found);
    with_tree(txn, tree, |txn, tree| {
        let (place, len_place) = (place?, out(value_len)?);
        value.check(capacity)?;
        let got = get(txn, tree, key, lock, wait_for)?;
        let bytes = got.as_deref().unwrap_or_default();
        value.write(capacity, bytes)?;
        len_place.write(bytes.len());
        place.write(got.is_some());
        Ok(())
    })
}

/// Reads several keys as of one moment, without locks (at serializable with shared ones); as
/// frondb_tree_multi_get().
///
/// Threads: any for the transaction, calls take turns; one at a time for the buffer.
///
/// Errors: as frondb_txn_get().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_multi_get(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    keys: Slices,
    count: usize,
    buffer: *mut frondb_buffer,
    values: OutSlices,
) -> *mut frondb_error {
    with_tree(txn, tree, |txn, tree| {
        values.check(count)?;
        let (keys, buffer) = (keys.bytes(count)?, to_fill(buffer)?);
        fill_many(buffer, txn.multi_get(tree, &keys)?, values)
    })
}

/// Gives up the lock of a key that the last locking frondb_txn_get() took: for a caller that looked and
/// does not want it. Only at read committed and below, only if the transaction had no lock on it
/// before, and only if it has locked or written nothing since; else nothing happens.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if the transaction has ended, or for a tree of another database;
/// FRONDB_NOT_FOUND if the tree was dropped; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_unlock(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    key: frondb_slice,
) -> *mut frondb_error {
    with_tree(txn, tree, |txn, tree| txn.unlock(tree, key.bytes()?))
}

/// Whether a key was committed after the snapshot that plain reads of the transaction read at: then
/// `is_outdated` is set, `found` says whether the key had a value there, and `buffer` has it. Not set: plain
/// reads see the newest commit; also without a snapshot, where the overlay has the key, and under
/// snapshot isolation. Own writes do not count.
///
/// For keys that the transaction has locked and is about to write, by a caller that keeps other trees derived
/// from their values: the transaction's writes to those trees lead from the newest value to its own, and its
/// plain reads need the way from this value too, which is for frondb_txn_overlay_put() and
/// frondb_txn_overlay_delete(). Costs next to nothing while nobody has committed to the tree since the snapshot.
///
/// Threads: any for the transaction, calls take turns; one at a time for the buffer.
///
/// Errors: FRONDB_INVALID if the transaction has ended, or for a tree of another database;
/// FRONDB_NOT_FOUND if the tree was dropped; FRONDB_CORRUPTION, FRONDB_IO, FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_get_outdated(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    key: frondb_slice,
    buffer: *mut frondb_buffer,
    is_outdated: Option<&mut MaybeUninit<bool>>,
    found: Option<&mut MaybeUninit<bool>>,
) -> *mut frondb_error {
    let (is_outdated, found) = (out_flag(is_outdated), out_flag(found));
    with_tree(txn, tree, |txn, tree| {
        let (is_outdated, found) = (is_outdated?, found?);
        let Some(value) = txn.outdated(tree, key.bytes()?)? else { return Ok(()) };
        found.write(fill(to_fill(buffer)?, value));
        is_outdated.write(true);
        Ok(())
    })
}

/// From now on plain reads see this value of a key in place of what their snapshot has, unless the transaction
/// writes the key itself. It is neither locked nor committed, and locking reads do not see it. It ends with
/// the snapshot; rolling back to a savepoint undoes it.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if plain reads have no snapshot (yet), at serializable, if the transaction has ended,
/// for a key or value that is too long, or for a tree of another database; FRONDB_NOT_FOUND if the tree was
/// dropped; FRONDB_NO_SPACE if a large transaction cannot go on to disk; FRONDB_IO, FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_overlay_put(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    key: frondb_slice,
    value: frondb_slice,
) -> *mut frondb_error {
    with_tree(txn, tree, |txn, tree| txn.overlay_put(tree, key.bytes()?, value.bytes()?))
}

/// From now on plain reads see no value of a key, as frondb_txn_overlay_put().
///
/// Threads: any; calls take turns.
///
/// Errors: as frondb_txn_overlay_put().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_overlay_delete(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    key: frondb_slice,
) -> *mut frondb_error {
    with_tree(txn, tree, |txn, tree| txn.overlay_delete(tree, key.bytes()?))
}

/// Locks all keys from `lo` on that are below `hi`, there or not, until the transaction ends; all
/// to the end if `hi` is NULL. An empty `lo` without `hi` is the whole tree.
///
/// Threads: any; calls take turns.
///
/// Errors: as frondb_txn_get(); FRONDB_INVALID for FRONDB_LOCK_NONE.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_lock_range(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    lo: frondb_slice,
    hi: Option<&frondb_slice>,
    lock: frondb_lock,
    wait_for: frondb_wait,
) -> *mut frondb_error {
    with_tree(txn, tree, |txn, tree| {
        let mode = match lock {
            FRONDB_LOCK_SHARED => LockMode::Shared,
            FRONDB_LOCK_EXCLUSIVE => LockMode::Exclusive,
            other => return Err(bad_lock(other)),
        };
        txn.lock_range(tree, lo.bytes()?, optional_bytes(hi)?, mode, wait(wait_for)?)
    })
}

/// Whether a key has a value; reads and locks as frondb_txn_get() with FRONDB_LOCK_NONE.
///
/// Threads: any; calls take turns.
///
/// Errors: as frondb_txn_get().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_exists(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    key: frondb_slice,
    found: Option<&mut MaybeUninit<bool>>,
) -> *mut frondb_error {
    let place = out_flag(found);
    with_tree(txn, tree, |txn, tree| {
        let place = place?;
        place.write(txn.exists(tree, key.bytes()?)?);
        Ok(())
    })
}

/// A cursor over the keys of a tree from `lo` on that are below `hi` (`hi` NULL: to the end), with
/// the transaction's own writes as of its last seek. With a lock it shows the newest data and locks
/// each entry before it shows it, from repeatable read on with the gap before it. Free it with
/// frondb_cursor_free(), before or after the transaction's end; after it every move fails.
///
/// Threads: any for the transaction, calls take turns. The cursor is for one thread at a time.
///
/// Errors: as frondb_txn_get().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_cursor(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    lo: frondb_slice,
    hi: Option<&frondb_slice>,
    lock: frondb_lock,
    wait_for: frondb_wait,
    cursor: Option<&mut MaybeUninit<*mut frondb_cursor>>,
) -> *mut frondb_error {
    let place = out_handle(cursor);
    with_tree(txn, tree, |txn, tree| {
        let (place, wait_for) = (place?, wait(wait_for)?);
        let options = TransactionCursorOptions::new();
        let options = match (lo.bytes()?, optional_bytes(hi)?) {
            (lo, None) => options.range(lo..),
            (lo, Some(hi)) => options.range(lo..hi),
        };
        let options = match lock {
            FRONDB_LOCK_NONE => options,
            FRONDB_LOCK_SHARED => options.for_share(wait_for),
            FRONDB_LOCK_EXCLUSIVE => options.for_update(wait_for),
            other => return Err(bad_lock(other)),
        };
        let cursor = CursorObject::of_transaction(txn.cursor_with(tree, options)?);
        place.write(handle::insert(cursor)?);
        Ok(())
    })
}

// --- Writing ---

/// Sets the value of a key. Keys have 0 to 32 KiB, values 0 to 64 MiB.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if the transaction has ended, for a key or value that is too long, or for a
/// tree of another database; FRONDB_NOT_FOUND if the tree was dropped; FRONDB_LOCK_TIMEOUT;
/// FRONDB_DEADLOCK: the transaction was rolled back, try it again; FRONDB_CONFLICT under snapshot
/// isolation; FRONDB_CANCELLED; FRONDB_NO_SPACE if a large transaction cannot go on to disk;
/// FRONDB_IO, FRONDB_CLOSED. The transaction is as it was before the call, but for FRONDB_DEADLOCK.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_put(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    key: frondb_slice,
    value: frondb_slice,
) -> *mut frondb_error {
    with_tree(txn, tree, |txn, tree| txn.put(tree, key.bytes()?, value.bytes()?))
}

/// Sets the value of a key that has none.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_EXISTS if it has one; it is locked now. Else as frondb_txn_put().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_insert(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    key: frondb_slice,
    value: frondb_slice,
) -> *mut frondb_error {
    with_tree(txn, tree, |txn, tree| txn.insert(tree, key.bytes()?, value.bytes()?))
}

/// Removes a key, whether it exists or not.
///
/// Threads: any; calls take turns.
///
/// Errors: as frondb_txn_put().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_delete(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    key: frondb_slice,
) -> *mut frondb_error {
    with_tree(txn, tree, |txn, tree| txn.delete(tree, key.bytes()?))
}

/// Removes all keys from `lo` on that are below `hi`; all to the end if `hi` is NULL. The range is
/// locked as a whole.
///
/// Threads: any; calls take turns.
///
/// Errors: as frondb_txn_put().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_delete_range(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    lo: frondb_slice,
    hi: Option<&frondb_slice>,
) -> *mut frondb_error {
    with_tree(txn, tree, |txn, tree| txn.delete_range(tree, lo.bytes()?, optional_bytes(hi)?))
}

/// Applies the tree's update function to a key, without reading it.
///
/// Threads: any; calls take turns.
///
/// Errors: as frondb_txn_put(); FRONDB_INVALID if the tree has no update function, or the database
/// was opened without it.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_update(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    key: frondb_slice,
    operand: frondb_slice,
) -> *mut frondb_error {
    with_tree(txn, tree, |txn, tree| txn.update(tree, key.bytes()?, operand.bytes()?))
}

// --- Savepoints ---

/// Numbers of savepoints: of all transactions, so that one's is not taken for another's.
static SAVEPOINTS: ProcessCounter = ProcessCounter::new(1);

/// Where a savepoint is in the list of those set.
fn find_savepoint(savepoints: &[(u64, Savepoint)], number: u64) -> Result<usize> {
    savepoints.binary_search_by_key(&number, |(number, _)| *number).map_err(|_| {
        let message = format!("savepoint {number} is not set in this transaction, or not any more");
        Error::new(ErrorKind::NotFound, message)
    })
}

/// Sets a savepoint and gives its number, which is never 0 and no other savepoint's of the process.
/// Savepoints nest. It needs no freeing; the transaction's end forgets it.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if the transaction has ended; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_set_savepoint(
    txn: *mut frondb_txn,
    savepoint: Option<&mut MaybeUninit<u64>>,
) -> *mut frondb_error {
    with(txn, |txn| {
        let place = out(savepoint)?;
        // Under one lock, so that the order of the numbers is that of the savepoints.
        let mut savepoints = txn.savepoints.lock();
        let set = txn.txn.set_savepoint()?;
        let number = SAVEPOINTS.next();
        savepoints.push((number, set));
        place.write(number);
        Ok(())
    })
}

/// Undoes all writes since the savepoint was set. It stays set; those set after it are gone. Locks
/// stay.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_NOT_FOUND if it is not set any more, or is another transaction's; FRONDB_INVALID if
/// the transaction has ended; FRONDB_NO_SPACE or FRONDB_IO if a part of a large transaction has to
/// be written anew: the call may be repeated.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_roll_back_to(
    txn: *mut frondb_txn,
    savepoint: u64,
) -> *mut frondb_error {
    with(txn, |txn| {
        let mut savepoints = txn.savepoints.lock();
        let at = find_savepoint(&savepoints, savepoint)?;
        txn.txn.roll_back_to(savepoints[at].1)?;
        savepoints.truncate(at + 1);
        Ok(())
    })
}

/// Forgets a savepoint and those set after it, and keeps what was written.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_NOT_FOUND if it is not set any more, or is another transaction's; FRONDB_INVALID if
/// the transaction has ended.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_release_savepoint(
    txn: *mut frondb_txn,
    savepoint: u64,
) -> *mut frondb_error {
    end_savepoint(txn, savepoint, false)
}

/// Forgets a savepoint alone: those set after it stay, and what was written.
///
/// Threads: any; calls take turns.
///
/// Errors: as frondb_txn_release_savepoint().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_forget_savepoint(
    txn: *mut frondb_txn,
    savepoint: u64,
) -> *mut frondb_error {
    end_savepoint(txn, savepoint, true)
}

/// Ends a savepoint: alone, or with those set after it.
fn end_savepoint(txn: *mut frondb_txn, savepoint: u64, alone: bool) -> *mut frondb_error {
    with(txn, |txn| {
        let mut savepoints = txn.savepoints.lock();
        let at = find_savepoint(&savepoints, savepoint)?;
        if alone {
            txn.txn.forget_savepoint(savepoints[at].1)?;
            savepoints.remove(at);
        } else {
            txn.txn.release(savepoints[at].1)?;
            savepoints.truncate(at);
        }
        Ok(())
    })
}

// --- The end ---

/// Commits: all writes take effect together. Returns when they are as durable as it asks;
/// others see them, and get the locks, before the wait for the disk.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_NO_SPACE, or FRONDB_NOT_FOUND if a tree was dropped: nothing has changed, and the
/// transaction goes on, for another try or a rollback. FRONDB_POISONED, FRONDB_IO, FRONDB_CLOSED;
/// FRONDB_INVALID if it has ended.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_commit(txn: *mut frondb_txn) -> *mut frondb_error {
    with(txn, |txn| txn.txn.commit())
}

/// The first half of frondb_txn_commit(): all but the wait for the disk, which is
/// frondb_committing_wait(). Who calls it for several transactions one after the other decides their
/// order, and lets one sync serve them all.
///
/// Threads: any; calls take turns.
///
/// Errors: as frondb_txn_commit().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_commit_in_order(
    txn: *mut frondb_txn,
    committing: Option<&mut MaybeUninit<*mut frondb_committing>>,
) -> *mut frondb_error {
    let place = out_handle(committing);
    with(txn, |txn| {
        let place = place?;
        let committing = CommittingObject(txn.txn.commit_in_order()?);
        place.write(handle::insert(committing)?);
        Ok(())
    })
}

/// The second half of a commit: waits until it is as durable as the transaction asks. Frees
/// `committing`, also if it fails.
///
/// Threads: any, also another one than that of the first half.
///
/// Errors: FRONDB_POISONED if the disk failed: the commit may be lost; close and open again.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_committing_wait(committing: *mut frondb_committing) -> *mut frondb_error {
    call(|| handle::remove::<CommittingObject>(committing)?.0.wait())
}

/// Frees a commit's second half without the wait: the commit has happened, and becomes durable with
/// a later one, or with frondb_db_sync(). NULL is ignored.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_committing_free(committing: *mut frondb_committing) -> frondb_kind {
    free::<CommittingObject>(committing)
}

/// Undoes all writes and lets go of all locks.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if it was committed or rolled back before.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_rollback(txn: *mut frondb_txn) -> *mut frondb_error {
    with(txn, |txn| txn.txn.rollback())
}
