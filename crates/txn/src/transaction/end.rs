//! The end of a transaction: commit, rollback, and prepare (the first phase of two-phase commit).

use frondb_background::Load;
use frondb_commit::{Attachment, Commit, Durability, Messages};
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_core::{Error, ErrorKind, Lsn, Result, TreeId};
use frondb_space::Extent;
use frondb_tree::TreeCore;

use super::{Core, Phase, Transaction, TransactionState, spill_of};
use crate::context::{KeepOpen, Transactions};
use crate::prepared;
use crate::registry::PreparedHold;

/// A commit or prepare that is in the log but may not be durable yet.
#[must_use = "without a wait it may not be durable"]
pub struct Committing {
    txns: Arc<Transactions>,
    _open: KeepOpen,
    /// The end of the log record; `None` if nothing was logged.
    end: Option<Lsn>,
    durability: Durability,
}

impl Committing {
    /// Waits until the commit or prepare is as durable as the transaction requires
    /// ([`Transaction::set_durability`]).
    ///
    /// # Errors
    /// `Poisoned` if the disk failed; the commit may be lost, and the database must be closed and
    /// opened again. `Closed`.
    pub fn wait(self) -> Result<()> {
        match self.end {
            None => Ok(()),
            Some(end) => self.txns.wait_durable(end, self.durability),
        }
    }
}

impl Transaction {
    /// Commits: all writes take effect atomically. Returns when the commit is as durable as the
    /// transaction requires ([`set_durability`](Self::set_durability)). During the wait for the
    /// disk, other transactions already see the writes and can take the locks.
    ///
    /// # Errors
    /// `NoSpace`; `Cancelled`; `NotFound` if a tree was dropped. After these errors nothing has
    /// changed, and the transaction stays active, for another attempt or a rollback. `Poisoned`,
    /// `Io`, `Closed`; `Invalid` if the transaction has ended.
    pub fn commit(&self) -> Result<()> {
        match self.core.commit()? {
            (None, _) => Ok(()),
            (Some(end), durability) => self.core.txns.wait_durable(end, durability),
        }
    }

    /// Commits like [`commit`](Self::commit), but without the wait for the disk, which
    /// [`Committing::wait`] does. A caller that makes several such calls before it waits decides
    /// the order of the commits, and one sync serves all of them.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_in_order(&self) -> Result<Committing> {
        let (end, durability) = self.core.commit()?;
        Ok(self.core.committing(end, durability))
    }

    /// Prepares the transaction under the name `xid` of 1 to 256 bytes, the first phase of
    /// two-phase commit. The transaction can then be committed or rolled back by this handle or by
    /// name (`Db::commit_prepared`), even after a restart. It keeps its locks (after a restart,
    /// only the locks of its writes) and accepts no more reads or writes. A drop of the handle
    /// leaves it prepared. On return, the prepare is as durable as the transaction requires.
    ///
    /// # Errors
    /// `Exists` if another prepared transaction has this name; `Invalid` for the name, or if the
    /// transaction has ended. Otherwise as [`commit`](Self::commit).
    pub fn prepare(&self, xid: &[u8]) -> Result<()> {
        self.prepare_in_order(xid)?.wait()
    }

    /// Prepares like [`prepare`](Self::prepare), but without the wait for the disk, which
    /// [`Committing::wait`] does. Only after that wait may the caller report to its coordinator
    /// that the transaction is prepared.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare).
    pub fn prepare_in_order(&self, xid: &[u8]) -> Result<Committing> {
        let mut state = self.core.active()?;
        let end = self.core.prepare(&mut state, xid)?;
        Ok(self.core.committing(Some(end), state.durability))
    }

    /// Undoes all writes and releases all locks.
    ///
    /// # Errors
    /// `Invalid` if the transaction was committed or rolled back before; for a prepared
    /// transaction, the errors of `Db::rollback_prepared`.
    pub fn rollback(&self) -> Result<()> {
        if let Some(xid) = self.core.prepared_xid() {
            self.core.txns.roll_back_prepared_of(&xid, Some(self.core.id))?;
            let mut state = self.core.state.lock();
            self.core.end(&mut state, Phase::RolledBack);
            return Ok(());
        }
        let mut state = match self.core.active() {
            // The database is closed. Only this handle has the writes of an active transaction, so
            // undo them here.
            Err(error) if error.kind() == ErrorKind::Closed => self.core.state.lock(),
            Err(error) => return self.core.notice_failure(error),
            Ok(state) => state,
        };
        self.core.end(&mut state, Phase::RolledBack);
        Ok(())
    }
}

impl Transaction {
    /// Rolls the transaction back, unless another thread is in a call on the transaction or on one
    /// of its cursors: then returns `false`, and nothing has changed. Unlike a drop, does not wait
    /// for that call. A transaction that has ended or is prepared stays as it is.
    #[must_use = "it may be in use"]
    pub fn try_abandon(&self) -> bool {
        if self.core.ended.load(Ordering::Acquire) {
            return true;
        }
        let Some(mut state) = self.core.state.try_lock() else { return false };
        if matches!(state.phase, Phase::Active) {
            self.core.end(&mut state, Phase::RolledBack);
        }
        true
    }
}

impl Core {
    fn prepared_xid(&self) -> Option<Box<[u8]>> {
        match &self.state.lock().phase {
            Phase::Prepared(xid) => Some(xid.clone()),
            _ => None,
        }
    }

    /// Commits without the wait for the disk. Returns the end of the log record, if there is one,
    /// and the durability for which the caller must wait.
    fn commit(&self) -> Result<(Option<Lsn>, Durability)> {
        let end = match self.active() {
            Ok(mut state) => {
                let is_empty = state.writes.is_empty();
                let end = if is_empty { None } else { Some(self.log(&mut state)?) };
                self.end(&mut state, Phase::Committed);
                return Ok((end, state.durability));
            }
            Err(error) => match self.prepared_xid() {
                Some(xid) => self.txns.commit_prepared_in_order(&xid, Some(self.id))?,
                None => return Err(error),
            },
        };
        let mut state = self.state.lock();
        self.end(&mut state, Phase::Committed);
        Ok((Some(end), state.durability))
    }

    fn committing(&self, end: Option<Lsn>, durability: Durability) -> Committing {
        Committing { txns: Arc::clone(&self.txns), _open: Arc::clone(&self._open), end, durability }
    }

    fn notice_failure(&self, error: Error) -> Result<()> {
        let mut state = self.state.lock();
        if let Phase::Failed(_) = state.phase {
            state.phase = Phase::RolledBack;
            return Ok(());
        }
        Err(error)
    }

    /// Logs the writes of the transaction and makes them visible. Returns the end of the log
    /// record.
    fn log(&self, state: &mut TransactionState) -> Result<Lsn> {
        let _call = self.txns.calls.begin()?;
        let (txns, begun) = (&self.txns, self.txns.reads.now());
        let Writes { load, attachments, mut values } = self.admit(state)?;
        let sections = sections_of(state.writes.trees(), &state.trees);
        let commit = Commit { txn: self.id, attachments: &attachments, sections: &sections };
        let committed = txns
            .background
            .lending_space(load.frees_space, || txns.committer.commit(commit, &mut values))
            .inspect_err(|_| txns.parts.forget(self.id, &attachments))?;
        let (messages, bytes) = (state.writes.written(), state.writes.written_bytes());
        state.writes.hand_over();
        txns.background.committed(&committed, messages, bytes, begun);
        Ok(committed.end)
    }

    /// Writes the data to which the log record will refer, waits until the commit is admitted, and
    /// records the private runs as pending.
    fn admit(&self, state: &mut TransactionState) -> Result<Writes> {
        let txns = &self.txns;
        let (attachments, values) = seal(txns, state)?;
        let writes = &state.writes;
        let (bytes, messages, frees_space) = (writes.bytes(), writes.count(), writes.frees_space());
        let load = Load { bytes, messages, frees_space, unpaced: false };
        txns.background.admit(load, &|| state.locker.take_cancel())?;
        txns.parts.add(self.id, &attachments)?;
        Ok(Writes { load, attachments, values })
    }

    fn prepare(&self, state: &mut TransactionState, xid: &[u8]) -> Result<Lsn> {
        let _call = self.txns.calls.begin()?;
        let (txns, begun) = (&self.txns, self.txns.reads.now());
        let Writes { attachments, mut values, .. } = self.admit(state)?;
        let sections = sections_of(state.writes.trees(), &state.trees);
        let commit = Commit { txn: self.id, attachments: &attachments, sections: &sections };
        // Lock the map of locks first: once the transaction is prepared, another thread may commit
        // it by name, and must then find its locks in the map.
        let mut locks = txns.prepared.holds();
        let end = prepared::prepare(&txns.prepared, xid, commit, &mut values)
            .inspect_err(|_| txns.parts.forget(self.id, &attachments))?;
        let locker = std::mem::replace(&mut state.locker, txns.locks.locker(self.id));
        let entry = std::mem::replace(&mut state.entry, txns.registry.entry());
        locks.insert(self.id, PreparedHold { _locker: locker, entry });
        drop(locks);
        let (messages, bytes) = (state.writes.written(), state.writes.written_bytes());
        txns.background.prepared(messages, bytes, begun);
        state.writes.hand_over();
        state.kept = None;
        self.end_overlay(state);
        // The set of prepared transactions owns the writes now, and this transaction does not read
        // any more.
        state.charge.clear(txns);
        state.snapshot = None;
        state.statement = None;
        state.phase = Phase::Prepared(xid.into());
        self.was_prepared.store(true, Ordering::Release);
        self.ended.store(true, Ordering::Release);
        Ok(end)
    }
}

/// The parts of a write set that is ready for the log, except the messages in memory.
struct Writes {
    load: Load,
    /// Private runs, pending in the manifest.
    attachments: Vec<Attachment>,
    values: LargeValues,
}

/// Extents of the large values to which the messages in memory refer, by tree.
type LargeValues = Vec<(TreeId, Vec<Extent>)>;

/// Writes the data to which the log record will refer: spills the rest of a write set that has
/// spilled, and syncs the large values of the messages in memory. Does not sync the private runs;
/// `PendingParts::add` does.
fn seal(
    txns: &Transactions,
    state: &mut TransactionState,
) -> Result<(Vec<Attachment>, LargeValues)> {
    let TransactionState { writes, trees, .. } = state;
    if writes.has_spilled() {
        writes.seal(&txns.spill, &|id| spill_of(trees, id))?;
    }
    let mut attachments = Vec::new();
    for sealed in writes.sealed() {
        let tree = trees.iter().find(|tree| tree.id == sealed.tree);
        let tree = tree.ok_or_else(|| {
            Error::internal("a write set names a tree that the transaction does not know")
        })?;
        attachments.push(Attachment {
            tree: Arc::clone(tree),
            runs: sealed.runs,
            range_deletes: sealed.range_deletes,
            values: sealed.values,
            numbers: sealed.numbers,
            are_base: sealed.are_base,
        });
    }
    let values = writes.values();
    if !values.is_empty() {
        // Make the values durable before a record refers to them (rule 17).
        let synced = txns.space.sync();
        synced.inspect_err(|error| txns.health.poison_if_unknown(error))?;
    }
    Ok((attachments, values))
}

fn sections_of<'a>(
    writes: &'a [frondb_writeset::TreeWrites],
    trees: &'a [Arc<TreeCore>],
) -> Vec<Messages<'a>> {
    let filled = writes.iter().filter(|writes| writes.count() > 0);
    let sections = filled.filter_map(|writes| {
        let tree = trees.iter().find(|tree| tree.id == writes.tree())?;
        Some(Messages { tree, bytes: writes.bytes(), count: writes.count() })
    });
    sections.collect()
}
