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

/// An open database. Cheap to clone; every clone is the same database. Any thread may use it.
///
/// # When a write is durable
/// Three choices, from the one write to all: the [`Durability`] given to [`write`](Self::write); the
/// handle's, for writes that are not given one ([`with_commit_sync`](Self::with_commit_sync)); and what
/// [`Durability::Sync`] itself waits for, of the whole database ([`set_sync_mode`](Self::set_sync_mode)).
#[derive(Clone, Debug)]
pub struct Db {
    engine: Arc<Engine>,
    /// What single writes of this handle's trees wait for.
    commit_sync: Durability,
}

impl Db {
    /// Opens the database in a directory, or makes one there.
    ///
    /// # Errors
    /// `Busy` ("in use by pid N") if it is open already; `NotFound` if it does not exist and is
    /// not to be made; `Invalid` if the directory holds something else, or if the log is
    /// not in the log directory; `Unsupported` if a newer
    /// version wrote it; `Corruption`; `Io`.
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
        // The log's directory first: one that is another database's leaves nothing behind.
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

    /// Opens a database on any device, with any clock and threads: for the project's own
    /// simulations. Its types are of inner crates and no part of the public interface.
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

    /// What was recovered when the database was opened.
    #[must_use]
    pub fn recovery(&self) -> &Recovery {
        self.engine.recovery()
    }

    /// Makes an empty tree. It is durable when this returns.
    ///
    /// # Errors
    /// `Exists`; `Invalid` for a bad name or option, or an update function that is not registered.
    pub fn create_tree(&self, name: &str, options: TreeOptions) -> Result<Tree> {
        let options =
            frondb_engine::TreeOptions { trunk: options.trunk, update_fn: options.update_fn };
        let tree = self.engine.create_tree(name, options)?;
        Ok(Tree::new(Arc::clone(&self.engine), tree, self.commit_sync))
    }

    /// The tree of this name.
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

    /// Gives a tree another name. It is durable when this returns; handles stay good.
    ///
    /// # Errors
    /// `NotFound`, `Exists`, `Invalid`.
    pub fn rename_tree(&self, from: &str, to: &str) -> Result<()> {
        self.engine.rename_tree(from, to)
    }

    /// Removes a tree with all it holds, at once. It is durable when this returns; cursors that
    /// are open on it go on.
    ///
    /// # Errors
    /// `NotFound`; `Busy` if a prepared transaction has written to it: commit it or roll it back first.
    pub fn drop_tree(&self, name: &str) -> Result<()> {
        self.engine.drop_tree(name)
    }

    /// How many bytes, as [`Batch::memory_bytes`] counts them, a batch may have: a quarter of the
    /// memory option, and at most 512 MiB.
    #[must_use]
    pub fn batch_bytes_max(&self) -> u64 {
        self.engine.batch_bytes_max()
    }

    /// Commits a batch: all of it or nothing. Where transactions have locks it waits for them as
    /// a transaction would; elsewhere it takes none.
    ///
    /// # Errors
    /// `LockTimeout` or `Deadlock` where it met locks of transactions: nothing changed;
    /// `Invalid` for what is wrong with the batch, or if it is too large; `NotFound` if a tree was dropped; `NoSpace`
    /// (nothing changed, may be repeated); `Poisoned`; `Closed`.
    pub fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        self.engine.write(&batch.inner, durability)
    }

    /// Begins a transaction; see [`Transaction`]. It costs next to nothing until it writes or
    /// locks.
    ///
    /// # Errors
    /// `Invalid` for options that do not go together
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

    /// A snapshot that sees all that transactions have written to `trees` before this call. It waits up to `timeout`
    /// for each to end, prepared ones too, and keeps others from writing there for the moment it takes.
    ///
    /// For who builds an index of existing data: create its tree, have everybody write to it from now
    /// on, then read the data at this snapshot: no row is missed.
    ///
    /// # Errors
    /// `Busy` if the time was up and a prepared transaction has written there: commit it or roll it back first;
    /// `LockTimeout`; `Deadlock` if there was one when the time was up; `Invalid` for a tree of another
    /// database; `NotFound` if one was dropped; `Closed`.
    pub fn snapshot_behind_writers(&self, trees: &[&Tree], timeout: Duration) -> Result<Snapshot> {
        let trees: Vec<_> = trees.iter().map(|tree| tree.inner.clone()).collect();
        self.engine.snapshot_behind_writers(&trees, timeout)
    }

    /// The names of all prepared transactions, sorted: those of this process, and those that the
    /// last one left behind.
    #[must_use]
    pub fn prepared(&self) -> Vec<Vec<u8>> {
        self.engine.prepared().into_iter().map(Vec::from).collect()
    }

    /// Commits a prepared transaction by its name.
    ///
    /// # Errors
    /// `NotFound` if none of this name is prepared; `NoSpace`: it is still prepared, try again;
    /// `Poisoned`, `Closed`.
    pub fn commit_prepared(&self, xid: &[u8], durability: Durability) -> Result<()> {
        self.engine.commit_prepared(xid, durability)
    }

    /// Rolls a prepared transaction back by its name; durable when it returns.
    ///
    /// # Errors
    /// As [`commit_prepared`](Self::commit_prepared).
    pub fn rollback_prepared(&self, xid: &[u8]) -> Result<()> {
        self.engine.roll_back_prepared(xid)
    }

    /// Tells `hook` of every commit from now on, in their order, for a log of one's own; `None` for
    /// nobody. It is called before the commit is durable and while no other can happen: it must be
    /// quick, and must not call the database. A panic of the hook is logged and changes nothing about the
    /// commit, which has happened.
    pub fn set_commit_hook(&self, hook: Option<CommitHook>) {
        self.engine.set_commit_hook(hook);
    }

    /// Tells `hook` of every wait for a lock that begins from now on, and of those that get longer, for who
    /// has an order of its own for transactions; `None` for nobody. It is called by the thread that waits,
    /// before it sleeps: it may cancel transactions ([`Transaction::canceller`](crate::Transaction::canceller)),
    /// and must not call the one that waits. A panic of the hook is logged and changes nothing.
    pub fn set_wait_hook(&self, hook: Option<WaitHook>) {
        self.engine.set_wait_hook(hook);
    }

    /// All transactions that have not ended, active ones and prepared ones, by number. Not one moment:
    /// they go on while it is made. For status pages: it takes time with their number, and keeps none of
    /// them waiting.
    ///
    /// Numbers in [`locks`](Self::locks) that are not here are of batches that met locks, and of index
    /// builds.
    #[must_use]
    pub fn transactions(&self) -> Vec<TransactionInfo> {
        self.engine.transactions()
    }

    /// All locks that transactions hold just now, in no order. For status pages and to find out
    /// who is waited for.
    #[must_use]
    pub fn locks(&self) -> Vec<LockInfo> {
        self.engine.locks()
    }

    /// All waits for locks just now, with who is waited for.
    #[must_use]
    pub fn lock_waits(&self) -> Vec<WaitInfo> {
        self.engine.lock_waits()
    }

    /// The last deadlock since the database was opened, with what each transaction of the circle waited
    /// for. Kept until the next one.
    #[must_use]
    pub fn last_deadlock(&self) -> Option<DeadlockInfo> {
        self.engine.last_deadlock()
    }

    /// A handle of the same database whose trees ([`create_tree`](Self::create_tree),
    /// [`open_tree`](Self::open_tree)) make each single write ([`Tree::put`] and its like) as durable as
    /// this, and so its transactions ([`begin`](Self::begin)) unless their options say otherwise. The handle it is called on, and trees that are open, stay as they are. A new database's
    /// handle has [`Durability::Sync`].
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

    /// How durable this handle makes writes that are not told.
    #[must_use]
    pub fn commit_sync(&self) -> Durability {
        self.commit_sync
    }

    /// What [`Durability::Sync`] waits for now.
    #[must_use]
    pub fn sync_mode(&self) -> SyncMode {
        self.engine.sync_mode()
    }

    /// Changes what [`Durability::Sync`] waits for, for all handles and threads, until the database is
    /// closed: the next open begins with its option [`sync`](Options::sync) again.
    ///
    /// Everything that was committed before this was called is durable when it returns. So no promise
    /// of the former mode is left open, and behind a change to [`SyncMode::Always`] nothing that was
    /// acknowledged earlier can be lost by power loss.
    ///
    /// # Errors
    /// `Invalid` for a bad interval: nothing is changed. As [`sync`](Self::sync): the mode is changed all
    /// the same.
    pub fn set_sync_mode(&self, mode: SyncMode) -> Result<()> {
        self.engine.set_sync_mode(mode)
    }

    /// Changes how long a record of the log may be the only place of its messages, about; see
    /// [`Options::checkpoint_period`]. What was committed before counts from now on. Zero for no limit.
    ///
    /// # Errors
    /// `Invalid` for more than a year; `Closed`.
    pub fn set_checkpoint_period(&self, length: Duration) -> Result<()> {
        self.engine.set_checkpoint_period(length)
    }

    /// The period of checkpoints now; zero for none.
    #[must_use]
    pub fn checkpoint_period(&self) -> Duration {
        self.engine.checkpoint_period()
    }

    /// Changes how many bytes a second flushes and merges may write; 0 for no limit. Those that wait go on
    /// at once. Commits, bulk loads and the parts of large transactions that are written before they
    /// commit have no limit of their own.
    ///
    /// # Errors
    /// `Closed`.
    pub fn set_background_bytes_per_second(&self, bytes: u64) -> Result<()> {
        self.engine.set_background_bytes_per_second(bytes)
    }

    /// How many bytes a second flushes and merges may write; 0 for no limit.
    #[must_use]
    pub fn background_bytes_per_second(&self) -> u64 {
        self.engine.background_bytes_per_second()
    }

    /// Changes how much memory the database may use; 0 for a quarter of the machine's. When it returns,
    /// the cache has given back what is too much, and writes beyond the new write buffer are being
    /// flushed. Merges and bulk loads that run end with what they began with.
    ///
    /// # Errors
    /// `Invalid` for less than 16 MiB, or than twice [`Options::write_buffer_bytes`]: nothing is
    /// changed. `Closed`, `Poisoned`.
    pub fn set_memory_bytes(&self, bytes: u64) -> Result<()> {
        let bytes = if bytes == 0 { Options::default_memory_bytes() } else { bytes };
        self.engine.set_memory_bytes(bytes)
    }

    /// Says how much memory the program holds for the database's sake, as a server does for its connections;
    /// 0 at the start. It counts as the database's own in [`Stats::memory_used`], up to an eighth of the memory
    /// (a sixteenth of less than 64 MiB): the cache makes room for it. May be called often, from any thread.
    ///
    /// # Errors
    /// `Closed`.
    pub fn set_outside_memory_bytes(&self, bytes: u64) -> Result<()> {
        self.engine.set_outside_memory_bytes(bytes)
    }

    /// What each part of the engine has of the memory, and the most it ever had: name, bytes, bytes. For
    /// measuring; the names may change.
    #[doc(hidden)]
    #[must_use]
    pub fn memory_parts(&self) -> Vec<(&'static str, u64, u64)> {
        self.engine.memory_parts()
    }

    /// How much memory the database may use.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.engine.memory_bytes()
    }

    /// Makes everything committed so far durable.
    ///
    /// # Errors
    /// `Poisoned` if the disk failed to: then what was not durable before may be lost; `NoSpace`; `Closed`.
    pub fn sync(&self) -> Result<()> {
        self.engine.sync()
    }

    /// A fixed state of the whole database to read at. While it lives, space of what it still
    /// sees is not given back.
    ///
    /// # Errors
    /// `Closed`.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.engine.snapshot()
    }

    /// Writes what is in memory to the trees, and waits for it.
    ///
    /// # Errors
    /// `NoSpace` (nothing is lost, the log has it); `Poisoned`; `Closed`.
    pub fn flush(&self) -> Result<()> {
        self.engine.flush()
    }

    /// Flushes and lets go of the log: the next open replays nothing from before.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub fn checkpoint(&self) -> Result<()> {
        self.engine.checkpoint()
    }

    /// Whether no background work that writers owe is due.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.engine.is_settled()
    }

    /// Waits until [`is_settled`](Self::is_settled), and has the space of deleted and overwritten large values (64 KiB or
    /// more, which lie outside of the rows) given back, as otherwise happens when nothing is written for a second. Asks for
    /// nothing else. Space comes back where it is worth the leaves that are written anew for it: a few values among
    /// much larger leaves stay until those are written for another reason, as do values that an open snapshot or cursor
    /// may still see.
    ///
    /// # Errors
    /// `NoSpace` while the disk is full; `Poisoned`; `Closed`.
    pub fn wait_settled(&self) -> Result<()> {
        self.engine.wait_settled()
    }

    /// Does one piece of background work if one is due; with
    /// [`background_threads(0)`](Options::background_threads) the only way it gets done outside of
    /// writes. `idle` lets in what is otherwise done only when nothing is written.
    pub fn run_one(&self, idle: bool) -> bool {
        self.engine.run_one(idle)
    }

    /// The files that the database owns, by kind and path.
    ///
    /// # Errors
    /// `Io`; `Closed`.
    pub fn files(&self) -> Result<Vec<FileInfo>> {
        self.engine.files()
    }

    /// Figures of the whole database. Its `Display` is one readable page.
    #[must_use]
    pub fn stats(&self) -> EngineStats {
        self.engine.stats()
    }

    /// Flushes what would take long to replay, closes and frees the directory for another open, while
    /// handles may still be around. Later calls on any clone, and on trees
    /// and cursors, fail with `Closed`. A database that is dropped without this loses nothing; its
    /// next open replays the log.
    ///
    /// # Errors
    /// `Poisoned` or `Io` if something could not be written: it is closed all the same, what was durable stays so,
    /// and closing again tells the same.
    pub fn close(&self) -> Result<()> {
        self.engine.close()
    }

    pub(crate) fn trees(&self) -> Result<Vec<Tree>> {
        let open = |name: String| match self.open_tree(&name) {
            // Dropped since it was listed.
            Err(error) if error.kind() == frondb_core::ErrorKind::NotFound => None,
            other => Some(other),
        };
        self.list_trees().into_iter().filter_map(open).collect::<Result<_, Error>>()
    }
}

/// The directory at `path`; `None` if there is none.
pub(crate) fn existing(path: &Path, modes: Modes) -> Result<Option<SharedDevice>> {
    match PosixDevice::open(path) {
        Ok(device) => Ok(Some(Arc::new(device.with_modes(modes)))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The directory of the log: of a database that is there, or of one that is to be made.
fn log_device(dir: &Path, is_there: bool, modes: Modes) -> Result<SharedDevice> {
    match existing(dir, modes)? {
        Some(device) if is_there => Ok(device),
        Some(device) => owner::check_free(&device).map(|()| device),
        None if is_there => Err(owner::missing(&dir.display().to_string())),
        None => Ok(Arc::new(PosixDevice::create_with(dir, modes)?)),
    }
}
