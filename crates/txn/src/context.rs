//! [`Transactions`]: what transactions take beside the trees that they use.

use std::collections::BTreeMap;
use std::time::Duration;

use frondb_background::Background;
use frondb_commit::{Calls, Committer, Durability, Ids, PendingParts};
use frondb_core::sync::Arc;
use frondb_core::{Lsn, Result};
use frondb_locks::LockManager;
use frondb_tree::{ReadContext, Snapshot};

use crate::pool::Pool;
use crate::prepared::{self, Prepared};
use crate::registry::{Registry, TransactionInfo};
use crate::spilling::Spilling;

/// What the transactions of an open database share. Any thread may use it.
pub struct Transactions {
    /// What reads take.
    pub reads: Arc<ReadContext>,
    /// Lets commits in, and learns of them.
    pub background: Arc<Background>,
    /// Commits.
    pub committer: Arc<Committer>,
    /// Parts of large commits.
    pub parts: Arc<PendingParts>,
    /// Row and range locks.
    pub locks: Arc<LockManager>,
    /// Numbers of transactions and runs.
    pub ids: Arc<Ids>,
    /// Calls that may write.
    pub calls: Arc<Calls>,
    /// Where write sets go that are too large.
    pub spill: Spilling,
    /// Prepared transactions.
    pub prepared: Arc<Prepared>,
    pub(crate) registry: Registry,
    pub(crate) pool: Pool,
}

/// What [`Transactions`] is made of: see the fields of the same names.
pub struct TransactionsParts {
    /// What reads take.
    pub reads: Arc<ReadContext>,
    /// Lets commits in, and learns of them.
    pub background: Arc<Background>,
    /// Commits.
    pub committer: Arc<Committer>,
    /// Parts of large commits.
    pub parts: Arc<PendingParts>,
    /// Row and range locks.
    pub locks: Arc<LockManager>,
    /// Numbers of transactions and runs.
    pub ids: Arc<Ids>,
    /// Calls that may write.
    pub calls: Arc<Calls>,
    /// Where write sets go that are too large.
    pub spill: Spilling,
    /// Prepared transactions.
    pub prepared: Arc<Prepared>,
}

impl Transactions {
    /// No transaction yet.
    #[must_use]
    pub fn new(parts: TransactionsParts) -> Arc<Self> {
        let TransactionsParts {
            reads,
            background,
            committer,
            parts,
            locks,
            ids,
            calls,
            spill,
            prepared,
        } = parts;
        let (registry, pool) = (Registry::default(), Pool::default());
        Arc::new(Self {
            reads,
            background,
            committer,
            parts,
            locks,
            ids,
            calls,
            spill,
            prepared,
            registry,
            pool,
        })
    }

    /// A snapshot of everything committed so far.
    ///
    /// # Errors
    /// `Closed`.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.reads.health.check_open()?;
        Ok(self.reads.snapshot())
    }

    /// Waits until a commit is as durable as was asked. Closing made it durable.
    ///
    /// # Errors
    /// `Poisoned` if the disk failed: the commit may be lost. `Closed`.
    pub fn wait_durable(&self, end: Lsn, durability: Durability) -> Result<()> {
        let health = &self.reads.health;
        if durability == Durability::NoSync {
            return health.check_unpoisoned();
        }
        let _call = self.calls.begin_unchecked();
        if self.background.jobs.log.wal.durable_lsn() >= end {
            return health.check_unpoisoned();
        }
        health.check_open()?;
        self.committer.make_durable(end, durability)
    }

    /// All transactions that have not ended, active ones and prepared ones, by number. Not one moment:
    /// they go on while the list is made. It takes time with their number, and keeps none of them waiting.
    #[must_use]
    pub fn list(&self) -> Vec<TransactionInfo> {
        let now = self.reads.now();
        let mut waits: BTreeMap<u64, Duration> = self.locks.waiting().into_iter().collect();
        let mut names = prepared::names(&self.prepared);
        let entries = self.registry.all();
        let mut infos: Vec<TransactionInfo> =
            entries.iter().filter_map(|entry| entry.read(now)).collect();
        infos.sort_unstable_by_key(|info| info.transaction);
        for info in &mut infos {
            info.waited = waits.remove(&info.transaction);
            info.xid = names.remove(&info.transaction).map(Vec::from);
        }
        infos
    }
}
