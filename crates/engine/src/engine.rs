//! [`Engine`]: an open database, which forwards calls to its parts.
//!
//! | file | calls |
//! |---|---|
//! | this one | trees, batches, durability, hooks, locks, statistics |
//! | `open.rs`, `close.rs` | from opening to closing |
//! | `reads.rs` | reads, estimates and checks |
//! | `work.rs` | flush, checkpoint, waiting for merges, rate limit |

mod close;
mod open;
mod reads;
mod work;

use frondb_background::{Background, Load, replan_all};
use frondb_catalog::Catalog;
use frondb_commit::{Batch, CallGuard, CommitHook, Durability, guarded};
use frondb_core::events::EventListener;
use frondb_core::executor::JoinHandle;
use frondb_core::sync::atomic::AtomicBool;
use frondb_core::sync::{Arc, Mutex};
use frondb_core::{Result, SeqNo, TreeId};
use frondb_device::{DeviceLock, SharedDevice};
use frondb_locks::{DeadlockInfo, LockInfo, WaitHook, WaitInfo};
use frondb_records::TreeOptions;
use frondb_tree::{Health, Snapshot, Tree};
use frondb_txn::{BatchLocks, Transactions, prepared};
use frondb_wal::SyncMode;

use crate::options::EngineOptions;
use crate::process_memory::ProcessMemory;
use crate::recovery::Recovery;
use crate::stats::{EngineStats, Latencies, TreeStats};

/// A tree by name, for listings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TreeInfo {
    /// Its id.
    pub id: TreeId,
    /// Its name.
    pub name: String,
}

/// An open database. Every method may be called from any thread.
///
/// [`close`](Self::close) waits for calls that may write: see [`frondb_commit::Calls`].
pub struct Engine {
    pub(crate) txns: Arc<Transactions>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) options: EngineOptions,
    /// The database directory.
    pub(crate) device: SharedDevice,
    /// The log's directory.
    pub(crate) log_device: SharedDevice,
    pub(crate) memory: ProcessMemory,
    workers: Mutex<Vec<JoinHandle>>,
    recovery: Recovery,
    /// The locks of the database directory and of the log directory; empty once closed.
    locks: Mutex<Vec<DeviceLock>>,
    /// Whether there is a backup: one at a time.
    pub(crate) is_backing_up: AtomicBool,
    /// The result of closing.
    closed: Mutex<Result<()>>,
}

impl Engine {
    /// What recovery found when the database was opened.
    #[must_use]
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    pub(crate) fn background(&self) -> &Arc<Background> {
        &self.txns.background
    }

    /// The id of the database.
    pub(crate) fn db_id(&self) -> u128 {
        self.background().jobs.edits.manifest.db_id()
    }

    pub(crate) fn health(&self) -> &Health {
        &self.txns.reads.health
    }

    /// The options that the database was opened with.
    #[must_use]
    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    // --- Trees ---

    /// Creates an empty tree; durable on return.
    ///
    /// # Errors
    /// `Invalid` for a bad name or option, or an update function that is not registered; `Exists`;
    /// `NoSpace`, `Poisoned`, `Closed`.
    pub fn create_tree(&self, name: &str, options: TreeOptions) -> Result<Tree> {
        let _call = self.begin_call()?;
        self.catalog.create(name, options).map(Tree::new)
    }

    /// The tree of this name.
    ///
    /// # Errors
    /// `NotFound`; `Closed`.
    pub fn open_tree(&self, name: &str) -> Result<Tree> {
        self.catalog.open(name).map(Tree::new)
    }

    /// Names of all trees, sorted.
    #[must_use]
    pub fn list_trees(&self) -> Vec<String> {
        self.catalog.list()
    }

    /// Renames a tree; durable on return. Handles stay valid.
    ///
    /// # Errors
    /// `NotFound`; `Exists`; `Invalid` for a bad name; `NoSpace`, `Poisoned`, `Closed`.
    pub fn rename_tree(&self, from: &str, to: &str) -> Result<()> {
        let _call = self.begin_call()?;
        self.catalog.rename(from, to)
    }

    /// Changes the codecs and the sizes of blocks and leaves of a tree; durable on return. Background
    /// work packs what the tree has in the new way, leaf by leaf.
    ///
    /// # Errors
    /// `NotFound` if the tree was dropped; `Invalid` for an option that is out of its range or fixed, or
    /// a tree of another database; `NoSpace`, `Poisoned`, `Closed`.
    pub fn set_tree_options(&self, tree: &Tree, options: TreeOptions) -> Result<()> {
        let _call = self.begin_call()?;
        self.check_read(tree, None)?;
        self.catalog.set_options(tree.core(), options)?;
        let background = self.background();
        background.jobs.forget(tree.id());
        replan_all(&background.jobs, &background.queue, tree.core());
        Ok(())
    }

    /// Drops a tree; durable on return. Open cursors on the tree stay usable.
    ///
    /// # Errors
    /// `NotFound`; `Busy` if a prepared transaction has written to it.
    pub fn drop_tree(&self, name: &str) -> Result<()> {
        let _call = self.begin_call()?;
        let tree = self.catalog.remove(&self.txns.committer, name, |tree| {
            prepared::check_no_writer(&self.txns.prepared, tree)?;
            prepared::keep_commits(&self.txns.prepared, tree)
        })?;
        let background = self.background();
        background.queue.forget(tree.id);
        background.jobs.forget(tree.id);
        background.touched();
        background.queue.add_maintenance();
        Ok(())
    }

    // --- Writing ---

    /// The largest batch that [`write`](Self::write) accepts, in bytes of
    /// [`Batch::memory_bytes`]: a quarter of the memory, and at most 512 MiB.
    #[must_use]
    pub fn batch_bytes_max(&self) -> u64 {
        self.background().jobs.shares.now().batch_bytes()
    }

    /// Commits a batch atomically. Returns when the batch is as durable as `durability` requires;
    /// later reads see it.
    ///
    /// # Errors
    /// `Invalid` for a malformed or too large batch; `NotFound` if a tree was dropped; `NoSpace`
    /// (nothing has changed; the caller may retry); `LockTimeout` or `Deadlock` if a transaction
    /// holds locks on the keys (nothing has changed); `Poisoned`, `Closed`.
    pub fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        let _call = self.begin_call()?;
        batch.check_bytes(self.batch_bytes_max())?;
        let (txns, background) = (&self.txns, self.background());
        let begun = background.now();
        background.admit(Load::of(batch), &|| false)?;
        let locks = BatchLocks::take(txns, batch)?;
        let committed =
            background.lending_space(batch.frees_space(), || txns.committer.commit_batch(batch))?;
        drop(locks);
        background.committed(&committed, batch.len() as u64, batch.bytes() as u64, begun);
        txns.make_durable(committed.end, durability)
    }

    /// The current meaning of [`Durability::Sync`].
    #[must_use]
    pub fn sync_mode(&self) -> SyncMode {
        self.background().jobs.log.wal.sync_mode()
    }

    /// Changes what [`Durability::Sync`] waits for, and makes everything committed so far durable.
    ///
    /// # Errors
    /// `Invalid` for a bad interval: the mode stays as it was. `Poisoned`, `NoSpace`: the new mode
    /// is in force nevertheless. `Closed`.
    pub fn set_sync_mode(&self, mode: SyncMode) -> Result<()> {
        let _call = self.begin_call()?;
        let result = self.background().jobs.log.wal.set_sync_mode(mode);
        let result = result.inspect_err(|error| self.health().poison_if_unknown(error));
        // A worker may be waiting for as long as the old mode allowed.
        self.background().sync_mode_changed();
        result
    }

    /// Makes everything committed so far durable, whatever the sync mode.
    ///
    /// # Errors
    /// `Poisoned` if the disk failed; `Closed`.
    pub fn sync(&self) -> Result<()> {
        let _call = self.begin_call()?;
        self.background().jobs.log.wal.sync().inspect_err(|error| self.health().poison(error))
    }

    /// Calls `hook` for every commit from now on, in commit order; `None` removes the hook. The
    /// hook runs under the commit lock, before the commit is durable: it must be quick, and must
    /// not call the engine.
    pub fn set_commit_hook(&self, hook: Option<CommitHook>) {
        self.txns.committer.set_hook(hook);
    }

    /// Calls `hook` for every wait for a lock that begins or gets longer from now on; `None`
    /// removes the hook. See [`WaitHook`].
    pub fn set_wait_hook(&self, hook: Option<WaitHook>) {
        self.txns.locks.set_wait_hook(hook.map(guarded));
    }

    /// Tells `listener` of events from now on; `None` for no listener.
    pub fn set_event_listener(&self, listener: Option<EventListener>) {
        self.txns.reads.runs.events.set(listener);
    }

    /// The guard that a call that may write holds while it runs. A thread must hold only one.
    pub(crate) fn begin_call(&self) -> Result<CallGuard<'_>> {
        self.txns.calls.begin()
    }

    fn check_read(&self, tree: &Tree, at: Option<&Snapshot>) -> Result<Option<SeqNo>> {
        self.txns.reads.check_read(tree, at)
    }

    // --- Locks and statistics ---

    /// The first `max` locks that transactions hold now.
    #[must_use]
    pub fn locks(&self, max: usize) -> Vec<LockInfo> {
        self.txns.locks.locks(max)
    }

    /// All lock waits in progress.
    #[must_use]
    pub fn lock_waits(&self) -> Vec<WaitInfo> {
        self.txns.locks.waits()
    }

    /// The last deadlock since the database was opened.
    #[must_use]
    pub fn last_deadlock(&self) -> Option<DeadlockInfo> {
        self.txns.locks.last_deadlock()
    }

    /// Statistics of the whole database.
    #[must_use]
    pub fn stats(&self) -> EngineStats {
        let mut stats = EngineStats::default();
        crate::stats::collect::fill_parts(&self.catalog, &self.txns, &mut stats);
        crate::stats::collect::fill_background(self.background(), &mut stats);
        stats
    }

    /// How long calls and background work take.
    #[must_use]
    pub fn latencies(&self) -> Latencies {
        crate::stats::collect::latencies(&self.txns)
    }

    /// The statistics and latencies as a page in Prometheus' text format.
    #[must_use]
    pub fn prometheus(&self) -> String {
        crate::stats::page(&self.stats(), &self.latencies())
    }

    /// Statistics of one tree.
    pub fn tree_stats(&self, tree: &Tree) -> Result<TreeStats> {
        self.check_read(tree, None)?;
        Ok(crate::stats::collect::tree_stats(tree.core()))
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Engine({})", self.device.describe())
    }
}
