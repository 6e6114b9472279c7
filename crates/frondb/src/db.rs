//! [`Db`]: an open database.

use std::path::Path;
use std::time::Duration;

use frondb_core::clock::{SharedClock, SystemClock};
use frondb_core::executor::{SharedExecutor, ThreadExecutor};
use frondb_core::sync::Arc;
use frondb_core::{Error, ErrorKind, Result};
use frondb_device::{Modes, PosixDevice, SharedDevice};
use frondb_engine::{
    CommitHook, DeadlockInfo, Durability, Engine, EngineStats, FileInfo, LockInfo, Recovery,
    Snapshot, TransactionInfo, WaitHook, WaitInfo,
};
use frondb_wal::{SyncMode, owner};

use crate::batch::Batch;
use crate::bulk::{BulkLoad, BulkOptions};
use crate::options::{Options, TreeOptions};
use crate::transaction::{Transaction, TransactionOptions};
use crate::tree::Tree;

/// An open database. Clones are cheap and refer to the same database. Any thread may use it.
///
/// # How durable a write is
/// Three settings decide, from one write to the whole database: the [`Durability`] passed to
/// [`write`](Self::write); the default of the handle, for writes that take no such argument
/// ([`with_commit_sync`](Self::with_commit_sync)); and what [`Durability::Sync`] means for this
/// database ([`set_sync_mode`](Self::set_sync_mode)).
#[derive(Clone, Debug)]
pub struct Db {
    engine: Arc<Engine>,
    /// Durability of single writes to trees of this handle.
    commit_sync: Durability,
}

impl Db {
    /// Opens the database in a directory, or creates one there.
    ///
    /// # Errors
    /// `Busy` ("in use by pid N") if it is open already; `NotFound` if there is no database and
    /// the options do not create one; `Invalid` if the directory holds other files, or if the log
    /// is not in the log directory; `Unsupported` if a newer version wrote it; `Corruption`; `Io`.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let path = path.as_ref();
        options.engine.check()?;
        let modes = options.modes()?;
        let read_only = options.engine.read_only;
        let may_make = (options.engine.create || options.engine.create_new) && !read_only;
        let found = existing(path, modes)?;
        let is_there = match &found {
            Some(device) => Engine::is_there(device, &options.engine)? || read_only,
            None if may_make => false,
            None => {
                let message = format!("there is no FronDB database in {}", path.display());
                return Err(Error::new(ErrorKind::NotFound, message));
            }
        };
        // Check the log directory first: if another database owns it, nothing has been created yet.
        let log = match &options.log_dir {
            None => None,
            Some(dir) => Some(log_device(dir, is_there, modes)?),
        };
        let device = match found {
            Some(device) => device,
            None => Arc::new(PosixDevice::create_with(path, modes)?),
        };
        let (clock, executor) = (SystemClock::shared(), ThreadExecutor::shared());
        Self::open_on(device, log, options, clock, &executor)
    }

    /// Opens a database on any device, with any clock and threads, for the project's own
    /// simulations. The parameter types belong to inner crates and are not part of the public
    /// interface.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    #[doc(hidden)]
    pub fn open_on(
        device: SharedDevice,
        log_device: Option<SharedDevice>,
        options: Options,
        clock: SharedClock,
        executor: &SharedExecutor,
    ) -> Result<Self> {
        let engine = Engine::open(device, log_device, options.engine, clock, executor)?;
        Ok(Self::of(engine))
    }

    pub(crate) fn of(engine: Engine) -> Self {
        Self { engine: Arc::new(engine), commit_sync: Durability::default() }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What recovery found when the database was opened.
    #[must_use]
    pub fn recovery(&self) -> &Recovery {
        self.engine.recovery()
    }

    /// Creates an empty tree, durably.
    ///
    /// # Errors
    /// `Exists`; `Invalid` for a bad name or option, or for an update function that is not
    /// registered.
    pub fn create_tree(&self, name: &str, options: TreeOptions) -> Result<Tree> {
        let options =
            frondb_engine::TreeOptions { trunk: options.trunk, update_fn: options.update_fn };
        let tree = self.engine.create_tree(name, options)?;
        Ok(Tree::new(Arc::clone(&self.engine), tree, self.commit_sync))
    }

    /// Returns the tree of this name.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn open_tree(&self, name: &str) -> Result<Tree> {
        let tree = self.engine.open_tree(name)?;
        Ok(Tree::new(Arc::clone(&self.engine), tree, self.commit_sync))
    }

    /// The names of all trees, sorted.
    #[must_use]
    pub fn list_trees(&self) -> Vec<String> {
        self.engine.list_trees()
    }

    /// Renames a tree, durably. Open handles stay valid.
    ///
    /// # Errors
    /// `NotFound`, `Exists`, `Invalid`.
    pub fn rename_tree(&self, from: &str, to: &str) -> Result<()> {
        self.engine.rename_tree(from, to)
    }

    /// Removes a tree and its data immediately, durably. Open cursors on it stay usable.
    ///
    /// # Errors
    /// `NotFound`; `Busy` if a prepared transaction has written to the tree: commit it or roll it
    /// back first.
    pub fn drop_tree(&self, name: &str) -> Result<()> {
        self.engine.drop_tree(name)
    }

    /// The largest [`Batch::memory_bytes`] that can be committed: a quarter of the memory option,
    /// at most 512 MiB.
    #[must_use]
    pub fn batch_bytes_max(&self) -> u64 {
        self.engine.batch_bytes_max()
    }

    /// Commits a batch atomically. Where transactions hold locks, the batch waits for them as a
    /// transaction would; elsewhere it takes no locks.
    ///
    /// # Errors
    /// `LockTimeout` or `Deadlock` while it waited for locks: nothing changed. `Invalid` for an
    /// invalid write in the batch or a batch that is too large; `NotFound` if a tree was dropped;
    /// `NoSpace`: nothing changed, and the call may be repeated; `Poisoned`; `Closed`.
    pub fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        self.engine.write(&batch.inner, durability)
    }

    /// Begins a transaction; see [`Transaction`]. Costs next to nothing until the transaction
    /// writes or locks.
    ///
    /// # Errors
    /// `Invalid` for options that contradict each other
    /// ([`TransactionOptions::snapshot_isolation`]); `Poisoned`, `Closed`.
    pub fn begin(&self, options: TransactionOptions) -> Result<Transaction> {
        self.engine.begin(options.with_default(self.commit_sync)).map(Transaction::new)
    }

    /// Begins a bulk load; see [`BulkLoad`].
    ///
    /// # Errors
    /// `Poisoned`, `Closed`.
    pub fn bulk_load(&self, options: BulkOptions) -> Result<BulkLoad> {
        let inner = self.engine.bulk_load(options)?;
        Ok(BulkLoad::new(Arc::clone(&self.engine), inner, self.commit_sync))
    }

    /// Takes a snapshot that sees everything that transactions had written to `trees` before this
    /// call. The call waits up to `timeout` for each of these transactions to end, prepared ones
    /// included, and blocks new writes to the trees while it takes the snapshot.
    ///
    /// This is for building an index of existing data without missing a row: create the index
    /// tree, make all writers write to it, then read the data at this snapshot.
    ///
    /// # Errors
    /// `Busy` if a prepared transaction that wrote to a tree has not ended in time: commit it or
    /// roll it back first; `LockTimeout`; `Deadlock` if a deadlock was found when the time was up;
    /// `Invalid` for a tree of another database; `NotFound` if a tree was dropped; `Closed`.
    pub fn snapshot_behind_writers(&self, trees: &[&Tree], timeout: Duration) -> Result<Snapshot> {
        let trees: Vec<_> = trees.iter().map(|tree| tree.inner.clone()).collect();
        self.engine.snapshot_behind_writers(&trees, timeout)
    }

    /// The names of all prepared transactions, sorted, including those from before the last
    /// restart.
    #[must_use]
    pub fn prepared(&self) -> Vec<Vec<u8>> {
        self.engine.prepared().into_iter().map(Vec::from).collect()
    }

    /// Commits a prepared transaction by name.
    ///
    /// # Errors
    /// `NotFound` if no prepared transaction has this name; `NoSpace`: it is still prepared, try
    /// again; `Poisoned`, `Closed`.
    pub fn commit_prepared(&self, xid: &[u8], durability: Durability) -> Result<()> {
        self.engine.commit_prepared(xid, durability)
    }

    /// Rolls back a prepared transaction by name, durably.
    ///
    /// # Errors
    /// As [`commit_prepared`](Self::commit_prepared).
    pub fn rollback_prepared(&self, xid: &[u8]) -> Result<()> {
        self.engine.roll_back_prepared(xid)
    }

    /// Sets a hook that is called for every later commit, in commit order, for example to write a
    /// log of one's own. `None` removes it. The hook runs before the commit is durable and blocks
    /// all other commits, so it must be quick and must not call the database. If it panics, the
    /// panic is logged and the commit is still valid.
    pub fn set_commit_hook(&self, hook: Option<CommitHook>) {
        self.engine.set_commit_hook(hook);
    }

    /// Sets a hook that is called when a wait for a lock begins or becomes longer, for callers
    /// that have a transaction order of their own. `None` removes it. The waiting thread calls the
    /// hook before it sleeps. The hook may cancel transactions
    /// ([`Transaction::canceller`](crate::Transaction::canceller)), and must not call the waiting
    /// transaction. If it panics, the panic is logged and nothing else happens.
    pub fn set_wait_hook(&self, hook: Option<WaitHook>) {
        self.engine.set_wait_hook(hook);
    }

    /// All transactions that have not ended, active and prepared, by number. Meant for status
    /// pages. Transactions continue while the list is made, so it does not show one moment in time.
    /// The cost of the call grows with their number.
    ///
    /// A number that is in [`locks`](Self::locks) and not in this list belongs to a batch that
    /// waited for locks, or to an index build.
    #[must_use]
    pub fn transactions(&self) -> Vec<TransactionInfo> {
        self.engine.transactions()
    }

    /// All locks that transactions hold now, unordered. For status pages, and to find out which
    /// transaction others wait for.
    #[must_use]
    pub fn locks(&self) -> Vec<LockInfo> {
        self.engine.locks()
    }

    /// All current waits for locks, each with the transactions it waits for.
    #[must_use]
    pub fn lock_waits(&self) -> Vec<WaitInfo> {
        self.engine.lock_waits()
    }

    /// The last deadlock since the database was opened, with what each transaction of the cycle
    /// waited for.
    #[must_use]
    pub fn last_deadlock(&self) -> Option<DeadlockInfo> {
        self.engine.last_deadlock()
    }

    /// Returns a handle to the same database with another default durability. It holds for single
    /// writes ([`Tree::put`] and similar) to trees that the new handle creates or opens, and for
    /// its transactions ([`begin`](Self::begin)) unless their options say otherwise. This handle
    /// and trees that are open already keep theirs. [`open`](Self::open) returns a handle with
    /// [`Durability::Sync`].
    ///
    /// ```
    /// use frondb::{Db, Durability, Options, TreeOptions};
    ///
    /// # fn main() -> frondb::Result<()> {
    /// # let dir = frondb_testkit::TempDir::new("doc");
    /// let db = Db::open(dir.path(), Options::default())?;
    /// let bulk = db.with_commit_sync(Durability::NoSync);
    /// let lines = bulk.create_tree("lines", TreeOptions::new())?;
    /// for number in 0..1000_u32 {
    ///     lines.put(&number.to_be_bytes(), b"a line")?; // waits for no disk
    /// }
    /// db.sync()?; // and now they are all durable
    /// # db.close()
    /// # }
    /// ```
    #[must_use]
    pub fn with_commit_sync(&self, durability: Durability) -> Self {
        Self { engine: Arc::clone(&self.engine), commit_sync: durability }
    }

    /// The default durability of this handle.
    #[must_use]
    pub fn commit_sync(&self) -> Durability {
        self.commit_sync
    }

    /// What [`Durability::Sync`] waits for now.
    #[must_use]
    pub fn sync_mode(&self) -> SyncMode {
        self.engine.sync_mode()
    }

    /// Changes what [`Durability::Sync`] waits for, for all handles and threads until the database
    /// is closed. The next open starts with its option [`sync`](Options::sync) again.
    ///
    /// Everything that was committed before the call is durable when it returns. So the promise of
    /// the former mode is kept, and after a change to [`SyncMode::Always`] a power loss cannot
    /// lose an earlier acknowledged commit.
    ///
    /// # Errors
    /// `Invalid` for a bad interval: nothing is changed. Otherwise as [`sync`](Self::sync); the
    /// mode is changed nevertheless.
    pub fn set_sync_mode(&self, mode: SyncMode) -> Result<()> {
        self.engine.set_sync_mode(mode)
    }

    /// Changes the approximate time that messages may be in the log only before they are flushed;
    /// see [`Options::checkpoint_period`]. For earlier commits the period starts now. Zero means no
    /// limit.
    ///
    /// # Errors
    /// `Invalid` for more than a year; `Closed`.
    pub fn set_checkpoint_period(&self, length: Duration) -> Result<()> {
        self.engine.set_checkpoint_period(length)
    }

    /// The current checkpoint period; zero means no limit.
    #[must_use]
    pub fn checkpoint_period(&self) -> Duration {
        self.engine.checkpoint_period()
    }

    /// Limits the bytes per second that flushes and merges write; 0 means no limit. Jobs that wait
    /// for the old limit continue immediately. Commits, bulk loads and the spilled writes of large
    /// transactions are not limited.
    ///
    /// # Errors
    /// `Closed`.
    pub fn set_background_bytes_per_second(&self, bytes: u64) -> Result<()> {
        self.engine.set_background_bytes_per_second(bytes)
    }

    /// The limit of bytes per second for flushes and merges; 0 means no limit.
    #[must_use]
    pub fn background_bytes_per_second(&self) -> u64 {
        self.engine.background_bytes_per_second()
    }

    /// Changes the memory budget; 0 means a quarter of the machine's memory. When the call returns
    /// the cache has shrunk to fit, and flushes of writes beyond the new write buffer have begun.
    /// Merges and bulk loads that are running keep what they have until they end.
    ///
    /// # Errors
    /// `Invalid` for less than 16 MiB or less than twice [`Options::write_buffer_bytes`]: nothing
    /// is changed. `Closed`, `Poisoned`.
    pub fn set_memory_bytes(&self, bytes: u64) -> Result<()> {
        let bytes = if bytes == 0 { Options::default_memory_bytes() } else { bytes };
        self.engine.set_memory_bytes(bytes)
    }

    /// Reports how much memory the program itself uses on behalf of the database, for example a
    /// server for its connections; initially 0. It counts in
    /// [`Stats::memory_used`](crate::Stats::memory_used), and the cache makes room for it, up to
    /// an eighth of the budget (a sixteenth of a budget below 64 MiB). May be called often, from
    /// any thread.
    ///
    /// # Errors
    /// `Closed`.
    pub fn set_outside_memory_bytes(&self, bytes: u64) -> Result<()> {
        self.engine.set_outside_memory_bytes(bytes)
    }

    /// Memory in use and its peak for each part of the engine: name, bytes, bytes. For
    /// measurements; the names may change.
    #[doc(hidden)]
    #[must_use]
    pub fn memory_parts(&self) -> Vec<(&'static str, u64, u64)> {
        self.engine.memory_parts()
    }

    /// The memory budget.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.engine.memory_bytes()
    }

    /// Makes everything committed so far durable.
    ///
    /// # Errors
    /// `Poisoned` if the sync failed: commits that were not durable before may be lost; `NoSpace`;
    /// `Closed`.
    pub fn sync(&self) -> Result<()> {
        self.engine.sync()
    }

    /// Takes a snapshot: a fixed state of the whole database to read at. Space that a live
    /// snapshot can still see is not freed.
    ///
    /// # Errors
    /// `Closed`.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.engine.snapshot()
    }

    /// Flushes all memtables to the trees and waits for it.
    ///
    /// # Errors
    /// `NoSpace`: nothing is lost, the log still has the data; `Poisoned`; `Closed`.
    pub fn flush(&self) -> Result<()> {
        self.engine.flush()
    }

    /// Flushes all memtables and frees the log, so that the next open replays nothing from before.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub fn checkpoint(&self) -> Result<()> {
        self.engine.checkpoint()
    }

    /// Whether no background work is overdue that would slow writers.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.engine.is_settled()
    }

    /// Waits until [`is_settled`](Self::is_settled), and frees the space of deleted and
    /// overwritten large values (over 64 KiB, stored outside of the rows), which otherwise happens
    /// after a second without writes. A leaf is rewritten only where the freed values are worth
    /// it: a few values in a much larger leaf stay until the leaf is rewritten for another reason.
    /// Values that an open snapshot or cursor may still see stay too.
    ///
    /// # Errors
    /// `NoSpace` while the disk is full; `Poisoned`; `Closed`.
    pub fn wait_settled(&self) -> Result<()> {
        self.engine.wait_settled()
    }

    /// Runs one background job if one is due, and returns whether it did. With
    /// [`background_threads(0)`](Options::background_threads), background work otherwise happens
    /// only inside of writes. `idle` also allows the jobs that normally wait until nothing is
    /// written.
    pub fn run_one(&self, idle: bool) -> bool {
        self.engine.run_one(idle)
    }

    /// The files of the database, ordered by kind and path.
    ///
    /// # Errors
    /// `Io`; `Closed`.
    pub fn files(&self) -> Result<Vec<FileInfo>> {
        self.engine.files()
    }

    /// Statistics of the whole database. `Display` shows them as a readable page.
    #[must_use]
    pub fn stats(&self) -> EngineStats {
        self.engine.stats()
    }

    /// Closes the database and unlocks its directory, even while handles exist; later calls on
    /// clones, trees and cursors fail with `Closed`. Before that it flushes what would take long to
    /// replay. A database that is dropped without `close` loses nothing; the next open replays the
    /// log.
    ///
    /// # Errors
    /// `Poisoned` or `Io` if something could not be written. The database is closed nevertheless,
    /// durable commits stay durable, and another `close` returns the same error.
    pub fn close(&self) -> Result<()> {
        self.engine.close()
    }

    pub(crate) fn trees(&self) -> Result<Vec<Tree>> {
        let open = |name: String| match self.open_tree(&name) {
            // The tree was dropped after it was listed.
            Err(error) if error.kind() == frondb_core::ErrorKind::NotFound => None,
            other => Some(other),
        };
        self.list_trees().into_iter().filter_map(open).collect::<Result<_, Error>>()
    }
}

/// The directory at `path`, or `None` if it does not exist.
pub(crate) fn existing(path: &Path, modes: Modes) -> Result<Option<SharedDevice>> {
    match PosixDevice::open(path) {
        Ok(device) => Ok(Some(Arc::new(device.with_modes(modes)))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The log directory of an existing database (`is_there`) or of one that is about to be created.
fn log_device(dir: &Path, is_there: bool, modes: Modes) -> Result<SharedDevice> {
    match existing(dir, modes)? {
        Some(device) if is_there => Ok(device),
        Some(device) => owner::check_free(&device).map(|()| device),
        None if is_there => Err(owner::missing(&dir.display().to_string())),
        None => Ok(Arc::new(PosixDevice::create_with(dir, modes)?)),
    }
}
