//! Writes all entries of a row, such as its primary key and its index entries, with one call. The
//! writes are applied one after the other.

use std::mem::MaybeUninit;

use frondb::{Error, ErrorKind, Result, Transaction, Tree};

use crate::call::call;
use crate::error::frondb_error;
use crate::handle::{self, Shared};
use crate::slice::{Array, frondb_slice};
use crate::transaction::{TransactionObject, frondb_txn};
use crate::tree::frondb_tree;

/// The operation of a frondb_write.
pub type frondb_operation = u32;
/// Sets the value of the key, as frondb_txn_put().
pub const FRONDB_WRITE_PUT: frondb_operation = 0;
/// Sets the value of a key that has none, as frondb_txn_insert(); FRONDB_EXISTS if the key has a
/// value.
pub const FRONDB_WRITE_INSERT: frondb_operation = 1;
/// Removes the key, which need not exist, as frondb_txn_delete(). The value is ignored.
pub const FRONDB_WRITE_DELETE: frondb_operation = 2;
/// Writes an update of the key with the value as its operand, as frondb_txn_update().
pub const FRONDB_WRITE_UPDATE: frondb_operation = 3;

/// Flags of a frondb_write, combined with `|`; 0 for none.
pub type frondb_write_flags = u32;
/// Checks whether the key is outdated; see frondb_txn_get_outdated().
pub const FRONDB_WRITE_CHECK_OUTDATED: frondb_write_flags = 1;
/// For FRONDB_WRITE_INSERT: if the key has a value, locks the key in shared mode instead of
/// exclusively. Then other transactions can read the key with a shared lock, and their inserts with
/// this flag fail with FRONDB_EXISTS without a wait. For callers that do not write the key after
/// FRONDB_EXISTS.
pub const FRONDB_WRITE_SHARE_EXISTING: frondb_write_flags = 2;

/// One write of frondb_txn_write_entries().
#[repr(C)]
#[derive(Clone, Copy)]
pub struct frondb_write {
    /// The tree to write to.
    tree: *mut frondb_tree,
    /// The key.
    key: frondb_slice,
    /// The value, or the operand of an update function.
    value: frondb_slice,
    /// FRONDB_WRITE_PUT, FRONDB_WRITE_INSERT, FRONDB_WRITE_DELETE or FRONDB_WRITE_UPDATE.
    operation: frondb_operation,
    /// FRONDB_WRITE_CHECK_OUTDATED and FRONDB_WRITE_SHARE_EXISTING, combined with `|`; 0 for none.
    flags: frondb_write_flags,
}

/// An array of writes.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Writes(Array<frondb_write>);

/// Applies `count` writes in order until one fails. Meant for the entries that one row has in
/// several trees. Each write locks its key and behaves like the function of its operation, for
/// example frondb_txn_put(). A write sees the earlier writes of the same call.
///
/// With `all_or_none` a failed write also undoes the writes before it, for a caller that continues
/// the transaction, for example after FRONDB_EXISTS; this costs a savepoint, 70 to 100 ns. Without
/// `all_or_none` the earlier writes remain, for a caller that then rolls back the transaction. The
/// locks that the call took stay until the transaction ends, even after an error, except the locks
/// of keys, among the first 64 writes, whose insert with FRONDB_WRITE_SHARE_EXISTING was undone.
///
/// After an error `failed_at` is the index of the write that failed, or `count` if no single write
/// caused the error.
///
/// `any_outdated` is set to true if a write with FRONDB_WRITE_CHECK_OUTDATED has an outdated key:
/// another transaction has committed a change to the key since the snapshot of the plain reads of
/// this transaction. frondb_txn_get_outdated() then returns for each key whether it is outdated,
/// and its value at the snapshot. `failed_at` and `any_outdated` may be NULL.
///
/// Threads: any. Calls of other threads with the same transaction may run between two writes; if a
/// write fails and `all_or_none` is set, what those calls wrote in the meantime is undone too.
///
/// Errors: as the functions for the single operations; after FRONDB_DEADLOCK the transaction was
/// rolled back. FRONDB_INVALID also for an unknown operation or flag. If the call cannot undo the
/// writes, it returns the error of frondb_txn_roll_back_to(), and some writes remain: roll the
/// transaction back.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_write_entries(
    txn: *mut frondb_txn,
    writes: Writes,
    count: usize,
    all_or_none: bool,
    mut failed_at: Option<&mut MaybeUninit<usize>>,
    mut any_outdated: Option<&mut MaybeUninit<bool>>,
) -> *mut frondb_error {
    if let Some(place) = &mut failed_at {
        place.write(count);
    }
    if let Some(place) = &mut any_outdated {
        place.write(false);
    }
    call(|| {
        let txn = handle::shared::<TransactionObject>(txn)?;
        let mut done = 0;
        let (txn, writes) = (txn.txn(), writes.0.items(count)?);
        let applied = match all_or_none {
            true => atomically(txn, writes, &mut done),
            false => apply(txn, writes, &mut done, &mut 0),
        };
        if let (Err(_), Some(place)) = (&applied, failed_at) {
            place.write(done);
        }
        if applied? && let Some(place) = any_outdated {
            place.write(true);
        }
        Ok(())
    })
}

/// Applies all writes or none. If a write fails, `done` is the number of writes before it; if
/// setting the savepoint fails, the number of all writes. Returns whether a checked key is
/// outdated.
fn atomically(txn: &Transaction, writes: &[frondb_write], done: &mut usize) -> Result<bool> {
    // A single write is atomic by itself, unless the check after it can fail.
    let is_checked = |write: &frondb_write| write.flags & FRONDB_WRITE_CHECK_OUTDATED != 0;
    if writes.len() < 2 && !writes.iter().any(is_checked) {
        return apply(txn, writes, done, &mut 0);
    }
    let savepoint = txn.set_savepoint().inspect_err(|_| *done = writes.len())?;
    let mut locked = 0;
    let applied = apply(txn, writes, done, &mut locked);
    match &applied {
        // The transaction was rolled back, and its savepoints were removed.
        Err(error) if error.kind() == ErrorKind::Deadlock => return applied,
        Err(_) => {
            txn.roll_back_to(savepoint)?;
            release(txn, writes, locked)?;
        }
        _ => {}
    }
    txn.forget_savepoint(savepoint)?;
    applied
}

/// Releases the locks of inserted keys after their inserts were undone. `locked` as in [`apply`].
fn release(txn: &Transaction, writes: &[frondb_write], locked: u64) -> Result<()> {
    let mut tree = None;
    for (at, write) in writes.iter().take(u64::BITS as usize).enumerate() {
        if locked & (1 << at) != 0 {
            txn.release_undone(tree_of(&mut tree, write)?, write.key.bytes()?)?;
        }
    }
    Ok(())
}

/// Applies writes until one fails. `done` and the result are as for [`atomically`]. Bit n of
/// `locked` is set if write n has inserted a key under a new lock that may be released if the
/// insert is undone. Writes after the first 64 have no bit: their locks stay until the transaction
/// ends. A row rarely has so many unique keys.
fn apply(
    txn: &Transaction,
    writes: &[frondb_write],
    done: &mut usize,
    locked: &mut u64,
) -> Result<bool> {
    let mut tree = None;
    let mut any_outdated = false;
    for write in writes {
        let tree = tree_of(&mut tree, write)?;
        let (key, checks_outdated) = (write.key.bytes()?, write.checks_outdated()?);
        if write.apply(txn, tree, key)? && *done < u64::BITS as usize {
            *locked |= 1 << *done;
        }
        // The write has locked the key, so no commit can change this result.
        if checks_outdated && !any_outdated {
            any_outdated = txn.outdated(tree, key)?.is_some();
        }
        *done += 1;
    }
    Ok(any_outdated)
}

/// Calls `put` for each write of an array; `Invalid` for operations other than put and insert.
pub(crate) fn each_value(
    writes: Writes,
    count: usize,
    mut put: impl FnMut(&Tree, &[u8], &[u8]) -> Result<()>,
) -> Result<()> {
    let mut tree = None;
    for write in writes.0.items(count)? {
        if !matches!(write.operation, FRONDB_WRITE_PUT | FRONDB_WRITE_INSERT) {
            let operation = write.operation;
            return Err(Error::invalid(format!("frondb_operation {operation} writes no value")));
        }
        let tree = tree_of(&mut tree, write)?;
        put(tree, write.key.bytes()?, write.value.bytes()?)?;
    }
    Ok(())
}

/// Returns the tree of a write. `last` keeps the handle and the tree of the previous write, so that
/// adjacent writes to one tree cost one lookup.
fn tree_of<'a>(
    last: &'a mut Option<(*mut frondb_tree, Shared<Tree>)>,
    write: &frondb_write,
) -> Result<&'a Tree> {
    if last.as_ref().is_none_or(|(handle, _)| *handle != write.tree) {
        *last = Some((write.tree, handle::shared::<Tree>(write.tree)?));
    }
    match last {
        Some((_, tree)) => Ok(tree),
        None => Err(Error::internal("a tree that was looked up is missing")),
    }
}

impl frondb_write {
    /// Returns whether the write has inserted a key under a new lock that may be released again.
    fn apply(&self, txn: &Transaction, tree: &Tree, key: &[u8]) -> Result<bool> {
        match self.operation {
            FRONDB_WRITE_INSERT if self.flags & FRONDB_WRITE_SHARE_EXISTING != 0 => {
                return txn.insert_or_share(tree, key, self.value.bytes()?);
            }
            FRONDB_WRITE_PUT => txn.put(tree, key, self.value.bytes()?),
            FRONDB_WRITE_INSERT => txn.insert(tree, key, self.value.bytes()?),
            FRONDB_WRITE_DELETE => txn.delete(tree, key),
            FRONDB_WRITE_UPDATE => txn.update(tree, key, self.value.bytes()?),
            other => Err(Error::invalid(format!("unknown frondb_operation {other}"))),
        }?;
        Ok(false)
    }

    fn checks_outdated(&self) -> Result<bool> {
        let known = match self.operation {
            FRONDB_WRITE_INSERT => FRONDB_WRITE_CHECK_OUTDATED | FRONDB_WRITE_SHARE_EXISTING,
            _ => FRONDB_WRITE_CHECK_OUTDATED,
        };
        match self.flags & !known {
            0 => Ok(self.flags & FRONDB_WRITE_CHECK_OUTDATED != 0),
            _ => {
                let flags = self.flags;
                Err(Error::invalid(format!("unknown frondb_write_flags {flags:#x}")))
            }
        }
    }
}
