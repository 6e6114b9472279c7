//! The end of a transaction: commit, rollback, and the first phase of two.

use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_core::{Error, ErrorKind, Lsn, Result, TreeId};
use frondb_space::Extent;

use super::{Core, KeepOpen, Phase, State, Transaction, spill_of};
use crate::context::Transactions;
use crate::prepared;
use crate::registry::PreparedHold;
use frondb_background::Load;
use frondb_commit::Attachment;
use frondb_commit::Durability;
use frondb_commit::{Commit, Messages};
use frondb_tree::TreeCore;

/// A commit, or a prepare, that has happened. What is left is the wait for the disk.
#[must_use = "without a wait it may not be durable"]
pub struct Committing {
    txns: Arc<Transactions>,
    _open: KeepOpen,
    /// Where its record ends; `None` if there was nothing to log.
    end: Option<Lsn>,
    durability: Durability,
}

impl Committing {
    /// Waits until it is as durable as the transaction asks.
    ///
    /// # Errors
    /// `Poisoned` if the disk failed: it may be lost; close and reopen.
    pub fn wait(self) -> Result<()> {
        match self.end {
            None => Ok(()),
            Some(end) => self.txns.wait_durable(end, self.durability),
        }
    }
}

impl Transaction {
    /// Commits: all writes take effect together, and are as durable as it asks when this
    /// returns. Locks are free for others before the wait for the disk.
    ///
    /// # Errors
    /// `NoSpace` or `NotFound` (a tree was dropped): nothing has changed, and the transaction goes
    /// on, for another try or a rollback; `Poisoned`, `Io`, `Closed`; `Invalid` if it has ended.
    pub fn commit(&self) -> Result<()> {
        match self.core.commit()? {
            (None, _) => Ok(()),
            (Some(end), durability) => self.core.txns.wait_durable(end, durability),
        }
    }

    /// The first half of [`commit`](Self::commit): everything but the wait for the disk. Who
    /// calls it for several transactions one after the other decides their order.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_in_order(&self) -> Result<Committing> {
        let (end, durability) = self.core.commit()?;
        Ok(self.core.committing(end, durability))
    }

    /// Prepares under a name of 1 to 256 bytes: from now on the transaction can be committed, or
    /// rolled back, whatever happens, also after a restart. It keeps its write locks, and takes no
    /// more reads or writes. Durable, as it asks, when this returns.
    ///
    /// # Errors
    /// `Exists` if one of this name is prepared; `Invalid` for the name, or if it has ended. Else
    /// as [`commit`](Self::commit).
    pub fn prepare(&self, xid: &[u8]) -> Result<()> {
        self.prepare_in_order(xid)?.wait()
    }

    /// The first half of [`prepare`](Self::prepare): everything but the wait for the disk.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare).
    pub fn prepare_in_order(&self, xid: &[u8]) -> Result<Committing> {
        let mut state = self.core.active()?;
        let end = self.core.prepare(&mut state, xid)?;
        Ok(self.core.committing(Some(end), state.durability))
    }

    /// Undoes everything the transaction wrote and lets go of its locks.
    ///
    /// # Errors
    /// `Invalid` if it was committed or rolled back by a call before. One that the engine rolled
    /// back after a deadlock may be rolled back: that says that its end was noticed. Of a prepared
    /// one those of [`Engine::roll_back_prepared`].
    pub fn rollback(&self) -> Result<()> {
        if let Some(xid) = self.core.prepared_xid() {
            self.core.txns.roll_back_prepared_of(&xid, Some(self.core.id))?;
            let mut state = self.core.state.lock();
            self.core.end(&mut state, Phase::RolledBack);
            return Ok(());
        }
        let mut state = match self.core.active() {
            // Nothing of it is anywhere but here.
            Err(error) if error.kind() == ErrorKind::Closed => self.core.state.lock(),
            Err(error) => return self.core.notice_failure(error),
            Ok(state) => state,
        };
        self.core.end(&mut state, Phase::RolledBack);
        Ok(())
    }
}

impl Transaction {
    /// Rolls the transaction back unless another thread is in a call of it, or of one of its
    /// cursors. Returns false then, and nothing has changed; so it never waits for a lock's wait
    /// to end. One that has ended, or is prepared, stays as it is.
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

    /// Commits, but for the wait for the disk. Returns where the record ends, if there is one, and
    /// what to wait for.
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

    /// Logs what the transaction wrote and makes it visible. Returns where its record ends.
    fn log(&self, state: &mut State) -> Result<Lsn> {
        let _call = self.txns.calls.begin()?;
        let txns = &self.txns;
        let writes = Writes::seal(txns, state)?;
        let (messages, bytes) = (state.writes.count(), state.writes.bytes());
        let frees_space = state.writes.frees_space();
        let load = Load { bytes, messages, frees_space, unpaced: false };
        txns.background.admit(load, &|| state.locker.take_cancel())?;
        txns.parts.add(self.id, &writes.attachments)?;
        let sections = sections_of(state.writes.trees(), &state.trees);
        let Writes { attachments, mut values } = writes;
        let commit = Commit { txn: self.id, attachments: &attachments, sections: &sections };
        let committed = txns
            .background
            .lending_space(frees_space, || txns.committer.commit(commit, &mut values))
            .inspect_err(|_| txns.parts.forget(self.id, &attachments))?;
        state.writes.hand_over();
        txns.background.committed(&committed, messages, bytes);
        Ok(committed.end)
    }

    fn prepare(&self, state: &mut State, xid: &[u8]) -> Result<Lsn> {
        let _call = self.txns.calls.begin()?;
        let txns = &self.txns;
        let writes = Writes::seal(txns, state)?;
        let (messages, bytes) = (state.writes.count(), state.writes.bytes());
        let frees_space = state.writes.frees_space();
        let load = Load { bytes, messages, frees_space, unpaced: false };
        txns.background.admit(load, &|| state.locker.take_cancel())?;
        txns.parts.add(self.id, &writes.attachments)?;
        let sections = sections_of(state.writes.trees(), &state.trees);
        let Writes { attachments, mut values } = writes;
        let commit = Commit { txn: self.id, attachments: &attachments, sections: &sections };
        // Who decides it may be somebody else, and has the locks go: they are there before it is.
        let mut locks = txns.prepared.holds();
        let end = prepared::prepare(&txns.prepared, xid, commit, &mut values)
            .inspect_err(|_| txns.parts.forget(self.id, &attachments))?;
        let locker = std::mem::replace(&mut state.locker, txns.locks.locker(self.id));
        let entry = std::mem::replace(&mut state.entry, txns.registry.entry());
        locks.insert(self.id, PreparedHold { _locker: locker, entry });
        drop(locks);
        state.writes.hand_over();
        self.end_overlay(state);
        // The set of prepared transactions has what it wrote, and it reads no more.
        state.charge.clear(txns);
        state.snapshot = None;
        state.statement = None;
        state.phase = Phase::Prepared(xid.into());
        self.was_prepared.store(true, Ordering::Release);
        self.ended.store(true, Ordering::Release);
        Ok(end)
    }
}

/// What of a write set goes to a commit besides the messages in memory.
struct Writes {
    attachments: Vec<Attachment>,
    /// Extents of the large values of messages in memory.
    values: Vec<(TreeId, Vec<Extent>)>,
}

impl Writes {
    /// Writes what has to be on disk before the commit.
    fn seal(txns: &Transactions, state: &mut State) -> Result<Self> {
        let State { writes, trees, .. } = state;
        if writes.has_spilled() {
            writes.seal(&txns.spill, &|id| spill_of(trees, id))?;
        }
        let mut attachments = Vec::new();
        for sealed in writes.sealed() {
            let tree = trees.iter().find(|tree| tree.id == sealed.tree);
            let tree = tree.ok_or_else(|| Error::internal("a write set has lost a tree"))?;
            attachments.push(Attachment {
                tree: Arc::clone(tree),
                runs: sealed.runs,
                range_deletes: sealed.range_deletes,
                values: sealed.values,
                numbers: sealed.numbers,
                are_base: false,
            });
        }
        let values = writes.values();
        if !values.is_empty() {
            // Durable before a record names them (rule 17).
            txns.reads
                .runs
                .space
                .sync()
                .inspect_err(|error| txns.reads.health.poison_if_unknown(error))?;
        }
        Ok(Self { attachments, values })
    }
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
