//! Bulk load: entries in any order, from several threads, into one or several trees, all of them or
//! none.
//!
//! ```text
//!  writer --> sort buffers --> full: the largest is sorted and written as a temporary run
//!  writer --> ...                 |
//!  finish: all runs and buffers of a tree --merge--> base runs, one a leaf, written once
//!          --> one commit attaches the runs of all trees (rules 18 and 19)
//! ```
//!
//! Nothing of a load is in the manifest before it commits: a crash, a cancel and a drop leave the
//! trees as they were and give the space back. Concurrent readers and writers of the trees go on;
//! the commit locks the trees as a whole for a moment.
//!
//! More runs than [`MERGE_RUNS_MAX`] are merged in passes.

use std::ops::Range;

use frondb_core::budget::{Part, Reservation};
use frondb_core::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX, VALUE_INLINE_BYTES_MAX};
use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use frondb_core::sync::{Arc, Mutex};
use frondb_core::{Direction, Error, ErrorKind, Lsn, Result, RunId, SeqNo, Source, TreeId};
use frondb_filter::FilterKind;
use frondb_locks::{LockMode, LockWait};
use frondb_run::{Output, ReadMode, Run, RunCursor, RunOptions, RunWriter};
use frondb_space::{Class, Extent, Space};
use frondb_trunk::Key;
use frondb_trunk::cut::Target;
use frondb_trunk::install::Place;
use frondb_trunk::job::{Job, JobInput};
use frondb_writeset::SortBuffer;

use crate::admission::Load;
use crate::attach::Attachment;
use crate::blob::write_value;
use crate::commit::Commit;
use crate::engine::Engine;
use crate::options::Durability;
use crate::pending;
use crate::plans::orphans_of;
use crate::transaction::LOCK_TIMEOUT;
use crate::tree::{Tree, TreeCore};

/// Most runs that are merged at a time.
const MERGE_RUNS_MAX: usize = 64;
/// Fewest: with less memory than they take it takes more.
const MERGE_RUNS_MIN: usize = 4;
/// What a run takes while it is merged, bytes.
const MERGE_RUN_BYTES: u64 = 768 << 10;
/// A buffer with less is not worth a run of its own.
const BUFFER_BYTES_MIN: u64 = 256 << 10;
/// No buffer has more: places in it are 32 bits wide.
const BUFFER_BYTES_MAX: u64 = 1 << 30;

/// What to do with keys that are given twice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Duplicates {
    /// Of one writer the last counts; of several writers any.
    #[default]
    Replace,
    /// The load fails with `Exists`. Keys that a tree had before do not count.
    Fail,
}

/// How a bulk load is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BulkOptions {
    /// What to do with keys that are given twice.
    pub duplicates: Duplicates,
    /// Memory for sorting, all writers together, bytes; 0 for a quarter of the memory option.
    pub memory_bytes: u64,
    /// What [`BulkLoad::finish`] waits for.
    pub durability: Durability,
}

impl Default for BulkOptions {
    fn default() -> Self {
        let duplicates = Duplicates::default();
        Self { duplicates, memory_bytes: 0, durability: Durability::Sync }
    }
}

/// How far a load is. `done` of `total` entries are written to their place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BulkProgress {
    /// Entries merged so far.
    pub done: u64,
    /// Entries to be merged, in all passes.
    pub total: u64,
}

/// What a load did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BulkReport {
    /// Entries that were loaded; one that was given twice counts once.
    pub entries: u64,
    /// Entries that were given twice or more, not counted in `entries`.
    pub duplicates: u64,
    /// Bytes of keys and values loaded, large values left out.
    pub raw_bytes: u64,
    /// Temporary runs written for sorting.
    pub sorted_runs: u64,
}

/// A bulk load under way. Any thread may use it. Dropped before [`finish`](Self::finish) it leaves
/// nothing.
pub struct BulkLoad {
    shared: Arc<LoadShared>,
}

struct LoadShared {
    engine: Arc<Engine>,
    options: BulkOptions,
    buffer_bytes: u64,
    /// Writers that exist: they share the memory.
    writers: AtomicU64,
    cancelled: AtomicBool,
    sorted_runs: AtomicU64,
    /// Last number given to a run, or to a buffer when it is merged: the larger one counts where two
    /// have a key.
    numbers: AtomicU64,
    gathered: Mutex<Gathered>,
}

/// What writers have handed in.
#[derive(Default)]
struct Gathered {
    trees: Vec<GatheredTree>,
    /// Entries that writers have given twice.
    duplicates: u64,
    /// A writer failed, or was dropped with entries that it had not handed in.
    broken: Option<Error>,
    finished: bool,
}

struct GatheredTree {
    tree: Arc<TreeCore>,
    runs: Vec<Arc<Run>>,
    /// The last of their writers: newer than all runs.
    buffers: Vec<SortBuffer>,
    values: Vec<Vec<Extent>>,
}

/// Adds entries to a load. For one thread at a time; each thread has its own.
pub struct BulkWriter {
    shared: Arc<LoadShared>,
    trees: Vec<(Arc<TreeCore>, SortBuffer, Vec<Vec<Extent>>)>,
    last: usize,
    /// Bytes added since the memory was looked at.
    unseen: u64,
    memory: Reservation,
}

impl Engine {
    /// Begins a bulk load.
    ///
    /// # Errors
    /// `Closed`, `Poisoned`.
    pub fn bulk_load(self: &Arc<Self>, options: BulkOptions) -> Result<BulkLoad> {
        let env = &self.shared().env;
        env.check()?;
        let default = env.options.memory_bytes / 4;
        let bytes = if options.memory_bytes == 0 { default } else { options.memory_bytes };
        let shared = LoadShared {
            engine: Arc::clone(self),
            options,
            buffer_bytes: bytes.clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX),
            writers: AtomicU64::new(0),
            cancelled: AtomicBool::new(false),
            sorted_runs: AtomicU64::new(0),
            numbers: AtomicU64::new(0),
            gathered: Mutex::default(),
        };
        Ok(BulkLoad { shared: Arc::new(shared) })
    }
}

impl BulkWriter {
    /// Adds an entry. Keys have 0 to 32 KiB, values 0 to 64 MiB.
    ///
    /// # Errors
    /// `Invalid` for a key or value that is too long or a tree of another database; `NotFound` if
    /// the tree was dropped; `Cancelled`; `NoSpace`, `Io`, `Closed`: the load can only be dropped.
    pub fn put(&mut self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<()> {
        let env = &self.shared.engine.shared().env;
        env.check_open()?;
        env.check_tree(tree)?;
        self.shared.check_cancelled()?;
        if key.len() > KEY_BYTES_MAX || value.len() > VALUE_BYTES_MAX {
            return Err(Error::invalid(format!(
                "a key has at most {KEY_BYTES_MAX} bytes and a value {VALUE_BYTES_MAX}, not {} and {}",
                key.len(),
                value.len()
            )));
        }
        let at = self.place_of(tree);
        if value.len() <= VALUE_INLINE_BYTES_MAX {
            self.trees[at].1.put(key, value, false);
        } else {
            self.put_large(at, key, value)?;
        }
        self.unseen += (key.len() + value.len().min(VALUE_INLINE_BYTES_MAX)) as u64 + 24;
        if self.unseen >= BUFFER_BYTES_MIN / 4 { self.make_room() } else { Ok(()) }
    }

    fn place_of(&mut self, tree: &Tree) -> usize {
        let is = |at: usize| self.trees.get(at).is_some_and(|known| Arc::ptr_eq(&known.0, &tree.0));
        let next = self.last + 1;
        self.last = if is(self.last) {
            self.last
        } else if is(next) {
            next
        } else {
            let known = self.trees.iter().position(|known| Arc::ptr_eq(&known.0, &tree.0));
            known.unwrap_or_else(|| {
                self.trees.push((Arc::clone(&tree.0), SortBuffer::new(), Vec::new()));
                self.trees.len() - 1
            })
        };
        self.last
    }

    fn put_large(&mut self, at: usize, key: &[u8], value: &[u8]) -> Result<()> {
        let _call = self.shared.engine.begin_call()?;
        let (_, buffer, values) = &mut self.trees[at];
        let space = &self.shared.engine.shared().env.runs.space;
        let mut extents = Vec::new();
        let reference = write_value(space, value, &mut extents).inspect_err(|_| {
            extents.iter().for_each(|extent| space.release(*extent));
        });
        let reference = reference?;
        values.push(extents);
        let mut encoded = Vec::new();
        reference.encode(&mut encoded);
        buffer.put(key, &encoded, true);
        Ok(())
    }

    /// Writes the largest buffer when this writer has its share of the memory.
    fn make_room(&mut self) -> Result<()> {
        self.unseen = 0;
        let share = self.shared.buffer_bytes / self.shared.writers.load(Ordering::Relaxed).max(1);
        let share = share.max(BUFFER_BYTES_MIN);
        loop {
            let sum = |of: fn(&SortBuffer) -> u64| self.trees.iter().map(|(_, b, _)| of(b)).sum();
            self.memory.resize(sum(SortBuffer::memory_bytes));
            let used: u64 = sum(SortBuffer::used_bytes);
            let largest = (0..self.trees.len()).max_by_key(|&i| self.trees[i].1.used_bytes());
            let Some(largest) = largest.filter(|_| used > share) else { return Ok(()) };
            if self.trees[largest].1.is_empty() {
                return Ok(());
            }
            self.write_run(largest)?;
        }
    }

    fn write_run(&mut self, at: usize) -> Result<()> {
        self.sort(at)?;
        let _call = self.shared.engine.begin_call()?;
        let alone = self.trees.len() == 1;
        let (tree, buffer, _) = &mut self.trees[at];
        let run = self.shared.write_sorted(tree, buffer, self.shared.next_number())?;
        if alone {
            buffer.clear();
        } else {
            // The next full buffer may be another tree's.
            *buffer = SortBuffer::new();
        }
        self.shared.sorted_runs.fetch_add(1, Ordering::Relaxed);
        self.shared.gathered.lock().tree(tree).runs.extend(run);
        Ok(())
    }

    /// Sorts a buffer; large values of what was given twice go.
    fn sort(&mut self, at: usize) -> Result<()> {
        let (_, buffer, values) = &mut self.trees[at];
        let (duplicates, references) = buffer.sort();
        self.shared.gathered.lock().duplicates += duplicates;
        give_up(&self.shared.engine.shared().env.runs.space, values, &references)
    }

    /// Hands in what it has. A writer that is dropped without this breaks its load.
    ///
    /// # Errors
    /// `Cancelled`.
    pub fn finish(mut self) -> Result<()> {
        self.shared.check_cancelled()?;
        for at in 0..self.trees.len() {
            self.sort(at)?;
        }
        let mut gathered = self.shared.gathered.lock();
        for (tree, buffer, values) in self.trees.drain(..) {
            let place = gathered.tree(&tree);
            place.values.extend(values);
            if !buffer.is_empty() {
                place.buffers.push(buffer);
            }
        }
        Ok(())
    }
}

impl Drop for BulkWriter {
    fn drop(&mut self) {
        self.shared.writers.fetch_sub(1, Ordering::Relaxed);
        if self.trees.is_empty() {
            return;
        }
        let space = &self.shared.engine.shared().env.runs.space;
        for extent in self.trees.drain(..).flat_map(|(_, _, values)| values).flatten() {
            space.release(extent);
        }
        let error = Error::new(ErrorKind::Cancelled, "a writer of the load was given up");
        self.shared.gathered.lock().broken.get_or_insert(error);
    }
}

impl Gathered {
    fn tree(&mut self, tree: &Arc<TreeCore>) -> &mut GatheredTree {
        let known = self.trees.iter().position(|known| Arc::ptr_eq(&known.tree, tree));
        let at = known.unwrap_or_else(|| {
            let (runs, buffers, values) = (Vec::new(), Vec::new(), Vec::new());
            self.trees.push(GatheredTree { tree: Arc::clone(tree), runs, buffers, values });
            self.trees.len() - 1
        });
        &mut self.trees[at]
    }
}

impl LoadShared {
    fn check_cancelled(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::Cancelled, "the load was cancelled"));
        }
        Ok(())
    }

    fn next_number(&self) -> SeqNo {
        SeqNo(self.numbers.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Writes a sorted buffer as a temporary run.
    fn write_sorted(
        &self,
        tree: &TreeCore,
        buffer: &SortBuffer,
        number: SeqNo,
    ) -> Result<Option<Arc<Run>>> {
        let env = &self.engine.shared().env;
        let id = RunId(env.run_ids.fetch_add(1, Ordering::Relaxed) + 1);
        let mut writer = RunWriter::new(id, tree.id, temporary(tree), false);
        let space = Arc::clone(&env.runs.space);
        let mut output = Output::new(space, Class::Merge, buffer.raw_bytes() * 3 / 4, false);
        buffer.for_each(|key, kind, value| writer.add(&mut output, key, number, kind, value))?;
        let meta = writer.finish(&mut output)?;
        output.finish()?;
        Ok(meta.map(|meta| Run::new(meta, None, Arc::clone(&env.runs))))
    }
}

/// Temporary runs are read once, from end to end.
fn temporary(tree: &TreeCore) -> RunOptions {
    RunOptions { filter: FilterKind::None, filter_prefix: None, ..tree.options.trunk.run(1) }
}

impl BulkLoad {
    /// A writer; each thread that adds entries has its own. They share the memory.
    #[must_use]
    pub fn writer(&self) -> BulkWriter {
        self.shared.writers.fetch_add(1, Ordering::Relaxed);
        BulkWriter {
            memory: self.shared.engine.shared().env.budget.reserve(Part::Work, 0),
            shared: Arc::clone(&self.shared),
            trees: Vec::new(),
            last: 0,
            unseen: 0,
        }
    }

    /// Makes every call of the load, those under way too, fail with `Cancelled`; from any thread.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Release);
    }

    /// Merges what all writers have handed in, and commits it: all trees at once, as durable as the
    /// options ask. `progress` is called every now and then; the load is cancelled when it returns
    /// false.
    ///
    /// # Errors
    /// `Invalid` if a writer is still there, or the load was finished; `Cancelled`; `Exists` if
    /// a key was given twice and must not be; `NotFound` if a tree was dropped; `LockTimeout` if
    /// transactions keep the trees locked; `NoSpace`, `Io`, `Poisoned`, `Closed`. Nothing is loaded
    /// then.
    pub fn finish(&self, progress: &mut dyn FnMut(BulkProgress) -> bool) -> Result<BulkReport> {
        let shared = &self.shared;
        let (trees, duplicates) = {
            let mut gathered = shared.gathered.lock();
            if shared.writers.load(Ordering::Acquire) > 0 {
                return Err(Error::invalid("a writer of the load has not been finished"));
            }
            if std::mem::replace(&mut gathered.finished, true) {
                return Err(Error::invalid("the load was finished"));
            }
            shared.check_cancelled()?;
            if let Some(error) = gathered.broken.clone() {
                return Err(error);
            }
            (std::mem::take(&mut gathered.trees), gathered.duplicates)
        };
        let mut merging = Merging::new(shared, progress, trees);
        merging.count_duplicates(duplicates)?;
        let report = merging.merge_all()?;
        let parts = std::mem::take(&mut merging.parts);
        match shared.commit(&parts) {
            Ok(None) => Ok(report),
            // From here on the runs are the trees', whatever becomes of the wait.
            Ok(Some(end)) => {
                shared.engine.wait_durable(end, shared.options.durability).map(|()| report)
            }
            Err(error) => {
                let env = &shared.engine.shared().env;
                // Where nobody knows what the log has, the commit may come back.
                if env.check_health().is_ok() {
                    pending::release(env, &parts);
                }
                Err(error)
            }
        }
    }
}

impl Drop for BulkLoad {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl Drop for LoadShared {
    fn drop(&mut self) {
        let space = &self.engine.shared().env.runs.space;
        self.gathered.get_mut().trees.iter().for_each(|tree| tree.give_back(space));
    }
}

impl GatheredTree {
    fn give_back(&self, space: &Space) {
        self.runs.iter().for_each(|run| run.kill());
        self.values.iter().flatten().for_each(|extent| space.release(*extent));
    }
}

impl LoadShared {
    /// One commit attaches all parts. The trees are locked as a whole meanwhile, for what is written
    /// meets locks of transactions.
    /// Returns what to wait for; after an error nothing has changed.
    fn commit(&self, parts: &[Attachment]) -> Result<Option<Lsn>> {
        if parts.is_empty() {
            return Ok(None);
        }
        let shared = self.engine.shared();
        let env = &shared.env;
        let txn = env.txn_ids.fetch_add(1, Ordering::Relaxed) + 1;
        let mut locker = env.locks.locker(txn);
        for part in parts {
            let wait = LockWait::Upto(LOCK_TIMEOUT);
            locker.lock_range(&part.tree.locks, b"", None, LockMode::Exclusive, wait)?;
        }
        let _call = self.engine.begin_call()?;
        shared.admit(Load { bytes: 0, messages: 0, frees_space: false })?;
        pending::add(env, txn, parts)?;
        let commit = Commit { txn, attachments: parts, sections: &[] };
        let committed = shared
            .commit(commit, false, &mut Vec::new())
            .inspect_err(|_| pending::forget(env, txn, parts))?;
        shared.committed(&committed, 0, 0);
        Ok(Some(committed.end))
    }
}

/// The merges of a load.
struct Merging<'a> {
    shared: &'a LoadShared,
    progress: &'a mut dyn FnMut(BulkProgress) -> bool,
    at: BulkProgress,
    /// Runs merged at a time.
    fan_in: usize,
    trees: Vec<GatheredTree>,
    /// Finished.
    parts: Vec<Attachment>,
    report: BulkReport,
}

impl<'a> Merging<'a> {
    fn new(
        shared: &'a LoadShared,
        progress: &'a mut dyn FnMut(BulkProgress) -> bool,
        mut trees: Vec<GatheredTree>,
    ) -> Self {
        trees.sort_by_key(|tree| tree.tree.id);
        let memory = shared.engine.shared().env.options.memory_bytes / 4;
        let fan_in = (memory / MERGE_RUN_BYTES).clamp(MERGE_RUNS_MIN as u64, MERGE_RUNS_MAX as u64);
        let fan_in = fan_in as usize;
        let total = trees.iter().map(|tree| tree.entries_to_merge(fan_in)).sum();
        let at = BulkProgress { done: 0, total };
        let sorted_runs = shared.sorted_runs.load(Ordering::Relaxed);
        let report = BulkReport { sorted_runs, ..BulkReport::default() };
        Self { shared, progress, at, fan_in, trees, parts: Vec::new(), report }
    }

    fn merge_all(&mut self) -> Result<BulkReport> {
        for i in 0..self.trees.len() {
            while self.trees[i].runs.len() > self.fan_in {
                self.merge_some(i)?;
            }
            self.merge_to_base(i)?;
        }
        Ok(self.report)
    }

    /// Merges the smallest neighbours among the runs of a tree; only neighbours by number, for of one
    /// writer the last entry counts.
    fn merge_some(&mut self, i: usize) -> Result<()> {
        let tree = Arc::clone(&self.trees[i].tree);
        let all = &mut self.trees[i].runs;
        all.sort_by_key(|run| run.meta().max_seq);
        let sizes: Vec<u64> = all.iter().map(|run| run.meta().entries).collect();
        let window = smallest_window(&sizes, self.fan_in);
        let runs: Vec<Arc<Run>> = all.drain(window).collect();
        let sources = runs.iter().map(merge_source).collect::<Result<_>>()?;
        let bytes = runs.iter().map(|run| run.meta().raw_bytes).sum();
        let target =
            Target { lo: Key::from([]), hi: None, place: Place::Slice, piece_bytes: u64::MAX };
        let merged = self.run_job(&tree, sources, bytes, target);
        runs.iter().for_each(|run| run.kill());
        self.trees[i].runs.extend(merged?);
        Ok(())
    }

    fn merge_to_base(&mut self, i: usize) -> Result<()> {
        let tree = Arc::clone(&self.trees[i].tree);
        let mut sources: Vec<(SeqNo, Box<dyn Source>)> =
            self.trees[i].runs.iter().map(merge_source).collect::<Result<_>>()?;
        let of_runs: u64 = self.trees[i].runs.iter().map(|run| run.meta().raw_bytes).sum();
        let buffers = std::mem::take(&mut self.trees[i].buffers);
        let of_buffers: u64 = buffers.iter().map(SortBuffer::raw_bytes).sum();
        for buffer in buffers {
            let number = self.shared.next_number();
            sources.push((number, Box::new(SortBuffer::source(buffer, number))));
        }
        let bytes = of_runs + of_buffers;
        let env = &self.shared.engine.shared().env;
        let mut context = tree.context(&tree.version().trunk, env);
        context.tree_raw_bytes += bytes;
        let piece_bytes = context.leaf_target();
        let target = Target { lo: Key::from([]), hi: None, place: Place::Base, piece_bytes };
        let runs = self.run_job(&tree, sources, bytes, target)?;
        let place = &mut self.trees[i];
        place.runs.drain(..).for_each(|run| run.kill());
        let values = std::mem::take(&mut place.values);
        for run in &runs {
            self.report.entries += run.meta().entries;
            self.report.raw_bytes += run.meta().raw_bytes;
        }
        if !runs.is_empty() {
            self.parts.push(Attachment {
                tree,
                runs,
                range_deletes: Vec::new(),
                values,
                numbers: self.shared.numbers.load(Ordering::Relaxed),
                are_base: true,
            });
        }
        Ok(())
    }

    fn run_job(
        &mut self,
        tree: &Arc<TreeCore>,
        mut sources: Vec<(SeqNo, Box<dyn Source>)>,
        raw_bytes: u64,
        target: Target,
    ) -> Result<Vec<Arc<Run>>> {
        // Newest first. What comes out is as new as the newest.
        sources.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
        let number = |source: Option<&(SeqNo, _)>| source.map_or(SeqNo(1), |source| source.0);
        let seqs = (number(sources.last()), number(sources.first()));
        let engine = &self.shared.engine;
        let input = JobInput {
            sources: sources.into_iter().map(|(_, source)| source).collect(),
            range_deletes: RangeDeletes::empty(),
            snapshots: Arc::from([]),
            seqs,
            has_updates: false,
            at_base: false,
            raw_bytes,
            disk_bytes: raw_bytes / 2,
        };
        let mut job = Job::new(engine.shared().env.job_env(tree, false), input, vec![target], 1)?;
        loop {
            self.shared.check_cancelled()?;
            let before = job.entries_in();
            let done = {
                let _call = engine.begin_call()?;
                job.step()?
            };
            self.at.done += job.entries_in() - before;
            if !(self.progress)(self.at) {
                return Err(Error::new(ErrorKind::Cancelled, "the load was cancelled"));
            }
            if done {
                break;
            }
        }
        let result = job.finish()?;
        let runs: Vec<Arc<Run>> = result.made.iter().map(|made| Arc::clone(&made.run)).collect();
        let written = self.account(tree.id, &result.dropped_refs, &result.stats);
        if let Err(error) = written {
            runs.iter().for_each(|run| run.kill());
            return Err(error);
        }
        Ok(runs)
    }

    /// Counts what was given twice, and gives up the large values among it.
    fn account(
        &mut self,
        tree: TreeId,
        dropped: &[Box<[u8]>],
        stats: &frondb_trunk::job::JobStats,
    ) -> Result<()> {
        self.count_duplicates(stats.entries_in - stats.entries_out)?;
        let space = &self.shared.engine.shared().env.runs.space;
        match self.trees.iter_mut().find(|place| place.tree.id == tree) {
            Some(place) => give_up(space, &mut place.values, dropped),
            None => Ok(()),
        }
    }

    fn count_duplicates(&mut self, duplicates: u64) -> Result<()> {
        if duplicates > 0 && self.shared.options.duplicates == Duplicates::Fail {
            let message = format!("keys of the load were given more than once: {duplicates} times");
            return Err(Error::new(ErrorKind::Exists, message));
        }
        self.report.duplicates += duplicates;
        Ok(())
    }
}

impl Drop for Merging<'_> {
    fn drop(&mut self) {
        // Of a load that failed. What was committed was taken out.
        let env = &self.shared.engine.shared().env;
        self.trees.iter().for_each(|tree| tree.give_back(&env.runs.space));
        pending::release(env, &self.parts);
    }
}

impl GatheredTree {
    /// Entries of all passes.
    fn entries_to_merge(&self, fan_in: usize) -> u64 {
        let mut runs: Vec<&Arc<Run>> = self.runs.iter().collect();
        runs.sort_by_key(|run| run.meta().max_seq);
        let mut sizes: Vec<u64> = runs.iter().map(|run| run.meta().entries).collect();
        let mut total: u64 = self.buffers.iter().map(|buffer| buffer.len() as u64).sum();
        while sizes.len() > fan_in {
            let window = smallest_window(&sizes, fan_in);
            let from = window.start;
            let merged: u64 = sizes.drain(window).sum();
            total += merged;
            sizes.insert(from, merged);
        }
        total + sizes.iter().sum::<u64>()
    }
}

/// The neighbours to merge first where there are more than `fan_in` runs: no more than it takes to
/// have `fan_in` left, and the smallest.
fn smallest_window(sizes: &[u64], fan_in: usize) -> Range<usize> {
    let n = (sizes.len() - fan_in + 1).min(fan_in);
    let sums = sizes.windows(n).map(|window| window.iter().sum::<u64>());
    let at = sums.enumerate().min_by_key(|&(_, sum)| sum).map_or(0, |(at, _)| at);
    at..at + n
}

/// What reads a temporary run, with its number.
fn merge_source(run: &Arc<Run>) -> Result<(SeqNo, Box<dyn Source>)> {
    let all = (Direction::Forward, None, None, ReadMode::Merge);
    let cursor = RunCursor::new(Arc::clone(run), all.0, all.1, all.2, all.3)?;
    Ok((run.meta().max_seq, Box::new(cursor)))
}

/// Gives the extents of large values back whose references were dropped.
fn give_up(space: &Space, values: &mut Vec<Vec<Extent>>, references: &[Box<[u8]>]) -> Result<()> {
    let gone = orphans_of(references)?;
    if !gone.is_empty() {
        values.retain(|value| !gone.iter().any(|gone| gone.first() == value.first()));
        gone.iter().flatten().for_each(|extent| space.release(*extent));
    }
    Ok(())
}
