//! Locks of plain batches: none while no transaction has locks on the trees they write, else those
//! that a transaction would take.
//!
//! The look and the commit are one step for who takes a first lock on a tree: it waits for the
//! batch that has looked and not committed yet ([`frondb_locks::Unlocked`]).

use frondb_core::Error;
use frondb_core::Result;
use frondb_core::codec::Reader;
use frondb_locks::{LockMode, LockWait, Locker, Unlocked};

use crate::context::Transactions;
use crate::options::LOCK_TIMEOUT;
use frondb_commit::Batch;
use frondb_records::{Op, decode_op};

/// Held until a batch is committed.
pub struct BatchLocks<'a> {
    /// Of trees without locks.
    _unlocked: Vec<Unlocked<'a>>,
    /// Has what it locked of the others.
    _locker: Option<Locker>,
}

impl<'a> BatchLocks<'a> {
    /// Locks what the batch writes, where somebody may have locks.
    ///
    /// # Errors
    /// `LockTimeout`, `Deadlock`: nothing was written, the batch may be written again.
    pub fn take(env: &Transactions, batch: &'a Batch) -> Result<Self> {
        let mut unlocked = Vec::with_capacity(batch.sections().len());
        let mut locker: Option<Locker> = None;
        for section in batch.sections().iter().filter(|section| section.count > 0) {
            let tree = section.handle.core();
            match tree.locks.begin_unlocked() {
                Some(guard) if locker.is_none() => unlocked.push(guard),
                _ => {
                    // Not while others wait for a guard: they could be what this one waits for.
                    unlocked.clear();
                    let id = || env.ids.next_txn();
                    locker.get_or_insert_with(|| env.locks.locker(id()));
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
        let locks = &tree.core().locks;
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
