//! Executes a plan: merges its inputs and writes the runs, in resumable steps and without any lock.
//!
//! ```text
//! sources, newest first -> FoldMerge -> cut at targets -> RunWriter -> Output -> extents
//! ```
//!
//! A job is created with everything that it needs. Any thread may [`step`](Job::step) it, one at a
//! time; [`finish`](Job::finish) returns its runs. Dropping a job before `finish` frees the extents
//! of its runs. After `finish`, the caller must free ([`Run::kill`]) the runs that no edit of the
//! manifest will name.

use frondb_block::Codec;
use frondb_core::budget::{Part, Reservation};
use frondb_core::chunk::key_prefix;
use frondb_core::mem;
use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::wear::WriteCause;
use frondb_core::{Direction, Result, RunId, SeqNo, Source, TreeId};
use frondb_merge::{FoldMerge, FoldOptions};
use frondb_run::{
    Handover, HeldDictionary, Output, ReadMode, Run, RunEnv, RunMeta, RunOptions, RunWriter,
    merge_input_bytes, run_block_bytes_max,
};
use frondb_space::Class;

use crate::base::BaseCursor;
use crate::cut::Target;
use crate::install::{Place, PlacedRun};
use crate::node::Key;
use crate::options::TrunkOptions;
use crate::view::View;

/// Key and value bytes of output after which a step ends (rule 3).
pub const STEP_BYTES: u64 = 256 * 1024;

/// Messages of input after which a step ends, even if the merge drops most of them (rule 3).
pub const STEP_MESSAGES: u64 = 64 * 1024;

/// What a job needs besides its input: handles of the engine, and the settings of the tree.
#[derive(Clone)]
pub struct JobEnv {
    /// The cause under which the job's writes are counted.
    pub cause: WriteCause,
    /// Id of the tree.
    pub tree: TreeId,
    /// The tree's options.
    pub options: TrunkOptions,
    /// The files and caches of runs: where the job stores its output.
    pub run_env: Arc<RunEnv>,
    /// The last run id given out.
    pub run_ids: Arc<AtomicU64>,
    /// Number of seeks, and of lookups that found a value, from the open of the engine until the
    /// job was created. It decides whether the job's blocks are worth keeping in the cache.
    pub reads: u64,
    /// Whether the output may use the space that is reserved for a full disk (rule 25).
    pub reserved: bool,
    /// The tree's update function.
    pub update: Option<frondb_core::message::SharedUpdateFn>,
    /// How the job packs the bases that it writes.
    pub packing: Packing,
}

/// How a job packs the bases that it writes.
#[derive(Clone, Default)]
pub enum Packing {
    /// With [`Codec::QUICK`] if the tree's codec is slow, because writers may be waiting.
    #[default]
    Quick,
    /// With the tree's codec, and with a dictionary if there is one.
    Final(Option<Arc<HeldDictionary>>),
}

/// The input of a job.
pub struct JobInput {
    /// Sources, newest first.
    pub sources: Vec<Box<dyn Source>>,
    /// Range deletes that the merge applies to the sources.
    pub range_deletes: RangeDeletes,
    /// Live snapshots, ascending; listed after the newest input was complete.
    pub snapshots: Arc<[SeqNo]>,
    /// Smallest and largest SeqNo among the inputs.
    pub seqs: (SeqNo, SeqNo),
    /// Whether any input contains updates.
    pub has_updates: bool,
    /// Whether the inputs contain all older data of their range.
    pub at_base: bool,
    /// Estimated key and value bytes.
    pub raw_bytes: u64,
    /// Estimated bytes on disk.
    pub disk_bytes: u64,
    /// Counts the bytes of cached blocks that the sources read. Blocks that the job writes may
    /// replace as many bytes in the cache.
    pub handover: Arc<Handover>,
}

/// Counters of one finished job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct JobStats {
    /// Messages read.
    pub entries_in: u64,
    /// Messages written.
    pub entries_out: u64,
    /// Deletes that were read and not written again.
    pub dropped_deletes: u64,
    /// Key and value bytes written, before encoding.
    pub raw_bytes_out: u64,
    /// Bytes written to the device.
    pub bytes_written: u64,
    /// Steps taken.
    pub steps: u64,
}

/// A job in progress.
pub struct Job {
    env: JobEnv,
    merge: FoldMerge,
    targets: Vec<Target>,
    /// Number of times that the messages of the slices written here have been written, including
    /// this time.
    writes: u8,
    target: usize,
    output: Option<Output>,
    writer: Option<RunWriter>,
    /// The first key of the target, or of the current piece of the target.
    lo: Key,
    /// First eight bytes of the target's end. A key with a smaller prefix lies inside the target.
    hi_prefix: u64,
    per_entry_seqs: bool,
    /// Largest SeqNo of the inputs.
    max_seq: SeqNo,
    handover: Arc<Handover>,
    finished: FinishedRuns,
    stats: JobStats,
    done: bool,
    /// Whether the job is a prefix truncation: it writes nothing, and ends at the first message
    /// that it would write.
    is_truncation: bool,
    first_kept: Option<Key>,
    /// The job's part of the memory budget, held until the job is dropped (rule 24).
    _memory: Reservation,
    /// Memory of the encoder of the run being written.
    encoder_memory: Option<Reservation>,
}

/// The finished runs of a job, each with its lower bound and place.
struct FinishedRuns {
    env: Arc<RunEnv>,
    runs: Vec<(RunMeta, Key, Place)>,
}

impl Drop for FinishedRuns {
    /// Removes the runs of an abandoned job from the cache, because no reader can need them.
    fn drop(&mut self) {
        for (meta, ..) in &self.runs {
            let (filters, indexes) = (meta.filter_parts, meta.index_parts);
            self.env.cache.remove_run(meta.id, meta.blocks, filters, indexes);
        }
    }
}

/// The result of a finished job, ready to be installed.
pub struct JobResult {
    /// The runs, in key order.
    pub new_runs: Vec<PlacedRun>,
    /// For a prefix truncation: the first key that stays; `None` if all keys are cut off.
    pub first_kept: Option<Key>,
    /// References that the merge dropped. Their values can be freed after the install (rule 17).
    pub dropped_refs: Vec<Box<[u8]>>,
    /// Key of the first message that the merge dropped without folding it into another message.
    pub first_dropped: Option<Box<[u8]>>,
    /// Counters of the job.
    pub stats: JobStats,
}

impl Job {
    /// Creates a job that merges `input` into `targets`, which are adjacent and cover the keys of
    /// the input. The messages of the slices that it writes will have been written `writes` times.
    ///
    /// # Errors
    /// Errors of opening a source.
    ///
    /// # Panics
    /// If there is no target.
    pub fn new(env: JobEnv, input: JobInput, targets: Vec<Target>, writes: u8) -> Result<Self> {
        Self::below(env, input, targets, writes, None)
    }

    /// As [`new`](Self::new), for inputs that are older than other data of the trunk: data in the
    /// nodes above or, if the inputs are part of a base, in the runs of the leaf. `oldest_above` is
    /// the smallest SeqNo of that data; `None` if there is no such data.
    pub(crate) fn below(
        env: JobEnv,
        input: JobInput,
        targets: Vec<Target>,
        writes: u8,
        oldest_above: Option<SeqNo>,
    ) -> Result<Self> {
        assert!(!targets.is_empty(), "a job needs a target");
        let (min, max) = input.seqs;
        // One SeqNo for the whole run suffices, unless readers must tell its messages apart by
        // SeqNo: for a live snapshot, for a key that may keep several messages, or because newer
        // data in a node above has SeqNos below this one (invariant 4 of a node).
        let split = input.snapshots.iter().any(|s| min <= *s && *s < max);
        let under_older = oldest_above.is_some_and(|oldest| oldest <= max);
        let per_entry_seqs = split || under_older || input.has_updates;
        let base = targets.iter().all(|target| target.place != Place::Slice);
        let class = if base { Class::Base } else { Class::Merge };
        let options = FoldOptions {
            snapshots: Arc::clone(&input.snapshots),
            range_deletes: input.range_deletes,
            at_base: input.at_base,
            update: env.update.clone(),
        };
        let budget = &env.run_env.budget;
        let source_bytes = merge_input_bytes(budget.total());
        let windows = (input.sources.len() as u64 * source_bytes).min(input.raw_bytes * 2);
        let memory = budget.reserve(Part::Work, windows + source_bytes);
        let merge = FoldMerge::new(input.sources, options)?;
        let output = Output::new(
            Arc::clone(&env.run_env.space),
            env.cause,
            class,
            input.disk_bytes,
            env.reserved,
        );
        let finished = FinishedRuns { env: Arc::clone(&env.run_env), runs: Vec::new() };
        let mut job = Self {
            env,
            merge,
            targets,
            writes,
            target: 0,
            output: Some(output),
            writer: None,
            lo: Key::from([]),
            hi_prefix: 0,
            per_entry_seqs,
            max_seq: max,
            handover: input.handover,
            finished,
            stats: JobStats::default(),
            done: false,
            is_truncation: false,
            first_kept: None,
            _memory: memory,
            encoder_memory: None,
        };
        job.enter_target(0);
        Ok(job)
    }

    /// Makes the job a prefix truncation, which ends at the first message that has to be kept. No
    /// reader can see any of the messages that the job has read before.
    pub(crate) fn end_at_first_kept(&mut self) {
        self.is_truncation = true;
    }

    /// Sets the size of one write to the device, in bytes. A job for which a thread waits uses
    /// larger writes than background work. REQUIRES: no step was taken yet.
    #[must_use]
    pub fn with_buffer(mut self, bytes: usize) -> Self {
        self.output = self.output.map(|output| output.with_buffer(bytes));
        self
    }

    /// Number of messages read so far.
    #[must_use]
    pub fn entries_in(&self) -> u64 {
        self.merge.stats().entries_in
    }

    /// Bytes written to the device so far. [`finish`](Self::finish) also writes the buffered bytes.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.output.as_ref().map_or(0, Output::bytes_written)
    }

    /// Continues the job for about [`STEP_BYTES`] of output, or for [`STEP_MESSAGES`] of input if
    /// the merge drops most of them. Returns `true` when everything is written.
    ///
    /// # Errors
    /// `NoSpace`, `Corruption` of an input, or a device error. The caller must then drop the job.
    pub fn step(&mut self) -> Result<bool> {
        self.stats.steps += 1;
        if let Some(mut output) = self.output.take() {
            let result = self.step_into(&mut output);
            self.output = Some(output);
            result?;
        }
        Ok(self.done)
    }

    fn step_into(&mut self, output: &mut Output) -> Result<()> {
        let bytes_end = self.stats.raw_bytes_out + STEP_BYTES;
        let messages_end = self.merge.stats().entries_in + STEP_MESSAGES;
        while self.stats.raw_bytes_out < bytes_end && self.merge.stats().entries_in < messages_end {
            if !self.merge.next()? {
                self.end_run(output)?;
                self.done = true;
                break;
            }
            if self.is_truncation {
                self.first_kept = Some(self.merge.key().into());
                self.done = true;
                break;
            }
            if self.merge.prefix() >= self.hi_prefix && self.is_beyond_target() {
                self.end_run(output)?;
                self.next_target();
            } else if self.is_full() {
                self.end_run(output)?;
                self.lo = self.merge.key().into();
            }
            if self.writer.is_none() {
                self.begin_run()?;
            }
            let merge = &self.merge;
            if let Some(writer) = &mut self.writer {
                let (key, value) = (merge.key(), merge.value());
                writer.add(output, key, merge.seq(), merge.kind(), value)?;
                self.stats.raw_bytes_out += (key.len() + value.len()) as u64;
            }
            self.stats.entries_out += 1;
        }
        Ok(())
    }

    #[cold]
    fn is_beyond_target(&self) -> bool {
        let hi = &self.targets[self.target].hi;
        hi.as_ref().is_some_and(|hi| **hi <= *self.merge.key())
    }

    /// Whether a new run begins with the merge's current key. Messages of one key stay in one run,
    /// because the runs become leaves, and a leaf shows only keys of its range.
    #[inline]
    fn is_full(&self) -> bool {
        let piece_bytes = self.targets[self.target].piece_bytes;
        self.writer.as_ref().is_some_and(|writer| {
            writer.raw_bytes() >= piece_bytes && writer.last_key() != self.merge.key()
        })
    }

    /// Moves to the target that contains the merge's current key.
    fn next_target(&mut self) {
        let mut target = self.target;
        let key = self.merge.key();
        while target + 1 < self.targets.len()
            && self.targets[target].hi.as_ref().is_some_and(|hi| **hi <= *key)
        {
            target += 1;
        }
        self.enter_target(target);
    }

    fn enter_target(&mut self, target: usize) {
        self.target = target;
        self.lo = Arc::clone(&self.targets[target].lo);
        self.hi_prefix = self.targets[target].hi.as_deref().map_or(u64::MAX, key_prefix);
    }

    fn begin_run(&mut self) -> Result<()> {
        let id = RunId(self.env.run_ids.fetch_add(1, Ordering::Relaxed) + 1);
        let options = self.run_options();
        let writer = RunWriter::new(id, self.env.tree, options, self.per_entry_seqs)
            .verifying(self.env.run_env.verify());
        let mut writer = writer.warming_cache(&self.env.run_env, self.env.reads, &self.handover);
        if let (Packing::Final(Some(held)), Codec::ZstdDictionary(level)) =
            (&self.env.packing, options.codec)
        {
            writer = writer.with_dictionary(held, level);
            let budget = &self.env.run_env.budget;
            self.encoder_memory = Some(budget.reserve(Part::Work, writer.encoder_bytes()));
        }
        self.writer = Some(writer);
        Ok(())
    }

    fn run_options(&self) -> RunOptions {
        let mut options = match self.targets[self.target].place {
            Place::Slice => self.env.options.run(self.writes),
            Place::Base | Place::Append => match &self.env.packing {
                Packing::Quick => self.env.options.quick_base(),
                Packing::Final(None) => self.env.options.base(),
                Packing::Final(Some(held)) => {
                    let base = self.env.options.base();
                    // A size that the user chose stays, even if it was chosen after the sizes were
                    // compared for the dictionary.
                    let is_chosen = self.env.options.are_blocks_chosen();
                    let suited = held.dictionary().block_bytes().filter(|_| !is_chosen);
                    RunOptions { block_bytes: suited.unwrap_or(base.block_bytes), ..base }
                }
            },
        };
        let most = run_block_bytes_max(self.env.run_env.budget.total());
        options.block_bytes = options.block_bytes.min(most);
        options
    }

    fn end_run(&mut self, output: &mut Output) -> Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let finished = writer.finish(output)?;
        if self.encoder_memory.take().is_some() {
            mem::trim_heap();
        }
        if let Some(mut meta) = finished {
            let place = self.targets[self.target].place;
            if place == Place::Slice {
                // The newest message may have been dropped. But the run replaces all its inputs, so
                // it takes their place in the order of ages.
                meta.max_seq = meta.max_seq.max(self.max_seq);
            }
            self.finished.runs.push((meta, Arc::clone(&self.lo), place));
        }
        Ok(())
    }

    /// Writes buffered data and returns the runs. Does not sync their data.
    pub fn finish(mut self) -> Result<JobResult> {
        if let Some(output) = self.output.take() {
            self.stats.bytes_written = output.finish()?;
        }
        let counts = self.merge.stats();
        self.stats.entries_in = counts.entries_in;
        self.stats.dropped_deletes = counts.dropped_deletes;
        let prefix = self.env.options.filter_prefix();
        let n = self.finished.runs.len();
        let his: Vec<Option<Key>> = (0..n).map(|i| self.hi_of(i)).collect();
        let new_runs = self.finished.runs.drain(..).zip(his).map(|((meta, lo, place), hi)| {
            PlacedRun { run: Run::new(meta, prefix, Arc::clone(&self.env.run_env)), lo, hi, place }
        });
        let new_runs = new_runs.collect();
        let (first_kept, dropped_refs) = (self.first_kept, self.merge.take_dropped_refs());
        let first_dropped = self.merge.take_first_dropped();
        Ok(JobResult { new_runs, first_kept, dropped_refs, first_dropped, stats: self.stats })
    }

    /// Returns the end of a run's range: the beginning of the next piece of the same target, or the
    /// end of the target.
    fn hi_of(&self, i: usize) -> Option<Key> {
        let (_, lo, _) = &self.finished.runs[i];
        let target = self.targets.iter().rfind(|target| target.lo <= *lo)?;
        match self.finished.runs.get(i + 1) {
            Some((_, next, _)) if target.hi.as_ref().is_none_or(|hi| next < hi) => {
                Some(Arc::clone(next))
            }
            _ => target.hi.clone(),
        }
    }
}

/// Creates the input of a job over views of runs, newest first.
///
/// # Errors
/// `Corruption` or a device error of a run's block index.
pub(crate) fn view_input<'a>(
    views: impl Iterator<Item = &'a View>,
    range_deletes: RangeDeletes,
    snapshots: Arc<[SeqNo]>,
    at_base: bool,
) -> Result<JobInput> {
    let mut input = JobInput {
        sources: Vec::new(),
        range_deletes,
        snapshots,
        seqs: (SeqNo::MAX, SeqNo::MIN),
        has_updates: false,
        at_base,
        raw_bytes: 0,
        disk_bytes: 0,
        handover: Handover::new(),
    };
    for view in views {
        input.count(view);
        let cursor = view.cursor(Direction::Forward, ReadMode::Merge)?;
        input.sources.push(Box::new(cursor.handing_over(&input.handover)));
    }
    Ok(input)
}

impl JobInput {
    /// Adds the base of a leaf as one source. Call it after all other views were added, because the
    /// base holds the oldest messages of the leaf.
    pub(crate) fn add_base(&mut self, base: &[View]) {
        base.iter().for_each(|view| self.count(view));
        if !base.is_empty() {
            let cursor = BaseCursor::new(base.to_vec(), Direction::Forward, ReadMode::Merge);
            self.sources.push(Box::new(cursor.handing_over(&self.handover)));
        }
    }

    fn count(&mut self, view: &View) {
        let meta = view.run.meta();
        self.seqs = (self.seqs.0.min(meta.min_seq), self.seqs.1.max(meta.max_seq));
        self.has_updates |= meta.updates > 0;
        self.raw_bytes += view.raw_bytes();
        self.disk_bytes += view.disk_bytes();
    }
}
