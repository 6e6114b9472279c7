//! [`Prepared`]: the prepared transactions of a database, by name, with their writes and locks.

use std::collections::{BTreeMap, BTreeSet};

use frondb_background::JobContext;
use frondb_commit::{Attachment, Committer, Edits, Log, PendingParts};
use frondb_core::budget::{Budget, Part, Reservation};
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use frondb_core::sync::{Arc, Mutex, MutexGuard};
use frondb_core::{Error, ErrorKind, Lsn, Result, TreeId};
use frondb_space::{Extent, Space};
use frondb_tree::{Health, TreeCore};

use crate::registry::PreparedHold;

/// The log position of a transaction that does not need the log.
pub(super) const NOT_NEEDED: u64 = u64::MAX;

/// Messages of a prepared transaction for one tree, in the log's encoding.
pub struct OwnedMessages {
    /// The tree.
    pub tree: Arc<TreeCore>,
    /// The encoded messages.
    pub bytes: Vec<u8>,
    /// Number of messages.
    pub count: u64,
}

/// The writes of a prepared transaction.
#[derive(Default)]
pub struct PreparedWrites {
    /// Parts on disk, pending in the manifest.
    pub attachments: Vec<Attachment>,
    /// Messages in the log record.
    pub sections: Vec<OwnedMessages>,
    /// Extents of the large values to which the messages in `sections` refer.
    pub values: Vec<(TreeId, Vec<Extent>)>,
    /// The charge on the memory budget for `sections`.
    pub(super) charge: Option<Reservation>,
}

/// One prepared transaction.
pub struct PreparedTxn {
    /// The transaction id.
    pub txn: u64,
    /// Trees to which the transaction wrote.
    pub(super) trees: BTreeSet<TreeId>,
    /// Start of the log record of the prepare.
    pub(super) logged: AtomicU64,
    /// Start of the part of the log that the transaction needs; [`NOT_NEEDED`] if none.
    pub(super) needed_from: AtomicU64,
    /// Whether the manifest lists the transaction as prepared.
    pub(super) in_manifest: AtomicBool,
    /// `None` once the transaction is committed or rolled back.
    pub(super) writes: Mutex<Option<PreparedWrites>>,
}

impl PreparedTxn {
    /// Creates a prepared transaction whose prepare record begins at `logged`. With `in_manifest`,
    /// the transaction does not need the record.
    pub fn new(
        budget: &Arc<Budget>,
        txn: u64,
        logged: Lsn,
        in_manifest: bool,
        mut writes: PreparedWrites,
    ) -> Arc<Self> {
        let bytes = writes.sections.iter().map(|section| section.bytes.len() as u64).sum();
        writes.charge = Some(budget.reserve(Part::Other, bytes));
        let parts = writes.attachments.iter().map(|part| part.tree.id);
        let trees = parts.chain(writes.sections.iter().map(|section| section.tree.id)).collect();
        Arc::new(Self {
            txn,
            trees,
            logged: logged.get().into(),
            needed_from: if in_manifest { NOT_NEEDED } else { logged.get() }.into(),
            in_manifest: in_manifest.into(),
            writes: Mutex::new(Some(writes)),
        })
    }

    pub(super) fn logged(&self) -> Lsn {
        Lsn(self.logged.load(Ordering::Acquire))
    }
}

/// All prepared transactions, by name. Any thread may use it.
#[derive(Default)]
pub struct PreparedSet {
    pub(super) by_xid: Mutex<BTreeMap<Box<[u8]>, Arc<PreparedTxn>>>,
}

impl PreparedSet {
    /// Adds a prepared transaction.
    pub fn restore(&self, xid: Box<[u8]>, txn: Arc<PreparedTxn>) {
        self.by_xid.lock().insert(xid, txn);
    }

    /// Returns the number of prepared transactions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_xid.lock().len()
    }

    /// Whether there are no prepared transactions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_xid.lock().is_empty()
    }

    /// Returns the first position of the log that prepared transactions need; `Lsn::MAX` if they do
    /// not need the log.
    pub fn needed_from(&self) -> Lsn {
        let all = self.by_xid.lock();
        let needed = all.values().map(|txn| txn.needed_from.load(Ordering::Acquire));
        Lsn(needed.min().unwrap_or(NOT_NEEDED))
    }

    pub(super) fn find(&self, xid: &[u8]) -> Result<Arc<PreparedTxn>> {
        self.by_xid.lock().get(xid).cloned().ok_or_else(|| not_found(xid))
    }

    /// Finds the prepared transaction `xid`; with `of`, only if it has the id `of`. Once a
    /// transaction is decided, another one may take its name, and the owner of the first must not
    /// decide the second.
    pub(super) fn find_of(&self, xid: &[u8], of: Option<u64>) -> Result<Arc<PreparedTxn>> {
        let found = self.find(xid)?;
        if of.is_none_or(|txn| txn == found.txn) { Ok(found) } else { Err(not_found(xid)) }
    }

    pub(super) fn remove(&self, xid: &[u8]) {
        self.by_xid.lock().remove(xid);
    }
}

/// The prepared transactions of an open database, with the handles to commit them or roll them
/// back. Any thread may use it.
pub struct Prepared {
    pub(super) set: PreparedSet,
    /// Locks and registry entries, by transaction id, because names may be reused.
    holds: Mutex<BTreeMap<u64, PreparedHold>>,
    /// The context of background jobs, with which private runs are written, too.
    pub(super) jobs: Arc<JobContext>,
    pub(super) health: Arc<Health>,
    pub(super) budget: Arc<Budget>,
    pub(super) space: Arc<Space>,
    pub(super) log: Arc<Log>,
    pub(super) edits: Arc<Edits>,
    pub(crate) committer: Arc<Committer>,
    pub(crate) parts: Arc<PendingParts>,
}

impl Prepared {
    /// Creates an empty set, to which recovery adds the prepared transactions that it finds.
    #[must_use]
    pub fn new(
        jobs: Arc<JobContext>,
        committer: Arc<Committer>,
        parts: Arc<PendingParts>,
    ) -> Arc<Self> {
        Arc::new(Self {
            set: PreparedSet::default(),
            holds: Mutex::default(),
            health: Arc::clone(&jobs.reads.health),
            budget: Arc::clone(&jobs.reads.budget),
            space: Arc::clone(&jobs.reads.runs.space),
            log: Arc::clone(&jobs.log),
            edits: Arc::clone(&jobs.edits),
            jobs,
            committer,
            parts,
        })
    }

    /// Returns the set of prepared transactions.
    #[must_use]
    pub fn set(&self) -> &PreparedSet {
        &self.set
    }

    /// Locks and returns the map of the locks and registry entries of undecided transactions, by
    /// transaction id.
    pub fn holds(&self) -> MutexGuard<'_, BTreeMap<u64, PreparedHold>> {
        self.holds.lock()
    }
}

/// Fails with `Busy` if a prepared transaction has written to `tree`.
pub fn check_no_writer(context: &Prepared, tree: &TreeCore) -> Result<()> {
    let has_written = |txn: &PreparedTxn| txn.trees.contains(&tree.id);
    let xid = {
        let all = context.set.by_xid.lock();
        all.iter().find(|(_, txn)| has_written(txn)).map(|(xid, _)| xid.clone())
    };
    let Some(xid) = xid else { return Ok(()) };
    let (name, xid) = (tree.name.read(), xid.escape_ascii());
    let message = format!(
        "the prepared transaction \"{xid}\" has written to tree {:?}: commit it or roll it back first",
        &**name
    );
    Err(Error::new(ErrorKind::Busy, message))
}

/// Makes the commits of prepared transactions that wrote to `tree` durable. The caller then drops
/// the tree.
///
/// # Errors
/// As `Wal::sync_to`.
pub fn keep_commits(context: &Prepared, tree: &TreeCore) -> Result<()> {
    let end = tree.prepared_end();
    context.log.wal.sync_to(end).inspect_err(|error| context.health.poison_if_unknown(error))
}

/// Returns the id of the prepared transaction with this name.
///
/// # Errors
/// `NotFound`.
pub fn number(context: &Prepared, xid: &[u8]) -> Result<u64> {
    context.set.find(xid).map(|txn| txn.txn)
}

pub(super) fn not_found(xid: &[u8]) -> Error {
    let xid = xid.escape_ascii();
    let message = format!(
        "there is no prepared transaction \"{xid}\": it was committed or rolled back, or never prepared"
    );
    Error::new(ErrorKind::NotFound, message)
}

/// Returns the names of the prepared transactions, sorted.
pub fn list(context: &Prepared) -> Vec<Box<[u8]>> {
    context.set.by_xid.lock().keys().cloned().collect()
}

/// Returns the names of the prepared transactions, by id.
pub fn names(context: &Prepared) -> BTreeMap<u64, Box<[u8]>> {
    let by_xid = context.set.by_xid.lock();
    by_xid.iter().map(|(xid, prepared)| (prepared.txn, xid.clone())).collect()
}
