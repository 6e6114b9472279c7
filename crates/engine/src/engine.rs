//! [`Engine`]: an open database. Opens it, starts its workers, forwards calls to its parts, and
//! closes it.

use frondb_core::clock::SharedClock;
use frondb_core::executor::{JoinHandle, Priority, SharedExecutor};
use frondb_core::sync::{Arc, Mutex};
use frondb_core::{ErrorKind, Lsn, Result, SeqNo, TreeId};
use frondb_device::{CopyOnWriteDevice, DeviceLock, SharedDevice};
use frondb_locks::{DeadlockInfo, LockInfo, WaitHook, WaitInfo};

use frondb_wal::SyncMode;

use crate::damage::Damage;
use crate::layout::LOCK_FILE;
use crate::options::EngineOptions;
use crate::process_memory::ProcessMemory;
use crate::recovery::{self, Recovered, Recovery};
use crate::stats::{EngineStats, TreeStats};
use frondb_background::{Background, FEW_TREES, Load, LogPins, plan_all, worker};
use frondb_catalog::Catalog;
use frondb_commit::{Batch, CallGuard, CommitHook, Durability, guarded};
use frondb_records::TreeOptions;
use frondb_tree::estimate::split_keys;
use frondb_tree::estimate::{FirstEntries, count_first};
use frondb_tree::estimate::{RangeEstimate, RangeMessages, estimate, range_messages};
use frondb_tree::{
    Cursor, CursorOptions, DamagedRange, Health, Snapshot, Tree, VerifyReport, damaged_ranges, get,
    verify_tree,
};
use frondb_txn::{BatchLocks, Transactions, prepared};

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
    /// The result of closing.
    closed: Mutex<Result<()>>,
}

impl Engine {
    /// Opens the database in `device`, or creates one if the options allow it. The log is in
    /// `log_device`, or in a directory of `device`.
    ///
    /// # Errors
    /// `Busy` if another process (or this one) has it open; `NotFound`, `Exists` or `Invalid` as
    /// the options say; `Invalid` if the log belongs to another database; `Unsupported` if a newer
    /// version of FronDB wrote the database; `Corruption`; `Io`. With invalid options, or in a
    /// directory that holds other files, the call creates nothing.
    ///
    /// # Read-only
    /// With [`EngineOptions::read_only`] the files on the devices never change: the writes of
    /// recovery go to memory and a temporary file ([`CopyOnWriteDevice`]). The open shares the
    /// directory's lock with other readers, and takes no lock where the lock file does not exist.
    /// There are no workers, and every call that would write fails with `Invalid`.
    pub fn open(
        device: SharedDevice,
        log_device: Option<SharedDevice>,
        options: EngineOptions,
        clock: SharedClock,
        executor: &SharedExecutor,
    ) -> Result<Self> {
        Self::open_with(device, log_device, options, clock, executor, None)
    }

    /// Opens the readable part of a damaged database, read-only, and reports the damage. Salvage
    /// repairs a single byte of the manifest or the log if a 64-bit checksum proves the repair;
    /// otherwise it cuts the manifest or the log there. Missing parts of data files read as
    /// zeros, which match no checksum. The files on the devices do not change.
    ///
    /// # Errors
    /// As [`open`](Self::open), if nothing is left to read.
    pub fn salvage(
        device: SharedDevice,
        log_device: Option<SharedDevice>,
        options: EngineOptions,
        clock: SharedClock,
        executor: &SharedExecutor,
    ) -> Result<(Self, Damage)> {
        let mut damage = Damage::default();
        let options = EngineOptions { read_only: true, ..options };
        let engine =
            Self::open_with(device, log_device, options, clock, executor, Some(&mut damage))?;
        Ok((engine, damage))
    }

    fn open_with(
        device: SharedDevice,
        log_device: Option<SharedDevice>,
        options: EngineOptions,
        clock: SharedClock,
        executor: &SharedExecutor,
        mut damage: Option<&mut Damage>,
    ) -> Result<Self> {
        options.check()?;
        let (device, log_device, options) = if options.read_only {
            let over = |below| Arc::new(CopyOnWriteDevice::new(below)) as SharedDevice;
            let options = EngineOptions {
                create: false,
                create_new: false,
                background_threads: 0,
                ..options
            };
            (over(device), log_device.map(over), options)
        } else {
            (device, log_device, options)
        };
        let lock = match &mut damage {
            // Lock first: the files of a database that another process writes look damaged.
            Some(damage) => {
                let lock = device.lock(LOCK_FILE)?;
                damage.add(frondb_manifest::salvage(&device)?);
                lock
            }
            // Check first: locking creates a file, and a directory that may not become a database
            // must stay as it is.
            None => {
                if !recovery::exists(&device, &options)? {
                    recovery::check_new_log(&device, log_device.as_ref())?;
                }
                device.lock(LOCK_FILE)?
            }
        };
        let recovered =
            recovery::open(Arc::clone(&device), log_device, options.clone(), clock, damage)?;
        Self::start(recovered, lock, device, options, executor)
    }

    /// Plans the work of the recovered trees, locks for prepared transactions and starts the
    /// workers.
    fn start(
        recovered: Recovered,
        lock: DeviceLock,
        device: SharedDevice,
        options: EngineOptions,
        executor: &SharedExecutor,
    ) -> Result<Self> {
        let Recovered { parts, recovery, memory, log_device, lock: log_lock } = recovered;
        let engine = Self {
            txns: parts.transactions(&options),
            catalog: parts.catalog,
            memory,
            options,
            device,
            log_device,
            workers: Mutex::default(),
            recovery,
            locks: Mutex::new(vec![log_lock, lock]),
            closed: Mutex::new(Ok(())),
        };
        let background = engine.background();
        for tree in background.jobs.trees.all() {
            plan_all(&background.jobs, &background.queue, &tree);
            if !tree.version().frozen.is_empty() {
                background.queue.add_flush(&tree);
            }
        }
        frondb_txn::lock_again(&engine.txns)?;
        for i in 0..engine.options.background_threads {
            let background = Arc::clone(background);
            let task = Box::new(move || worker(&background));
            let handle = executor.spawn(&format!("frondb-{i}"), Priority::Background, task)?;
            engine.workers.lock().push(handle);
        }
        background.freeze_if_full(&[]);
        background.mark_recovered();
        Ok(engine)
    }

    /// Whether `device` has a database. If not, [`open`](Self::open) with these options would
    /// create one. Changes nothing.
    ///
    /// # Errors
    /// Those of `open` that show without opening.
    pub fn is_there(device: &SharedDevice, options: &EngineOptions) -> Result<bool> {
        options.check()?;
        recovery::exists(device, options)
    }

    /// What recovery found when the database was opened.
    #[must_use]
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    pub(crate) fn background(&self) -> &Arc<Background> {
        &self.txns.background
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

    /// Commits a batch atomically. Returns when the batch is as durable as `durability` asks; later
    /// reads see it.
    ///
    /// # Errors
    /// `Invalid` for a malformed or too large batch; `NotFound` if a tree was dropped; `NoSpace`
    /// (nothing has changed; the caller may retry); `LockTimeout` or `Deadlock` if a transaction
    /// holds locks on the keys (nothing has changed); `Poisoned`, `Closed`.
    pub fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        let _call = self.begin_call()?;
        batch.check_bytes(self.batch_bytes_max())?;
        let (txns, background) = (&self.txns, self.background());
        background.admit(Load::of(batch), &|| false)?;
        let locks = BatchLocks::take(txns, batch)?;
        let committed =
            background.lending_space(batch.frees_space(), || txns.committer.commit_batch(batch))?;
        drop(locks);
        background.committed(&committed, batch.len() as u64, batch.bytes() as u64);
        txns.committer.make_durable(committed.end, durability)
    }

    /// The current meaning of [`Durability::Sync`].
    #[must_use]
    pub fn sync_mode(&self) -> SyncMode {
        self.background().jobs.log.wal.sync_mode()
    }

    /// Changes what [`Durability::Sync`] waits for, and makes everything committed so far durable.
    ///
    /// # Errors
    /// `Invalid` for a bad interval: the mode stays as it was. `Poisoned`, `NoSpace`: the new
    /// mode is in force all the same. `Closed`.
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

    /// Flushes all memtables to runs and waits for the flushes.
    ///
    /// # Errors
    /// `NoSpace`, `Poisoned`, `Closed`.
    pub fn flush(&self) -> Result<()> {
        let _call = self.begin_call()?;
        self.background().flush()
    }

    /// Flushes, writes a snapshot of the manifest and frees the log: the next open replays nothing
    /// that was committed before this call.
    ///
    /// # Errors
    /// `NoSpace`, `Poisoned`, `Closed`.
    pub fn checkpoint(&self) -> Result<()> {
        let _call = self.begin_call()?;
        self.background().flush()?;
        // Prepared transactions move to the manifest and no longer need the log (rule 19).
        let moved = self.txns.prepared.unpin(Lsn::MAX);
        let result = moved
            .and_then(|()| self.background().trim_log())
            .and_then(|()| self.background().rotate_manifest(true))
            .map(|_| ());
        result.inspect_err(|error| self.health().poison_if_unknown(error))
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

    /// The guard that a call that may write holds while it runs. Calls do not nest.
    pub(crate) fn begin_call(&self) -> Result<CallGuard<'_>> {
        self.txns.calls.begin()
    }

    // --- Reading ---

    /// The value of `key`: the newest committed one, or the one at snapshot `at`.
    ///
    /// # Errors
    /// `Invalid` for a tree or snapshot of another database; `NotFound` if the tree was dropped;
    /// `Corruption`, `Io`, `Closed`.
    pub fn get(&self, tree: &Tree, key: &[u8], at: Option<&Snapshot>) -> Result<Option<Vec<u8>>> {
        let seq = self.check_read(tree, at)?;
        self.health().while_open(|| get::get(&self.txns.reads, tree.core(), key, seq))
    }

    /// Whether `key` has a value.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn exists(&self, tree: &Tree, key: &[u8], at: Option<&Snapshot>) -> Result<bool> {
        let seq = self.check_read(tree, at)?;
        self.health().while_open(|| get::exists(&self.txns.reads, tree.core(), key, seq))
    }

    /// The values of several keys at one point in time, in the order of `keys`.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn multi_get(
        &self,
        tree: &Tree,
        keys: &[&[u8]],
        at: Option<&Snapshot>,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let seq = self.check_read(tree, at)?;
        self.health().while_open(|| get::multi_get(&self.txns.reads, tree.core(), keys, seq))
    }

    /// A cursor over a tree, not yet positioned.
    pub fn cursor(&self, tree: &Tree, options: CursorOptions) -> Result<Cursor> {
        self.check_read(tree, options.snapshot.as_ref())?;
        Ok(Cursor::new(Arc::clone(&self.txns.reads), Arc::clone(tree.core()), options))
    }

    /// A snapshot of everything committed so far.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.txns.snapshot()
    }

    /// An estimate of the contents of `[lo, hi)`, in O(height).
    pub fn estimate(&self, tree: &Tree, lo: &[u8], hi: Option<&[u8]>) -> Result<RangeEstimate> {
        self.check_read(tree, None)?;
        self.health().while_open(|| {
            // Take the version before the visible SeqNo, as every read does.
            let version = tree.core().version();
            estimate(&version, self.txns.reads.oracle.visible(), lo, hi)
        })
    }

    /// Counts the entries among the first `max_keys` keys of `[lo, hi)`.
    pub fn count_first(
        &self,
        tree: &Tree,
        lo: &[u8],
        hi: Option<&[u8]>,
        max_keys: u64,
    ) -> Result<FirstEntries> {
        self.check_read(tree, None)?;
        if hi.is_some_and(|hi| hi <= lo) {
            return Ok(FirstEntries::none());
        }
        self.health().while_open(|| {
            let version = tree.core().version();
            count_first(&version, self.txns.reads.oracle.visible(), lo, hi, max_keys)
        })
    }

    /// The approximate number of messages in `[lo, hi)`, obsolete ones included, from counters
    /// alone.
    pub fn messages(&self, tree: &Tree, lo: &[u8], hi: Option<&[u8]>) -> Result<RangeMessages> {
        self.check_read(tree, None)?;
        if hi.is_some_and(|hi| hi <= lo) {
            return Ok(RangeMessages::default());
        }
        self.health().while_open(|| range_messages(&tree.core().version(), lo, hi))
    }

    /// Up to `parts - 1` keys that cut a tree into parts with about the same number of messages
    /// each, in O(parts * height).
    pub fn split_keys(&self, tree: &Tree, parts: usize) -> Result<Vec<Vec<u8>>> {
        self.check_read(tree, None)?;
        self.health().while_open(|| split_keys(&tree.core().version(), parts))
    }

    fn check_read(&self, tree: &Tree, at: Option<&Snapshot>) -> Result<Option<SeqNo>> {
        self.txns.reads.check_read(tree, at)
    }

    // --- Limits, statistics, checks ---

    /// Changes the rate limit of flushes and merges, bytes written per second; 0 means no limit.
    ///
    /// # Errors
    /// `Closed`.
    pub fn set_background_bytes_per_second(&self, bytes: u64) -> Result<()> {
        self.health().check_open()?;
        self.background().jobs.throttle.set_limit(bytes, self.txns.reads.now());
        Ok(())
    }

    /// The rate limit of flushes and merges, bytes written per second; 0 means no limit.
    #[must_use]
    pub fn background_bytes_per_second(&self) -> u64 {
        self.background().jobs.throttle.limit()
    }

    /// All locks that transactions hold now.
    #[must_use]
    pub fn locks(&self) -> Vec<LockInfo> {
        self.txns.locks.locks()
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

    /// Statistics of one tree.
    pub fn tree_stats(&self, tree: &Tree) -> Result<TreeStats> {
        self.check_read(tree, None)?;
        Ok(crate::stats::collect::tree_stats(tree.core()))
    }

    /// Reads and checks all data of a tree; see [`verify_tree`]. `progress` gets the bytes done
    /// and the total, and cancels the check by returning false.
    pub fn verify_tree(
        &self,
        tree: &Tree,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<VerifyReport> {
        self.check_read(tree, None)?;
        self.health().while_open(|| verify_tree(&self.txns.reads, tree.core(), progress))
    }

    /// Reads all data of a tree and returns its damaged ranges, sorted by first key; they may
    /// overlap. `progress` gets the bytes done and the total.
    ///
    /// # Errors
    /// `Closed`; `NotFound` if the tree was dropped.
    pub fn damaged_ranges(
        &self,
        tree: &Tree,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Vec<DamagedRange>> {
        damaged_ranges(&self.txns.reads, tree, progress)
    }

    /// Whether no flush or merge that counts as debt is due or running.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.background().is_settled()
    }

    /// Waits until [`is_settled`](Self::is_settled), and until the space of deleted large values
    /// is freed where it is worth rewriting the leaves that refer to them.
    ///
    /// # Errors
    /// `NoSpace` while the disk stays full; `Poisoned`, `Closed`.
    pub fn wait_settled(&self) -> Result<()> {
        self.background().wait_settled(|| self.begin_call())
    }

    /// Runs one background task, if one is due; for engines without background threads. `idle`
    /// also allows the tasks that otherwise run only while there are no writes. Returns whether a
    /// task ran.
    pub fn run_one(&self, idle: bool) -> bool {
        self.begin_call().is_ok_and(|_call| self.background().run_one(idle))
    }

    /// Flushes memtables whose replay would take long, stops the workers and closes the database.
    /// Every later call fails with `Closed`, and the directory may be opened again, also if this
    /// call fails. A second call returns the result of the first.
    pub fn close(&self) -> Result<()> {
        // Held to the end: a concurrent close returns only when the database is closed.
        let mut locks = self.locks.lock();
        if self.health().set_closed() {
            self.txns.calls.wait();
            *self.closed.lock() = self.finish();
            locks.clear();
        }
        self.closed.lock().clone()
    }

    /// Flushes, stops the workers and writes what makes the next open short. REQUIRES: no call is
    /// in progress and none can begin.
    fn finish(&self) -> Result<()> {
        let background = self.background();
        if self.options.read_only {
            self.stop();
            return Ok(());
        }
        let healthy = self.health().check_unpoisoned();
        let flushed = healthy.and_then(|()| {
            // Do not flush thousands of small trees: replaying them from the log is as fast.
            let few = background.jobs.trees.len() <= FEW_TREES;
            self.background().freeze_all(if few { 0 } else { frondb_background::RELOG_BYTES_MAX });
            self.background().wait_flushed()
        });
        let flushed = match flushed {
            // Harmless: the log has the messages that could not be flushed.
            Err(error) if error.kind() == ErrorKind::NoSpace => Ok(()),
            other => other,
        };
        self.stop();
        flushed?;
        self.unpin_prepared()?;
        self.background().trim_log()?;
        self.background().rotate_manifest(false)?;
        background.jobs.log.wal.secure()?;
        self.background().idle_maintenance();
        // From here on, a cut or damaged manifest is damage and never looks like a torn tail.
        background.jobs.edits.manifest.secure_all()?;
        self.health().check_unpoisoned()
    }

    /// Moves prepared transactions that pin much log to the manifest, so that the next open does
    /// not replay a long log.
    fn unpin_prepared(&self) -> Result<()> {
        let jobs = &self.background().jobs;
        let long = jobs.shares.now().write_buffer_bytes() / 16;
        let limit = Lsn(jobs.log.wal.end_lsn().get().saturating_sub(long));
        match self.txns.prepared.unpin(limit) {
            // Harmless: the log still has the transaction.
            Err(error) if error.kind() == ErrorKind::NoSpace => Ok(()),
            other => other,
        }
    }

    fn stop(&self) {
        self.background().queue.stop();
        for worker in self.workers.lock().drain(..) {
            if let Err(error) = worker.join() {
                tracing::error!(%error, "a background worker ended badly");
            }
        }
        drop(self.background().queue.take_parked());
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Committed data is in the log, so an unclosed engine loses nothing: no flush here.
        self.health().set_closed();
        self.stop();
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Engine({})", self.device.describe())
    }
}
