//! Writes all entries of a row, such as its primary key and index entries, in one call of a
//! transaction; they are applied one after the other.

use std::mem::MaybeUninit;

use frondb::{Error, ErrorKind, Result, Transaction, Tree};

use crate::call::call;
use crate::error::frondb_error;
use crate::handle::{self, Shared};
use crate::slice::{Array, frondb_slice};
use crate::transaction::{TransactionObject, frondb_txn};
use crate::tree::frondb_tree;

/// What a frondb_write does to its key.
pub type frondb_operation = u32;
/// Sets the value of the key, as frondb_txn_put().
pub const FRONDB_WRITE_PUT: frondb_operation = 0;
/// Sets the value of a key that has none, as frondb_txn_insert(): FRONDB_EXISTS if it has one.
pub const FRONDB_WRITE_INSERT: frondb_operation = 1;
/// Removes the key, which need not exist, as frondb_txn_delete(). The value is ignored.
pub const FRONDB_WRITE_DELETE: frondb_operation = 2;
/// Applies the tree's update function with the value as its operand, as frondb_txn_update().
pub const FRONDB_WRITE_UPDATE: frondb_operation = 3;

/// Flags of a frondb_write, combined with `|`; 0 for none.
pub type frondb_write_flags = u32;
/// Checks whether the key is outdated; see frondb_txn_get_outdated().
pub const FRONDB_WRITE_CHECK_OUTDATED: frondb_write_flags = 1;
/// For FRONDB_WRITE_INSERT, if the caller does not write keys that have a value: after
/// FRONDB_EXISTS the key is locked in shared mode only, so other transactions can read it with a
/// shared lock, and their own inserts with this flag can also find that it exists. Without this
/// flag the key is locked exclusively.
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
    /// The operation.
    operation: frondb_operation,
    /// The flags.
    flags: frondb_write_flags,
}

/// An array of writes.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Writes(Array<frondb_write>);

/// Applies `count` writes in order until one fails. Meant for the entries that one row has in
/// several trees. Each write locks its key and behaves as the single call of its operation; a
/// write sees what earlier writes of the same call wrote.
///
/// With `all_or_none` the writes before the one that failed are undone, for a caller that continues
/// the transaction, for example after FRONDB_EXISTS; the cost is a savepoint, 70 to 100 ns. Without
/// it they remain, for a caller that rolls back anyway. The locks that the call took stay until the
/// transaction ends, even after an error, except locks of keys whose insert with
/// FRONDB_WRITE_SHARE_EXISTING was undone.
///
/// After an error `failed_at` is the index of the write that failed, or `count` if the error did
/// not come from a write.
///
/// `any_outdated` is set if, since the snapshot of this transaction's plain reads, another
/// transaction has committed a change to the key of a write that has FRONDB_WRITE_CHECK_OUTDATED.
/// frondb_txn_get_outdated() then returns for each key whether it is outdated, and its value at the
/// snapshot. `failed_at` and `any_outdated` may be NULL.
///
/// Threads: any. Calls of other threads with the same transaction may run between two writes; if a
/// write fails and `all_or_none` is set, what those calls wrote in the meantime is undone too.
///
/// Errors: as the single calls, and after FRONDB_DEADLOCK the transaction was rolled back.
/// FRONDB_INVALID also for an unknown operation or flag. If writes cannot be undone, the error is
/// that of frondb_txn_roll_back_to(), and some of them remain: roll the transaction back.
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

/// Applies all writes or none. `done` is how many were applied when one failed. Returns whether a
/// checked key is outdated.
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

/// Releases the locks of inserted keys after their writes were undone; `locked` as in [`apply`].
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
/// insert is undone. A row rarely has more unique keys than `locked` has bits; the locks of further
/// keys are only held longer.
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
        // The write has locked the key, so the answer stays true.
        if checks_outdated && !any_outdated {
            any_outdated = txn.outdated(tree, key)?.is_some();
        }
        *done += 1;
    }
    Ok(any_outdated)
}

/// Calls `put` for each write of an array; fails for other operations than put and insert.
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

/// The tree of a write, looked up once for adjacent writes to the same tree.
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
