//! [`Committer`]: appends a commit to the log, inserts it into memtables and publishes it.
//!
//! ```text
//!   large values -> [commit lock: append to the log, hand it to the kernel, insert into memtables,
//!                    publish] -> wait for the disk, if asked
//! ```
//!
//! One commit at a time holds the lock, so SeqNos, log positions and memtables agree (rule 8). The
//! record is in the kernel before any of its messages is in a memtable: so a commit that fails has
//! changed nothing, and a commit that a reader sees survives kill -9. The wait for the disk happens
//! without the lock, so that one sync serves many commits (group commit). A commit reads no block.

use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::sync::{Arc, Mutex, MutexGuard};
use frondb_core::{Error, Lsn, Result};
use frondb_locks::SeqOracle;
use frondb_run::RunEnv;
use frondb_tree::{Health, MemtableAccount};
use frondb_wal::Wal;

use crate::batch::{Batch, Durability};
use crate::commit::{Commit, CommitValues, Committed};
use crate::hook::{CommitHook, Hook};
use crate::large_values::{discard, write_values};
use crate::log::Log;
use crate::messages::{Messages, sections_of};

/// Makes commits, one at a time. Any thread may use it.
pub struct Committer {
    /// The number of the open database; a batch for another open database is refused.
    engine: u64,
    pub(crate) log: Arc<Log>,
    pub(crate) wal: Arc<Wal>,
    pub(crate) oracle: Arc<SeqOracle>,
    runs: Arc<RunEnv>,
    pub(crate) account: Arc<MemtableAccount>,
    pub(crate) health: Arc<Health>,
    pub(crate) hook: Hook,
    relogs: AtomicU64,
    /// The commit lock.
    lock: Mutex<Scratch>,
}

/// Buffers that all commits reuse.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) heads: Vec<u8>,
    pub(crate) head_ends: Vec<usize>,
}

/// The commit lock, while it is held.
pub struct CommitLatch<'a> {
    pub(crate) committer: &'a Committer,
    pub(crate) scratch: MutexGuard<'a, Scratch>,
}

impl Committer {
    /// Creates the committer of the open database with number `engine`.
    #[must_use]
    pub fn new(
        engine: u64,
        log: Arc<Log>,
        oracle: Arc<SeqOracle>,
        runs: Arc<RunEnv>,
        account: Arc<MemtableAccount>,
        health: Arc<Health>,
    ) -> Self {
        let wal = Arc::clone(&log.wal);
        let (hook, relogs, lock) = (Hook::default(), AtomicU64::new(0), Mutex::default());
        Self { engine, log, wal, oracle, runs, account, health, hook, relogs, lock }
    }

    /// Sets the function that is called for every commit with messages from now on, in commit
    /// order; `None` for none. It is called under the commit lock, before the commit is durable, so
    /// it must be quick and must not call the database.
    pub fn set_hook(&self, hook: Option<CommitHook>) {
        self.hook.set(hook);
    }

    /// Runs `work` under the commit lock, while no commit is under way.
    pub fn exclusive<T>(&self, work: impl FnOnce(&mut CommitLatch<'_>) -> T) -> T {
        work(&mut CommitLatch { committer: self, scratch: self.lock.lock() })
    }

    /// Commits a batch: writes its large values, logs it, inserts it and publishes it.
    ///
    /// # Errors
    /// `Invalid` if the batch has an invalid message or is for another open database; `NotFound` if
    /// a tree was dropped; `NoSpace`. After these errors nothing has changed. `Poisoned`, `Closed`.
    pub fn commit_batch(&self, batch: &Batch) -> Result<Committed> {
        batch.check_for(self.engine)?;
        if batch.large.is_empty() {
            return self.commit_sections(&sections_of(&batch.sections), &mut Vec::new());
        }
        let written = write_values(&self.runs.space, batch)?;
        let mut values = written.values;
        let sections = sections_of(&written.sections);
        self.commit_sections(&sections, &mut values).inspect_err(|_| {
            // After a poisoning the log may refer to the values.
            if self.health.check_unpoisoned().is_ok() {
                discard(values, &self.runs.space);
            }
        })
    }

    fn commit_sections(
        &self,
        sections: &[Messages<'_>],
        values: &mut CommitValues,
    ) -> Result<Committed> {
        self.commit(Commit { txn: 0, attachments: &[], sections }, values)
    }

    /// Commits messages and attachments. The caller must request flushes of the attachments' trees.
    /// Moves `values`, the extents of the large values to which the messages refer, into the
    /// memtables. After an error `values` still belongs to the caller; unless the error poisoned
    /// the database, nothing has changed.
    ///
    /// # Errors
    /// As [`commit_batch`](Self::commit_batch).
    pub fn commit(&self, commit: Commit<'_>, values: &mut CommitValues) -> Result<Committed> {
        self.exclusive(|latch| {
            self.health.check()?;
            commit.check_trees()?;
            // If it is unknown whether the log has the record, poison the database: recovery may
            // need everything that the record refers to.
            let logged = latch.log(commit);
            let (first, lsns) = logged.inspect_err(|error| self.health.poison_if_unknown(error))?;
            latch.enter(commit, first, lsns, values)
        })
    }

    /// Makes the commit whose log record ends at `end` as durable as `durability` requires.
    ///
    /// # Errors
    /// `NoSpace`; any other error poisons the database.
    pub fn make_durable(&self, end: Lsn, durability: Durability) -> Result<()> {
        let result = match durability {
            Durability::NoSync => Ok(()),
            Durability::Sync => self.wal.commit_to(end),
        };
        result.inspect_err(|error| self.health.poison_unless_full(error))
    }

    /// Returns the number of memtables that were logged again.
    #[must_use]
    pub fn relogs(&self) -> u64 {
        self.relogs.load(Ordering::Relaxed)
    }

    pub(crate) fn add_relog(&self) {
        self.relogs.fetch_add(1, Ordering::Relaxed);
    }
}

impl Batch {
    /// Checks that the batch has no invalid message and belongs to the open database `engine`.
    fn check_for(&self, engine: u64) -> Result<()> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        if self.engine.is_some_and(|of| of != engine) {
            return Err(Error::invalid("the batch holds messages for another open database"));
        }
        Ok(())
    }
}
