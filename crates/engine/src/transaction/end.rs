//! The end of a transaction.

use frondb_core::sync::Arc;
use frondb_core::{Lsn, Result};

use super::{Core, Phase, State, Transaction};
use crate::admission::Load;
use crate::commit::{Messages, make_durable};
use crate::engine::Engine;
use crate::options::Durability;
use crate::tree::TreeCore;

/// A commit that has happened: all later reads see it. What is left is the wait for the disk.
#[must_use = "without a wait the commit may not be durable"]
pub struct Committing {
    engine: Arc<Engine>,
    /// Where its record ends; `None` if there was nothing to log.
    end: Option<Lsn>,
    durability: Durability,
}

impl Committing {
    /// Waits until the commit is as durable as the transaction's options ask.
    ///
    /// # Errors
    /// `Poisoned` if the disk failed: the commit may be lost; close and reopen.
    pub fn wait(self) -> Result<()> {
        match self.end {
            None => Ok(()),
            Some(end) => make_durable(&self.engine.shared().env, end, self.durability),
        }
    }
}

impl Transaction {
    /// Commits: all writes take effect together, and are as durable as the options ask when this
    /// returns. Locks are free for others before the wait for the disk.
    ///
    /// # Errors
    /// `NoSpace` or `NotFound` (a tree was dropped): nothing has changed, and the transaction goes
    /// on, for another try or a rollback; `Poisoned`, `Io`, `Closed`; `Invalid` if it has ended.
    pub fn commit(&self) -> Result<()> {
        self.commit_in_order()?.wait()
    }

    /// The first half of [`commit`](Self::commit): everything but the wait for the disk. Who
    /// calls it for several transactions one after the other decides their order.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_in_order(&self) -> Result<Committing> {
        let mut state = self.core.active()?;
        let end = if state.writes.is_empty() { None } else { Some(self.core.log(&mut state)?) };
        self.core.end(&mut state, Phase::Committed);
        let (engine, durability) = (Arc::clone(&self.core.engine), self.core.options.durability);
        Ok(Committing { engine, end, durability })
    }

    /// Undoes everything the transaction wrote and lets go of its locks.
    ///
    /// # Errors
    /// `Invalid` if it was committed or rolled back by a call before. One that the engine rolled
    /// back after a deadlock may be rolled back: that says that its end was noticed.
    pub fn rollback(&self) -> Result<()> {
        let mut state = self.core.state.lock();
        if let Phase::Failed(_) = state.phase {
            state.phase = Phase::RolledBack;
            return Ok(());
        }
        drop(state);
        let mut state = match self.core.active() {
            Err(error) if error.kind() != frondb_core::ErrorKind::Closed => return Err(error),
            Err(_) => self.core.state.lock(),
            Ok(state) => state,
        };
        self.core.end(&mut state, Phase::RolledBack);
        Ok(())
    }
}

impl Core {
    /// Logs what the transaction wrote and makes it visible. Returns where its record ends.
    fn log(&self, state: &mut State) -> Result<Lsn> {
        let _call = self.engine.begin_call()?;
        let shared = self.engine.shared();
        let (messages, bytes) = (state.writes.count(), state.writes.bytes());
        let frees_space = state.writes.frees_space();
        shared.admit(Load { bytes, messages, frees_space })?;
        let mut values = state.writes.values();
        if !values.is_empty() {
            // Durable before a record names them (rule 17).
            shared.env.runs.space.sync().inspect_err(|e| shared.env.poison_if_unknown(e))?;
        }
        let sections = sections_of(state.writes.trees(), &state.trees);
        let committed = shared.commit_sections(&sections, frees_space, &mut values)?;
        state.writes.forget_values();
        shared.committed(&committed, messages, bytes);
        Ok(committed.end)
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
