//! Transactions: options, reads with and without locks, writes, savepoints, commit and rollback.

use std::mem::MaybeUninit;

use std::time::Duration;

use frondb::{
    Committing, Error, ErrorKind, Isolation, LockMode, Result, Savepoint, Transaction,
    TransactionCursorOptions, TransactionOptions, Tree, Wait,
};
use frondb_core::sync::{Mutex, ProcessCounter};

use crate::batch::{durability, frondb_durability};
use crate::buffer::{fill, fill_many, frondb_buffer, to_fill};
use crate::call::{call, create, free, free_if};
use crate::cursor::{CursorObject, frondb_cursor};
use crate::error::{frondb_error, frondb_kind};
use crate::handle::{self, object};
use crate::slice::{
    OutBytes, OutSlices, Slices, frondb_slice, optional_bytes, out, out_flag, out_handle,
};
use crate::tree::frondb_tree;

/// Options with which frondb_db_begin() begins transactions. May be used for any number of them.
pub struct frondb_txn_options {
    _private: [u8; 0],
}

object!(frondb_txn_options, TransactionOptions, TransactionOptions);

/// Reads and writes over any number of trees that take effect atomically. Until the commit only the
/// transaction itself sees its writes. A transaction locks each key that it writes until it ends.
///
/// Any thread may use it; calls take turns. A deadlock victim is rolled back immediately, and every
/// later call except frondb_txn_rollback() and frondb_txn_free() fails. After the transaction's end
/// every call except frondb_txn_free() fails with FRONDB_INVALID.
pub struct frondb_txn {
    _private: [u8; 0],
}

object!(frondb_txn, TransactionObject, Transaction);

/// A commit or prepare that has happened; only the wait for the disk remains. All later reads see
/// such a commit.
pub struct frondb_committing {
    _private: [u8; 0],
}

object!(frondb_committing, CommittingObject, Committing);

/// A transaction and its savepoints.
pub struct TransactionObject {
    txn: Transaction,
    /// The savepoints that are set, with their numbers for C, ascending.
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

/// The second half of a commit or prepare.
pub struct CommittingObject(pub(crate) Committing);

/// Runs `body` with the transaction of a handle.
#[inline]
fn with(
    txn: *mut frondb_txn,
    body: impl FnOnce(&TransactionObject) -> Result<()>,
) -> *mut frondb_error {
    call(|| body(&*handle::shared::<TransactionObject>(txn)?))
}

/// Runs `body` with the transaction and the tree of two handles.
#[inline]
fn with_tree(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    body: impl FnOnce(&Transaction, &Tree) -> Result<()>,
) -> *mut frondb_error {
    with(txn, |txn| body(&txn.txn, &*handle::shared::<Tree>(tree)?))
}

/// What a transaction sees of other transactions' writes.
pub type frondb_isolation = u32;
/// The same as read committed: uncommitted data is never shown.
pub const FRONDB_READ_UNCOMMITTED: frondb_isolation = 0;
/// Each statement sees what was committed when it began. Locking reads lock rows only.
pub const FRONDB_READ_COMMITTED: frondb_isolation = 1;
/// All plain reads see the state of the first one. Locking reads and writes see the newest data,
/// and locking cursors lock the gaps they pass. The default.
pub const FRONDB_REPEATABLE_READ: frondb_isolation = 2;
/// All reads lock what they read.
pub const FRONDB_SERIALIZABLE: frondb_isolation = 3;

/// How a read locks.
pub type frondb_lock = u32;
/// No lock (at serializable: shared).
pub const FRONDB_LOCK_NONE: frondb_lock = 0;
/// Shared lock. Reads the newest value; no other transaction can write it until this one ends.
pub const FRONDB_LOCK_SHARED: frondb_lock = 1;
/// Exclusive lock. Reads the newest value; no other transaction can lock or write it until this
/// one ends.
pub const FRONDB_LOCK_EXCLUSIVE: frondb_lock = 2;

/// What to do if another transaction holds the lock.
pub type frondb_wait = u32;
/// Wait, up to the transaction's lock timeout.
pub const FRONDB_WAIT: frondb_wait = 0;
/// Fail immediately with FRONDB_BUSY.
pub const FRONDB_NO_WAIT: frondb_wait = 1;
/// Cursors skip such rows, and lock no gaps; a single read fails with FRONDB_BUSY.
pub const FRONDB_SKIP_LOCKED: frondb_wait = 2;

fn wait(wait: frondb_wait) -> Result<Wait> {
    match wait {
        FRONDB_WAIT => Ok(Wait::Timeout),
        FRONDB_NO_WAIT => Ok(Wait::NoWait),
        FRONDB_SKIP_LOCKED => Ok(Wait::SkipLocked),
        other => Err(Error::invalid(format!("unknown frondb_wait {other}"))),
    }
}

fn bad_lock(lock: frondb_lock) -> Error {
    Error::invalid(format!("unknown frondb_lock {lock}"))
}

// --- Options ---

/// Makes options with the defaults: repeatable read, lock waits of up to 10 s, and a commit that
/// waits for the disk. Free them with frondb_txn_options_free().
///
/// Threads: any. One thread at a time may set options; any number of threads may begin transactions
/// with them.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_options_new(
    options: Option<&mut MaybeUninit<*mut frondb_txn_options>>,
) -> *mut frondb_error {
    create(options, || Ok(TransactionOptions::new()))
}

/// Frees options; NULL is ignored.
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

/// What transactions see of other transactions' writes. Default FRONDB_REPEATABLE_READ.
///
/// Threads: one at a time.
///
/// Errors: FRONDB_INVALID for an unknown level.
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
            other => return Err(Error::invalid(format!("unknown frondb_isolation {other}"))),
        };
        Ok(options.isolation(isolation))
    })
}

/// Whether a write to a row that was changed since the transaction's snapshot fails with
/// FRONDB_CONFLICT. Default false. Only for repeatable read; at other levels frondb_db_begin()
/// fails with FRONDB_INVALID.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_options_set_snapshot_isolation(
    options: *mut frondb_txn_options,
    on: bool,
) -> *mut frondb_error {
    set(options, |options| Ok(options.snapshot_isolation(on)))
}

/// How long to wait for each lock before the call fails with FRONDB_LOCK_TIMEOUT, milliseconds.
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

/// What the commit waits for. Default: the durability of the handle that begins the transaction
/// (frondb_db_with_commit_sync()), which is FRONDB_SYNC unless set otherwise.
///
/// Threads: one at a time.
///
/// Errors: FRONDB_INVALID for an unknown durability.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_options_set_durability(
    options: *mut frondb_txn_options,
    waits_for: frondb_durability,
) -> *mut frondb_error {
    set(options, |options| Ok(options.durability(durability(waits_for)?)))
}

// --- The transaction itself ---

/// Frees a transaction, and rolls it back if it has not ended; NULL is ignored.
///
/// Threads: any; FRONDB_BUSY, and nothing is freed, while another thread is in a call with the
/// transaction or with one of its cursors (frondb_txn_cancel() ends its wait).
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_free(txn: *mut frondb_txn) -> frondb_kind {
    free_if::<TransactionObject>(txn, |txn| {
        // A cursor's call does not lock this handle. Roll back here, so that no such call runs in
        // between.
        if txn.txn.try_abandon() { Ok(()) } else { Err(handle::busy::<TransactionObject>()) }
    })
}

/// The transaction's number, ascending in the order in which transactions begin. frondb_lock_info
/// names transactions by it.
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

/// Begins a statement. At read committed, all plain reads until the next
/// frondb_txn_begin_statement() see one state; without it each call and each cursor is a statement
/// of its own. A pending frondb_txn_cancel() is dropped, because it was meant for the previous
/// statement.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if the transaction has ended; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_begin_statement(txn: *mut frondb_txn) -> *mut frondb_error {
    with(txn, |txn| txn.txn.begin_statement())
}

/// Ends a statement. At read committed the state that its reads saw is released, even if the next
/// frondb_txn_begin_statement() comes late.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if the transaction has ended; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_end_statement(txn: *mut frondb_txn) -> *mut frondb_error {
    with(txn, |txn| txn.txn.end_statement())
}

/// Changes how long later calls wait for each lock, milliseconds.
/// frondb_txn_options_set_lock_timeout_millis() sets the initial value.
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

/// Changes what the prepare and the commit wait for. Also allowed on a prepared transaction, for
/// frondb_txn_commit(). frondb_txn_options_set_durability() sets the initial value.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if the transaction has ended, or for an unknown durability;
/// FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_set_durability(
    txn: *mut frondb_txn,
    waits_for: frondb_durability,
) -> *mut frondb_error {
    with(txn, |txn| txn.txn.set_durability(durability(waits_for)?))
}

/// Takes the snapshot of a repeatable-read transaction now; without this call the first read takes
/// it.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if the transaction has ended; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_take_snapshot(txn: *mut frondb_txn) -> *mut frondb_error {
    with(txn, |txn| txn.txn.take_snapshot())
}

/// Cancels the transaction's wait: a wait for a lock fails with FRONDB_CANCELLED, and so does a
/// commit or prepare that waits for background work to make room; the commit or prepare then has
/// not happened. If the transaction is not waiting, its next wait fails, unless
/// frondb_txn_begin_statement() or frondb_txn_forget_cancel() comes first. This call never waits.
///
/// Threads: any; meant for another thread than the waiting one.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_cancel(txn: *mut frondb_txn) -> *mut frondb_error {
    with(txn, |txn| {
        txn.txn.canceller().cancel();
        Ok(())
    })
}

/// Drops a pending frondb_txn_cancel(), as frondb_txn_begin_statement() does. Meant for the time
/// before a commit that is a statement of its own.
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

/// Puts the value of a key into a buffer, including the transaction's own writes; `found` tells
/// whether the key has one. With a lock it is the newest value, independent of the snapshot, and
/// the key is locked even if it has no value.
///
/// Threads: any for the transaction, calls take turns; one at a time for the buffer.
///
/// Errors: FRONDB_INVALID if the transaction has ended, or for a tree of another database;
/// FRONDB_NOT_FOUND if the tree was dropped; FRONDB_CORRUPTION, FRONDB_IO, FRONDB_CLOSED. If it
/// locks: FRONDB_LOCK_TIMEOUT; FRONDB_DEADLOCK: the transaction was rolled back, try it again;
/// FRONDB_BUSY if the key is locked and `wait_for` is not FRONDB_WAIT; FRONDB_CANCELLED;
/// FRONDB_CONFLICT under snapshot isolation.
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

/// Copies as much of a key's value to `value` as fits into `capacity`; `value_len` is the full
/// length. Otherwise as frondb_txn_get().
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

/// Reads several keys as of one moment, without locks (at serializable with shared ones);
/// otherwise as frondb_tree_multi_get().
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

/// Releases the lock that the last locking frondb_txn_get() took on the key, for a caller that
/// rejects the row it has read. Does nothing unless the level is read committed or below, the
/// transaction had no lock on the key before, and it has not locked or written anything since.
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

/// Whether another transaction has committed a change to a key since the snapshot of this
/// transaction's plain reads. If so `is_outdated` is set, `found` tells whether the key had a value
/// at the snapshot, and `buffer` has that value. If not, plain reads see the newest commit.
/// `is_outdated` is also false if there is no snapshot, if frondb_txn_overlay_put() or
/// frondb_txn_overlay_delete() has set what plain reads see of the key, and under snapshot
/// isolation. The transaction's own writes do not count.
///
/// For callers that keep other trees derived from the value, such as indexes, and are about to
/// write a key that they have locked. Their writes to the derived trees lead from the newest value
/// to the new one; plain reads of this transaction also need the step from the value at the
/// snapshot, which frondb_txn_overlay_put() and frondb_txn_overlay_delete() provide. Costs next to
/// nothing while no transaction has committed to the tree since the snapshot.
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

/// Makes later plain reads see this value of a key instead of that at their snapshot, unless the
/// transaction writes the key itself. The value is neither locked nor committed, and locking reads
/// do not see it. It lasts as long as the snapshot; rolling back to a savepoint undoes it.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if plain reads have no snapshot yet, at serializable, if the transaction
/// has ended, for a key or value that is too long, or for a tree of another database;
/// FRONDB_NOT_FOUND if the tree was dropped; FRONDB_NO_SPACE if a large transaction cannot spill
/// to disk; FRONDB_IO, FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_overlay_put(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    key: frondb_slice,
    value: frondb_slice,
) -> *mut frondb_error {
    with_tree(txn, tree, |txn, tree| txn.overlay_put(tree, key.bytes()?, value.bytes()?))
}

/// Makes later plain reads see no value of a key; see frondb_txn_overlay_put().
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

/// Locks all keys from `lo` (inclusive) to `hi` (exclusive; NULL: to the end), existing or not,
/// until the transaction ends. An empty `lo` with a NULL `hi` locks the whole tree.
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

/// Whether a key has a value. Reads and locks as frondb_txn_get() with FRONDB_LOCK_NONE.
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

/// A cursor over the keys of a tree from `lo` (inclusive) to `hi` (exclusive; NULL: to the end),
/// including the transaction's own writes as of the cursor's last seek. With a lock it shows the
/// newest data. It locks each entry before it shows it, and at repeatable read and serializable
/// also the gap before the entry. Free it with frondb_cursor_free(), before or after the
/// transaction's end, after which every move fails.
///
/// Threads: any for the transaction, calls take turns. One thread at a time may use the cursor.
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
/// Errors: FRONDB_INVALID if the transaction has ended, for a key or value that is too long, or
/// for a tree of another database; FRONDB_NOT_FOUND if the tree was dropped; FRONDB_LOCK_TIMEOUT;
/// FRONDB_DEADLOCK: the transaction was rolled back, try it again; FRONDB_CONFLICT under snapshot
/// isolation; FRONDB_CANCELLED; FRONDB_NO_SPACE if a large transaction cannot spill to disk;
/// FRONDB_IO, FRONDB_CLOSED. Except for FRONDB_DEADLOCK the transaction's writes are as before the
/// call.
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
/// Errors: FRONDB_EXISTS if the key has a value; the key stays locked. Otherwise as
/// frondb_txn_put().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_insert(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    key: frondb_slice,
    value: frondb_slice,
) -> *mut frondb_error {
    with_tree(txn, tree, |txn, tree| txn.insert(tree, key.bytes()?, value.bytes()?))
}

/// Removes a key; it need not exist.
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

/// Removes all keys from `lo` (inclusive) to `hi` (exclusive; NULL: to the end). Locks the whole
/// range.
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

/// Applies the tree's update function to a key without reading it.
///
/// Threads: any; calls take turns.
///
/// Errors: as frondb_txn_put(); FRONDB_INVALID if the tree has no update function or it is not
/// registered.
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

/// Numbers savepoints for the whole process, so that no transaction accepts a savepoint of
/// another.
static SAVEPOINTS: ProcessCounter = ProcessCounter::new(1);

/// The index of a savepoint in the list of those set.
fn find_savepoint(savepoints: &[(u64, Savepoint)], number: u64) -> Result<usize> {
    savepoints.binary_search_by_key(&number, |(number, _)| *number).map_err(|_| {
        let message = format!("savepoint {number} is not set in this transaction, or was removed");
        Error::new(ErrorKind::NotFound, message)
    })
}

/// Sets a savepoint and returns its number, which is never 0 and is unique in the process.
/// Savepoints nest. They need no freeing; the end of the transaction removes them.
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
        // Holds the lock for the whole step, so that numbers and savepoints have the same order.
        let mut savepoints = txn.savepoints.lock();
        let set = txn.txn.set_savepoint()?;
        let number = SAVEPOINTS.next();
        savepoints.push((number, set));
        place.write(number);
        Ok(())
    })
}

/// Undoes all writes since the savepoint was set. The savepoint stays set, and later ones are
/// removed. Locks are kept.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_NOT_FOUND if the savepoint is no longer set, or is another transaction's;
/// FRONDB_INVALID if the transaction has ended; FRONDB_NO_SPACE or FRONDB_IO if spilled writes of
/// a large transaction cannot be rewritten: the call may be repeated.
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

/// Removes a savepoint and later ones, and keeps the writes.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_NOT_FOUND if the savepoint is no longer set, or is another transaction's;
/// FRONDB_INVALID if the transaction has ended.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_release_savepoint(
    txn: *mut frondb_txn,
    savepoint: u64,
) -> *mut frondb_error {
    end_savepoint(txn, savepoint, false)
}

/// Removes only this savepoint: later ones stay set, and the writes are kept.
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

/// Removes a savepoint: alone, or with later ones.
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

// --- Commit and rollback ---

/// Commits: all writes take effect atomically. Returns when the commit is as durable as the
/// transaction asks. Other transactions see the writes and get the locks before the wait for the
/// disk.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_NO_SPACE, or FRONDB_NOT_FOUND if a tree was dropped: nothing has changed, and the
/// transaction stays active, so the call can be repeated, or the transaction rolled back.
/// FRONDB_POISONED, FRONDB_IO, FRONDB_CLOSED; FRONDB_INVALID if the transaction has ended.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_commit(txn: *mut frondb_txn) -> *mut frondb_error {
    with(txn, |txn| txn.txn.commit())
}

/// The first half of frondb_txn_commit(): everything except the wait for the disk, which is
/// frondb_committing_wait(). A caller that makes the first halves of several transactions one
/// after the other decides their order, and one sync serves all of them.
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

/// The second half of a commit: waits until the commit is as durable as the transaction asks. Frees
/// `committing`, even if the call fails.
///
/// Threads: any, not only the thread of the first half.
///
/// Errors: FRONDB_POISONED if the sync failed: the commit may be lost; close the database and open
/// it again.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_committing_wait(committing: *mut frondb_committing) -> *mut frondb_error {
    call(|| handle::remove::<CommittingObject>(committing)?.0.wait())
}

/// Frees the second half of a commit without waiting: the commit has happened, and becomes durable
/// with a later one or with frondb_db_sync(). NULL is ignored.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_committing_free(committing: *mut frondb_committing) -> frondb_kind {
    free::<CommittingObject>(committing)
}

/// Undoes all writes and releases all locks.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if the transaction was committed or rolled back before.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_rollback(txn: *mut frondb_txn) -> *mut frondb_error {
    with(txn, |txn| txn.txn.rollback())
}
