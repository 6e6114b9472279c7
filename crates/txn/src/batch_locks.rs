//! [`BatchLocks`]: locks of plain batches. A batch takes no locks if no transaction has locks on
//! the trees that the batch writes; otherwise it takes the locks that a transaction would take
//! (rule 21).
//!
//! The check for locks and the commit of the batch are atomic for transactions: a transaction that
//! takes the first lock on a tree waits for the batches that have checked the tree and not
//! committed yet ([`frondb_locks::Unlocked`]).

use frondb_commit::Batch;
use frondb_core::codec::Reader;
use frondb_core::{Error, Result};
use frondb_locks::{LockMode, LockWait, Locker, Unlocked};
use frondb_records::{Op, decode_op};

use crate::context::Transactions;
use crate::options::LOCK_TIMEOUT;

/// The locks of a batch, held until it is committed.
pub struct BatchLocks<'a> {
    /// Guards of all trees of the batch if no transaction has locks on them; otherwise empty.
    _unlocked: Vec<Unlocked<'a>>,
    /// The row and range locks in all trees of the batch, if a transaction has locks on one of the
    /// trees.
    _locker: Option<Locker>,
}

impl<'a> BatchLocks<'a> {
    /// Locks the keys and ranges that the batch writes, if a transaction may have locks on the
    /// batch's trees.
    ///
    /// # Errors
    /// `LockTimeout`, `Deadlock`, `TooManyLocks`: nothing has changed, the caller may retry the
    /// batch.
    pub fn take(txns: &Transactions, batch: &'a Batch) -> Result<Self> {
        let mut unlocked = Vec::with_capacity(batch.sections().len());
        let mut locker: Option<Locker> = None;
        for section in batch.sections().iter().filter(|section| section.count > 0) {
            let tree = &section.handle;
            match tree.locks().begin_unlocked() {
                Some(guard) if locker.is_none() => unlocked.push(guard),
                _ => {
                    // Release the guards first: this batch may wait for a transaction that itself
                    // waits for one of the guards.
                    unlocked.clear();
                    let id = || txns.ids.next_txn();
                    locker.get_or_insert_with(|| txns.locks.locker(id()));
                }
            }
        }
        if let Some(locker) = &mut locker {
            lock_all(locker, batch)?;
        }
        Ok(Self { _unlocked: unlocked, _locker: locker })
    }
}

fn lock_all(locker: &mut Locker, batch: &Batch) -> Result<()> {
    let wait = LockWait::Upto(LOCK_TIMEOUT);
    for section in batch.sections() {
        let tree = &section.handle;
        let named = |error: Error| error.context(format_args!("tree {:?}", tree.name()));
        let locks = tree.locks();
        let mut input = Reader::new(&section.bytes);
        while !input.is_empty() {
            let op =
                decode_op(&mut input).map_err(|_| Error::internal("a batch cannot be decoded"))?;
            match op {
                Op::Point { key, .. } => {
                    locker.lock_row(locks, key, LockMode::Exclusive, wait).map_err(named)?;
                }
                Op::RangeDelete { lo, hi } => {
                    locker.lock_range(locks, lo, hi, LockMode::Exclusive, wait).map_err(named)?;
                }
            }
        }
    }
    Ok(())
}
