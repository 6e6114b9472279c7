//! A transaction: private writes, locks and a snapshot over any number of trees.
//!
//! ```text
//!  this file      the transaction, its phases, its statements and snapshots
//!  reads.rs       gets: own writes over committed data, with or without locks
//!  range.rs       iterators
//!  writes.rs      puts and deletes: lock, check, add to the write set
//!  bulk.rs        statements that write many entries to empty trees
//!  locking.rs     row locks
//!  charge.rs      the memory of the write set
//!  savepoints.rs  savepoints
//!  cursor.rs      ordered reading, plain and locking
//!  kept.rs        the last cursor, from which the next may continue (fast queues)
//!  keep.rs        keeps that cursor, and takes it back for the next one
//!  overlay.rs     entries that plain reads see instead of the snapshot's, so that indexes match
//!                 rows that this transaction has overwritten
//!  end.rs         commit, prepare and rollback
//! ```
//!
//! docs/design/transactions.md says what each isolation level sees and locks.
//!
//! A mutex protects the state of each transaction. A call holds the mutex while it waits for a lock
//! and while it commits, so calls from several threads run one after the other. A cancellation does
//! not take the mutex.

mod bulk;
mod charge;
mod cursor;
mod end;
mod keep;
mod kept;
mod locking;
mod overlay;
mod range;
mod reads;
mod savepoints;
mod writes;

use std::time::Duration;

use frondb_commit::Durability;
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use frondb_core::sync::{Arc, Mutex, MutexGuard};
use frondb_core::{Error, Result, SeqNo, TreeId};
use frondb_locks::{Canceller, Locker};
use frondb_tree::{Snapshot, TreeCore};
use frondb_writeset::WriteSet;

pub use bulk::BulkStatement;
pub use cursor::TransactionCursor;
pub use end::Committing;
pub use range::TransactionRange;
pub use savepoints::Savepoint;

use self::charge::Charge;
use self::kept::Kept;
use crate::context::{KeepOpen, Transactions};
use crate::options::{Isolation, TransactionOptions};
use crate::pool::PooledParts;
use crate::registry::Entry;

/// Reads and writes over any number of trees that take effect atomically.
///
/// Until [`commit`](Self::commit) only the transaction itself sees its writes. Each written key
/// stays locked until the transaction ends. The [`Isolation`](crate::Isolation) determines which
/// commits of other transactions the reads see, and what the reads lock. A transaction may have any
/// size: large ones write a part of their writes to disk before the commit, which stays short.
///
/// Any thread may use a transaction; calls of several threads run one after the other. A dropped
/// transaction is rolled back. A deadlock victim is rolled back immediately, and every later call
/// but [`rollback`](Self::rollback) fails.
pub struct Transaction {
    core: Arc<Core>,
}

/// The state that a transaction and its cursors share.
pub(crate) struct Core {
    txns: Arc<Transactions>,
    _open: KeepOpen,
    options: TransactionOptions,
    /// The initial durability; a call may change it for the current transaction.
    durability: Durability,
    id: u64,
    canceller: Canceller,
    state: Mutex<TransactionState>,
    /// Whether the transaction has ended or is prepared. Cursors read this flag at each step,
    /// because the phase is behind the mutex of the state.
    ended: AtomicBool,
    /// Whether the transaction was prepared. If so, another thread may free the large values at
    /// which its cursors point.
    was_prepared: AtomicBool,
    /// Number of rollbacks to savepoints.
    rollbacks: AtomicU64,
}

/// The phase of a transaction.
#[derive(Clone, Debug)]
enum Phase {
    Active,
    /// Prepared under this name. Only a commit or a rollback may follow.
    Prepared(Box<[u8]>),
    Committed,
    RolledBack,
    /// Rolled back by the engine, with the reason.
    Failed(Error),
}

impl Phase {
    /// Whether the transaction has ended. A failed transaction has not: its caller must still
    /// acknowledge the rollback.
    fn is_ended(&self) -> bool {
        matches!(self, Self::Committed | Self::RolledBack)
    }
}

struct TransactionState {
    phase: Phase,
    writes: WriteSet,
    /// Entries that plain reads see instead of the snapshot's entries: see `overlay.rs`.
    overlay: Option<Box<Overlay>>,
    /// All trees to which the transaction wrote, or for which it wrote to an overlay.
    trees: Vec<Arc<TreeCore>>,
    locker: Locker,
    /// The snapshot of repeatable reads, taken at the first plain read or by `take_snapshot`.
    snapshot: Option<Snapshot>,
    /// The snapshot of the current statement at read committed; `None` outside of a statement.
    statement: Option<Snapshot>,
    /// The row that the last locking get locked, if `unlock` may release its lock.
    last_read_lock: LastReadLock,
    /// The last cursor, if the next one may continue from it: see `kept.rs`.
    kept: Option<Box<Kept>>,
    charge: Charge,
    /// The current lock timeout.
    lock_timeout: Duration,
    /// The durability that the commit waits for.
    durability: Durability,
    /// The transaction's entry in the registry.
    entry: Arc<Entry>,
}

/// An overlay and the snapshot that it corrects.
struct Overlay {
    at: SeqNo,
    writes: WriteSet,
}

/// The row that the last locking get locked, if `unlock` may release its lock. `tree` is `None` if
/// the transaction has since locked or written anything, if it had a lock on the row before the
/// get, or if the isolation level locks gaps.
#[derive(Default)]
struct LastReadLock {
    tree: Option<TreeId>,
    key: Vec<u8>,
}

impl LastReadLock {
    fn set(&mut self, tree: TreeId, key: &[u8]) {
        self.tree = Some(tree);
        self.key.clear();
        self.key.extend_from_slice(key);
    }

    fn is(&self, tree: TreeId, key: &[u8]) -> bool {
        self.tree == Some(tree) && self.key == key
    }
}

impl Transactions {
    /// Begins a transaction, which keeps the database open with `open`. `durability` applies unless
    /// the options name another. A transaction costs almost nothing until it writes or locks.
    ///
    /// # Errors
    /// `Invalid` for `snapshot_isolation` at another level than repeatable read; `Closed`,
    /// `Poisoned`.
    pub fn begin(
        self: &Arc<Self>,
        options: TransactionOptions,
        durability: Durability,
        open: KeepOpen,
    ) -> Result<Transaction> {
        options.check()?;
        let durability = options.durability.unwrap_or(durability);
        let txns = self;
        txns.health.check()?;
        let id = txns.ids.next_txn();
        let PooledParts { locker, writes, trees, entry } = match txns.pool.take() {
            Some(mut parts) => {
                parts.locker.renew(id);
                parts
            }
            None => {
                let (writes, trees) = (WriteSet::new(), Vec::new());
                PooledParts {
                    locker: txns.locks.locker(id),
                    writes,
                    trees,
                    entry: txns.registry.entry(),
                }
            }
        };
        entry.begin(id, txns.reads.now(), Some(options.isolation));
        let canceller = locker.canceller();
        let state = TransactionState {
            phase: Phase::Active,
            writes,
            overlay: None,
            trees,
            locker,
            snapshot: None,
            statement: None,
            last_read_lock: LastReadLock::default(),
            kept: None,
            charge: Charge::default(),
            lock_timeout: options.lock_timeout,
            durability,
            entry,
        };
        let core = Core {
            txns: Arc::clone(self),
            _open: open,
            options,
            durability,
            id,
            canceller,
            state: Mutex::new(state),
            ended: AtomicBool::new(false),
            was_prepared: AtomicBool::new(false),
            rollbacks: AtomicU64::new(0),
        };
        Ok(Transaction { core: Arc::new(core) })
    }
}

impl Transaction {
    /// Begins a new transaction in this handle. The old one must have ended. The new one has the
    /// same options; settings that calls have changed get their initial values again. For callers
    /// of many short transactions: takes about half the time of `Db::begin`. Cursors and cancellers
    /// of the old transaction have no effect on the new one.
    ///
    /// # Errors
    /// `Invalid` if the transaction has not ended; `Poisoned`, `Closed`.
    pub fn begin_next(&mut self) -> Result<()> {
        if !self.core.state.lock().phase.is_ended() {
            return Err(Error::invalid(
                "the transaction has not ended: commit it, or roll it back",
            ));
        }
        let txns = &self.core.txns;
        txns.health.check()?;
        let Some(core) = Arc::get_mut(&mut self.core) else {
            // A cursor still refers to the ended transaction.
            let Core { txns, options, durability, _open, .. } = &*self.core;
            *self = txns.begin(options.clone(), *durability, Arc::clone(_open))?;
            return Ok(());
        };
        core.id = core.txns.ids.next_txn();
        let state = core.state.get_mut();
        state.locker.renew_with(&mut core.canceller, core.id);
        state.entry.begin(core.id, core.txns.reads.now(), Some(core.options.isolation));
        state.phase = Phase::Active;
        state.last_read_lock = LastReadLock::default();
        (state.lock_timeout, state.durability) = (core.options.lock_timeout, core.durability);
        *core.ended.get_mut() = false;
        *core.was_prepared.get_mut() = false;
        *core.rollbacks.get_mut() = 0;
        Ok(())
    }

    /// Returns the transaction's id. Ids ascend in the order in which transactions begin.
    /// `Db::locks` names transactions by this id.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.core.id
    }

    /// Returns a handle with which any thread can cancel a wait of this transaction. The wait fails
    /// with `Cancelled`: a wait for a lock, or a commit that waits for background work, which has
    /// then changed nothing. If the transaction is not waiting, the cancellation stays pending and
    /// its next wait fails. The next [`begin_statement`](Self::begin_statement) drops a pending
    /// cancellation, so a late one does not affect the next statement.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        self.core.canceller.clone()
    }

    /// Drops a pending cancellation ([`canceller`](Self::canceller)), as
    /// [`begin_statement`](Self::begin_statement) does. For a commit that is itself a statement.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended; `Closed`.
    pub fn forget_cancel(&self) -> Result<()> {
        self.core.active()?.locker.forget_cancel();
        Ok(())
    }

    /// Begins a statement. At read committed, all plain reads until the next `begin_statement` or
    /// `end_statement` see the same snapshot; outside of a statement, each call and each cursor has
    /// its own. Drops a pending cancellation ([`canceller`](Self::canceller)), which was meant for
    /// the previous statement.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended; `Closed`.
    pub fn begin_statement(&self) -> Result<()> {
        let mut state = self.core.active()?;
        state.locker.forget_cancel();
        state.kept = None;
        if self.core.isolation().reads_newest() {
            self.core.end_overlay(&mut state);
            state.statement = Some(self.core.txns.snapshot()?);
        }
        Ok(())
    }

    /// Ends a statement. At read committed, releases the statement's snapshot; plain reads before
    /// the next statement see the newest commits.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended; `Closed`.
    pub fn end_statement(&self) -> Result<()> {
        let mut state = self.core.active()?;
        state.kept = None;
        if state.statement.take().is_some() {
            self.core.end_overlay(&mut state);
        }
        Ok(())
    }

    /// Changes how long later calls wait for each lock; [`TransactionOptions::lock_timeout`] is the
    /// initial value. If another thread is in a call on the transaction, waits until that call
    /// ends.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended or is prepared; `Closed`.
    pub fn set_lock_timeout(&self, timeout: Duration) -> Result<()> {
        self.core.active()?.lock_timeout = timeout;
        Ok(())
    }

    /// Changes the durability for which the prepare and the commit wait;
    /// [`TransactionOptions::durability`] is the initial value. Also allowed on a prepared
    /// transaction, for a commit through this handle. If another thread is in a call on the
    /// transaction, waits until that call ends.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended; `Closed`.
    pub fn set_durability(&self, durability: Durability) -> Result<()> {
        let mut state = self.core.state.lock();
        self.core.check_not_ended(&state)?;
        state.durability = durability;
        Ok(())
    }

    /// Takes the snapshot for repeatable reads now instead of at the first read.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended; `Closed`.
    pub fn take_snapshot(&self) -> Result<()> {
        let mut state = self.core.active()?;
        self.core.snapshot(&mut state).map(|_| ())
    }
}

impl Core {
    fn isolation(&self) -> Isolation {
        self.options.isolation
    }

    /// Returns the snapshot since which a row that the transaction writes or locks must not have
    /// changed; `None` without snapshot isolation, and before a plain read has taken the snapshot:
    /// what the transaction has locked until then cannot change any more, so it is as in the
    /// snapshot.
    fn conflicts_since(&self, state: &TransactionState) -> Option<SeqNo> {
        let snapshot = state.snapshot.as_ref().filter(|_| self.options.snapshot_isolation);
        snapshot.map(Snapshot::seq)
    }

    /// Locks and returns the state. Fails if the transaction has ended or is prepared, or if the
    /// database is closed.
    fn active(&self) -> Result<MutexGuard<'_, TransactionState>> {
        let state = self.state.lock();
        if let Phase::Prepared(_) = state.phase {
            let message = "the transaction is prepared: commit it, or roll it back";
            return Err(Error::invalid(message));
        }
        self.check_not_ended(&state)?;
        Ok(state)
    }

    fn check_not_ended(&self, state: &TransactionState) -> Result<()> {
        match &state.phase {
            Phase::Active | Phase::Prepared(_) => self.txns.health.check_open(),
            Phase::Failed(error) => {
                let message = format!("the transaction was rolled back: {}", error.message());
                Err(Error::new(error.kind(), message))
            }
            Phase::Committed => Err(Error::invalid("the transaction was committed")),
            Phase::RolledBack => Err(Error::invalid("the transaction was rolled back")),
        }
    }

    /// Returns the state as [`active`](Self::active) does, after checking that the transaction may
    /// use `tree`.
    fn active_on(&self, tree: &Arc<TreeCore>) -> Result<MutexGuard<'_, TransactionState>> {
        let state = self.active()?;
        tree.check(self.txns.reads.engine)?;
        Ok(state)
    }

    /// Returns the SeqNo of the snapshot for repeatable reads. The first call takes the snapshot.
    fn snapshot(&self, state: &mut TransactionState) -> Result<SeqNo> {
        if let Some(snapshot) = &state.snapshot {
            return Ok(snapshot.seq());
        }
        let snapshot = self.txns.snapshot()?;
        let seq = snapshot.seq();
        state.snapshot = Some(snapshot);
        Ok(seq)
    }

    /// Returns the SeqNo of the snapshot that a plain read uses; `None` for the newest committed
    /// state.
    fn read_at(&self, state: &mut TransactionState) -> Result<Option<SeqNo>> {
        if self.isolation().reads_newest() {
            return Ok(state.statement.as_ref().map(Snapshot::seq));
        }
        self.snapshot(state).map(Some)
    }

    /// Returns the snapshot that a plain read uses, which the caller keeps alive; `None` for the
    /// newest committed state.
    fn read_snapshot(&self, state: &mut TransactionState) -> Result<Option<Snapshot>> {
        if self.isolation().reads_newest() {
            return Ok(state.statement.clone());
        }
        self.snapshot(state)?;
        Ok(state.snapshot.clone())
    }

    /// Discards uncommitted writes and releases locks, snapshots and memory.
    fn end(&self, state: &mut TransactionState, phase: Phase) {
        state.phase = phase;
        self.ended.store(true, Ordering::Release);
        state.entry.end();
        state.kept = None;
        self.end_overlay(state);
        let (txns, has_spilled) = (&self.txns, state.writes.has_spilled());
        if txns.health.check_unpoisoned().is_ok() {
            state.writes.discard(&txns.spill);
        } else {
            // Keep the private runs: the log may have the commit record, and recovery may then need
            // the runs.
            state.writes.hand_over();
        }
        state.charge.clear(txns);
        state.locker.release_all();
        state.snapshot = None;
        state.statement = None;
        state.trees.clear();
        if has_spilled {
            txns.background.gave_back();
        }
    }
}

/// Returns the parameters for writing private runs of a tree.
fn spill_of(trees: &[Arc<TreeCore>], id: TreeId) -> Result<frondb_writeset::TreeSpill> {
    let tree = trees.iter().find(|tree| tree.id == id);
    let tree = tree.ok_or_else(|| {
        Error::internal("a write set names a tree that the transaction does not know")
    })?;
    Ok(frondb_writeset::TreeSpill {
        options: tree.options().trunk.run(1),
        update: tree.update().cloned(),
    })
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.core.ended.load(Ordering::Acquire) {
            return;
        }
        let mut state = self.core.state.lock();
        if matches!(state.phase, Phase::Active) {
            self.core.end(&mut state, Phase::RolledBack);
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        let txns = &self.txns;
        let state = self.state.get_mut();
        // The transaction has ended, or is prepared and has handed over its writes and locks.
        state.trees.clear();
        let locker = std::mem::replace(&mut state.locker, txns.locks.locker(0));
        let (writes, trees) = (std::mem::take(&mut state.writes), std::mem::take(&mut state.trees));
        txns.pool.give(PooledParts { locker, writes, trees, entry: Arc::clone(&state.entry) });
    }
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Transaction({}, {:?})", self.core.id, self.core.isolation())
    }
}
