//! [`Engine`]: an open database, and what its users and its workers share.

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
use frondb_background::{
    Background, CHECK_EVERY, FEW_TREES, FULL_TRIES, Load, LogPins, plan_all, worker,
};
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
/// A call that may write keeps the database from being closed under it: see [`frondb_commit::Calls`].
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
    /// The locks of the directory and of the log's; none once closed.
    locks: Mutex<Vec<DeviceLock>>,
    /// How closing ended.
    closed: Mutex<Result<()>>,
}

impl Engine {
    /// Opens the database in `device`, or makes one if the options say so. Its log lives in
    /// `log_device`, or in a directory of `device`.
    ///
    /// # Errors
    /// `Busy` if another process (or this one) has it open; `NotFound`, `Exists` or `Invalid` as
    /// the options say; `Invalid` if the log is not this database's; `Unsupported` if a newer
    /// version wrote it; `Corruption`; `Io`. Nothing is made in a directory that holds something
    /// else, or with invalid options.
    ///
    /// # Read-only
    /// With [`EngineOptions::read_only`] nothing below the devices is changed, not even by recovery, whose writes
    /// go to memory and a temporary file ([`CopyOnWriteDevice`]). The directory's lock is shared with other
    /// readers, and not taken where its file does not exist. There are no workers, and every call that would
    /// write is `Invalid`.
    pub fn open(
        device: SharedDevice,
        log_device: Option<SharedDevice>,
        options: EngineOptions,
        clock: SharedClock,
        executor: &SharedExecutor,
    ) -> Result<Self> {
        Self::open_with(device, log_device, options, clock, executor, None)
    }

    /// Opens what can be read of a damaged database, read-only, and says what was met. A byte of manifest or log
    /// that a checksum of 64 bits proves is put right; where that does not help, manifest and log are cut there,
    /// and missing parts of data files read as zeros, which no checksum fits. Nothing below is changed.
    ///
    /// # Errors
    /// As [`open`](Self::open), where nothing is left to read.
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
            // The lock first: the files of a database that another process writes look damaged.
            Some(damage) => {
                let lock = device.lock(LOCK_FILE)?;
                damage.add(frondb_manifest::salvage(&device)?);
                lock
            }
            // A lock makes a file, which only a directory that may become a database gets.
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

    /// Begins the background work of what recovery has made.
    fn start(
        recovered: Recovered,
        lock: DeviceLock,
        device: SharedDevice,
        options: EngineOptions,
        executor: &SharedExecutor,
    ) -> Result<Self> {
        let Recovered { parts, recovery, beside, log_device, lock: log_lock } = recovered;
        let engine = Self {
            txns: parts.transactions(&options),
            catalog: parts.catalog,
            memory: ProcessMemory::new(beside, options.memory()),
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

    /// Whether `device` has a database that [`open`](Self::open) would open; otherwise it would make
    /// one. Changes nothing.
    ///
    /// # Errors
    /// As `open`, as far as can be told without opening.
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

    /// The options it was opened with.
    #[must_use]
    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    // --- Trees ---

    /// Makes an empty tree; durable when it returns.
    pub fn create_tree(&self, name: &str, options: TreeOptions) -> Result<Tree> {
        let _call = self.begin_call()?;
        self.catalog.create(name, options).map(Tree::new)
    }

    /// The tree of this name.
    pub fn open_tree(&self, name: &str) -> Result<Tree> {
        self.catalog.open(name).map(Tree::new)
    }

    /// Names of all trees, sorted.
    #[must_use]
    pub fn list_trees(&self) -> Vec<String> {
        self.catalog.list()
    }

    /// Gives a tree another name; durable when it returns. Handles stay good.
    pub fn rename_tree(&self, from: &str, to: &str) -> Result<()> {
        let _call = self.begin_call()?;
        self.catalog.rename(from, to)
    }

    /// Removes a tree; durable when it returns. Cursors that are open on it go on.
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

    /// How many bytes ([`Batch::memory_bytes`]) a batch may have: a quarter of the memory, and at
    /// most 512 MiB.
    #[must_use]
    pub fn batch_bytes_max(&self) -> u64 {
        self.background().jobs.shares.now().batch_bytes()
    }

    /// Commits a batch: all of it or nothing. Returns when it is as durable as asked; later reads
    /// see it.
    ///
    /// # Errors
    /// `Invalid` for what is wrong with the batch, or if it is too large; `NotFound` if a tree was
    /// dropped; `NoSpace` (nothing was changed; may be repeated); `Poisoned`, `Closed`.
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

    /// What [`Durability::Sync`] waits for now.
    #[must_use]
    pub fn sync_mode(&self) -> SyncMode {
        self.background().jobs.log.wal.sync_mode()
    }

    /// Changes what [`Durability::Sync`] waits for, and makes everything committed so far durable.
    ///
    /// # Errors
    /// `Invalid` for a bad interval: nothing is changed. `Poisoned`, `NoSpace`: the mode is changed
    /// all the same. `Closed`.
    pub fn set_sync_mode(&self, mode: SyncMode) -> Result<()> {
        let _call = self.begin_call()?;
        let result = self.background().jobs.log.wal.set_sync_mode(mode);
        let result = result.inspect_err(|error| self.health().poison_if_unknown(error));
        // A worker may be waiting for as long as the old mode allowed.
        self.background().sync_mode_changed();
        result
    }

    /// Makes everything committed so far durable, also in modes that do not sync by themselves.
    pub fn sync(&self) -> Result<()> {
        let _call = self.begin_call()?;
        self.background().jobs.log.wal.sync().inspect_err(|error| self.health().poison(error))
    }

    /// Writes all memtables to runs and waits for it.
    pub fn flush(&self) -> Result<()> {
        let _call = self.begin_call()?;
        self.background().flush()
    }

    /// Flushes, writes a snapshot of the manifest and lets go of the log: the next open replays
    /// nothing that was committed before this call.
    pub fn checkpoint(&self) -> Result<()> {
        let _call = self.begin_call()?;
        self.background().flush()?;
        // What is prepared is pending from now on, and needs no log (rule 19).
        let moved = self.txns.prepared.unpin(Lsn::MAX);
        let result = moved
            .and_then(|()| self.background().trim_log())
            .and_then(|()| self.background().rotate_manifest(true))
            .map(|_| ());
        result.inspect_err(|error| self.health().poison_if_unknown(error))
    }

    /// Tells `hook` of every commit from now on, in their order; `None` for nobody. It is called
    /// while no other commit can happen, before the commit is durable: it must be quick, and must
    /// not call the engine.
    pub fn set_commit_hook(&self, hook: Option<CommitHook>) {
        self.txns.committer.set_hook(hook);
    }

    /// Tells `hook` of every wait for a lock that begins from now on, and of those that get longer; `None`
    /// for nobody. See [`WaitHook`].
    pub fn set_wait_hook(&self, hook: Option<WaitHook>) {
        self.txns.locks.set_wait_hook(hook.map(guarded));
    }

    /// To be held by a call that may write. Calls do not nest.
    pub(crate) fn begin_call(&self) -> Result<CallGuard<'_>> {
        self.txns.calls.begin()
    }

    // --- Reading ---

    /// The value of `key`, now or at a snapshot.
    pub fn get(&self, tree: &Tree, key: &[u8], at: Option<&Snapshot>) -> Result<Option<Vec<u8>>> {
        let seq = self.check_read(tree, at)?;
        self.health().while_open(|| get::get(&self.txns.reads, tree.core(), key, seq))
    }

    /// Whether `key` has a value.
    pub fn exists(&self, tree: &Tree, key: &[u8], at: Option<&Snapshot>) -> Result<bool> {
        let seq = self.check_read(tree, at)?;
        self.health().while_open(|| get::exists(&self.txns.reads, tree.core(), key, seq))
    }

    /// The values of several keys as of one moment, in the order of the keys.
    pub fn multi_get(
        &self,
        tree: &Tree,
        keys: &[&[u8]],
        at: Option<&Snapshot>,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let seq = self.check_read(tree, at)?;
        self.health().while_open(|| get::multi_get(&self.txns.reads, tree.core(), keys, seq))
    }

    /// A cursor over a tree, not positioned.
    pub fn cursor(&self, tree: &Tree, options: CursorOptions) -> Result<Cursor> {
        self.check_read(tree, options.snapshot.as_ref())?;
        Ok(Cursor::new(Arc::clone(&self.txns.reads), Arc::clone(tree.core()), options))
    }

    /// A snapshot of everything committed so far.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.txns.snapshot()
    }

    /// About how much `[lo, hi)` holds, in O(height).
    pub fn estimate(&self, tree: &Tree, lo: &[u8], hi: Option<&[u8]>) -> Result<RangeEstimate> {
        self.check_read(tree, None)?;
        self.health().while_open(|| {
            // In this order, as for every read.
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

    /// How many messages `[lo, hi)` holds, about, obsolete ones too: by counts alone.
    pub fn messages(&self, tree: &Tree, lo: &[u8], hi: Option<&[u8]>) -> Result<RangeMessages> {
        self.check_read(tree, None)?;
        if hi.is_some_and(|hi| hi <= lo) {
            return Ok(RangeMessages::default());
        }
        self.health().while_open(|| range_messages(&tree.core().version(), lo, hi))
    }

    /// Up to `parts - 1` keys that cut a tree into parts of about as many messages, in
    /// O(parts * height).
    pub fn split_keys(&self, tree: &Tree, parts: usize) -> Result<Vec<Vec<u8>>> {
        self.check_read(tree, None)?;
        self.health().while_open(|| split_keys(&tree.core().version(), parts))
    }

    fn check_read(&self, tree: &Tree, at: Option<&Snapshot>) -> Result<Option<SeqNo>> {
        self.txns.reads.check_read(tree, at)
    }

    // --- Looking after it ---

    /// Changes how many bytes a second flushes and merges may write; 0 for no limit.
    ///
    /// # Errors
    /// `Closed`.
    pub fn set_background_bytes_per_second(&self, bytes: u64) -> Result<()> {
        self.health().check_open()?;
        self.background().jobs.throttle.set_limit(bytes, self.txns.reads.now());
        Ok(())
    }

    /// How many bytes a second flushes and merges may write; 0 for no limit.
    #[must_use]
    pub fn background_bytes_per_second(&self) -> u64 {
        self.background().jobs.throttle.limit()
    }

    /// All locks that transactions hold just now.
    #[must_use]
    pub fn locks(&self) -> Vec<LockInfo> {
        self.txns.locks.locks()
    }

    /// All waits for locks just now.
    #[must_use]
    pub fn lock_waits(&self) -> Vec<WaitInfo> {
        self.txns.locks.waits()
    }

    /// The last deadlock since it was opened.
    #[must_use]
    pub fn last_deadlock(&self) -> Option<DeadlockInfo> {
        self.txns.locks.last_deadlock()
    }

    /// Figures of the whole engine.
    #[must_use]
    pub fn stats(&self) -> EngineStats {
        let mut stats = EngineStats::default();
        crate::maintenance::fill_parts(&self.catalog, &self.txns, &mut stats);
        crate::maintenance::fill_background(self.background(), &mut stats);
        stats
    }

    /// Figures of one tree.
    pub fn tree_stats(&self, tree: &Tree) -> Result<TreeStats> {
        self.check_read(tree, None)?;
        Ok(crate::maintenance::tree_stats(tree.core()))
    }

    /// Reads everything of a tree and checks it; see `verify`.
    pub fn verify_tree(
        &self,
        tree: &Tree,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<VerifyReport> {
        self.check_read(tree, None)?;
        self.health().while_open(|| verify_tree(&self.txns.reads, tree.core(), progress))
    }

    /// Reads all of a tree and gives the ranges that are damaged, by their first keys; they may overlap.
    /// `progress` is given bytes done and to do.
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

    /// Whether no flush or merge that writers owe is due or under way.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.background().plan_hints_if_manual();
        self.background().queue.due().is_settled()
    }

    /// Waits until [`is_settled`](Self::is_settled), and until deleted large values are given back whose space is worth
    /// the rewrite of the leaves that name them.
    pub fn wait_settled(&self) -> Result<()> {
        let call = self.begin_call()?;
        self.background().plan_values();
        drop(call);
        let work = &self.background().queue;
        work.want_values(true);
        let waited = self.wait_for_work();
        work.want_values(false);
        waited
    }

    fn wait_for_work(&self) -> Result<()> {
        let mut tries = 0;
        loop {
            let _call = self.begin_call()?;
            if self.background().is_manual() {
                self.background().try_space();
                self.background().run_pending();
            }
            let settled = self
                .background()
                .queue
                .wait_until(CHECK_EVERY, &mut |due| due.is_settled() && due.values_jobs == 0);
            let Some(full) = self.health().full() else {
                if settled {
                    return Ok(());
                }
                continue;
            };
            // Merges may be about to free what is missing, or have, and it is to be tried.
            if tries == FULL_TRIES || self.background().is_manual() && tries > 0 {
                return Err(full);
            }
            tries += 1;
            if settled && !self.background().is_manual() {
                self.background().queue.wait_until(CHECK_EVERY, &mut |_| false);
            }
        }
    }

    /// Does one piece of background work, if one is due; for engines without background threads.
    /// `idle` lets in what is otherwise done only when nothing is written.
    pub fn run_one(&self, idle: bool) -> bool {
        let Ok(_call) = self.begin_call() else { return false };
        self.background().tick();
        if idle {
            self.background().begin_idle();
        } else {
            self.background().queue.set_idle(false);
        }
        self.background().plan_hints();
        match self.background().queue.try_next() {
            None => false,
            Some(task) => {
                self.background().perform(task);
                true
            }
        }
    }

    /// Flushes what would take long to replay, stops the workers and closes. Every later call
    /// fails with `Closed`, and the directory may be opened again, also if this fails. Closing again
    /// tells how it ended.
    pub fn close(&self) -> Result<()> {
        // Held to the end: who closes at the same time returns when it is done.
        let mut locks = self.locks.lock();
        if self.health().set_closed() {
            self.txns.calls.wait();
            *self.closed.lock() = self.finish();
            locks.clear();
        }
        self.closed.lock().clone()
    }

    /// Flushes, stops the workers and writes what makes the next open short. REQUIRES: closed to
    /// calls.
    fn finish(&self) -> Result<()> {
        let background = self.background();
        if self.options.read_only {
            self.stop();
            return Ok(());
        }
        let healthy = self.health().check_unpoisoned();
        let flushed = healthy.and_then(|()| {
            // Thousands of small trees stay in the log, which replays them as fast.
            let few = background.jobs.trees.len() <= FEW_TREES;
            self.background().freeze_all(if few { 0 } else { frondb_background::RELOG_BYTES_MAX });
            self.background().wait_flushed()
        });
        let flushed = match flushed {
            // The log has what could not be flushed.
            Err(error) if error.kind() == ErrorKind::NoSpace => Ok(()),
            other => other,
        };
        self.stop();
        flushed?;
        self.unpin_prepared()?;
        self.background().trim_log()?;
        self.background().rotate_manifest(false)?;
        background.jobs.log.wal.settle()?;
        self.background().idle_maintenance();
        // From now on what is missing was lost.
        background.jobs.edits.manifest.settle()?;
        self.health().check_unpoisoned()
    }

    /// What is prepared should not make the next open replay a long log.
    fn unpin_prepared(&self) -> Result<()> {
        let jobs = &self.background().jobs;
        let long = jobs.shares.now().write_buffer_bytes() / 16;
        let limit = Lsn(jobs.log.wal.end_lsn().get().saturating_sub(long));
        match self.txns.prepared.unpin(limit) {
            // The log has it.
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
        // What was committed is in the log. Closing properly is the caller's choice.
        self.health().set_closed();
        self.stop();
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Engine({})", self.device.describe())
    }
}

#[cfg(all(test, not(shuttle)))]
#[path = "engine_tests.rs"]
mod tests;
