//! Private runs: sorted and folded messages of a transaction that are on disk before the
//! transaction commits.
//!
//! In these folds, savepoints take the place of snapshots: a fold keeps the newest message of each
//! key in each stripe between two savepoints. If a savepoint lies between two message numbers of a
//! run, the run stores the number of each message, so that a rollback to the savepoint finds the
//! messages to undo. So does every run of a tree with an update function.

use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_core::wear::WriteCause;
use frondb_core::{Direction, Error, Result, RunId, SeqNo, Source};
use frondb_merge::{FoldMerge, FoldOptions};
use frondb_run::format::ValueRef;
use frondb_run::{Output, ReadMode, Run, RunCursor, RunOptions, RunWriter};
use frondb_space::{Class, Extent};

use crate::env::{SpillEnv, TreeSpill};
use crate::own::OwnSource;
use crate::sorted::Sorted;
use crate::writes::Excluded;
use crate::writes::TreeWrites;

/// Fewest runs in a merge, if there are that many. A smaller result would soon have to be merged
/// again with the next larger runs.
const MERGE_RUNS_MIN: usize = 4;

/// The input of one private run.
struct Input {
    sources: Vec<Box<dyn Source>>,
    range_deletes: RangeDeletes,
    savepoints: Arc<[SeqNo]>,
    /// Smallest and largest message number.
    numbers: (u64, u64),
    raw_bytes: u64,
    /// Number of times that the messages were written, this write included.
    writes: u8,
    /// Whether the run may use the reserve on a full disk, because its messages free space
    /// (rule 25).
    reserved: bool,
}

impl TreeWrites {
    /// Writes the messages in memory to a private run, and merges runs if there are too many.
    /// `savepoints` are the message numbers at which savepoints are set. After an error no write is
    /// lost, but the messages may be in a run already.
    pub(crate) fn spill(
        &mut self,
        env: &SpillEnv,
        tree: &TreeSpill,
        savepoints: &Arc<[SeqNo]>,
    ) -> Result<()> {
        if self.count > 0 {
            let run = match self.take_unread()? {
                Some(sorted) => self.spill_sorted(env, tree, sorted, savepoints)?,
                None => self.spill_index(env, tree, savepoints)?,
            };
            self.spilled(run);
        } else {
            // There are no messages to write. But free the memory of messages that a rollback has
            // removed, and an index that contains only range deletes: a caller that spills until
            // less memory is in use must make progress.
            self.free_memory();
        }
        while self.spilled_runs().len() > env.runs_max.load(Ordering::Relaxed).max(1) {
            let n = self.newest_with_equal_writes();
            let merged = self.merge(env, tree, n, savepoints)?;
            self.replace_newest(n, merged);
        }
        Ok(())
    }

    /// Spills messages that the transaction has not read, and that therefore have no index.
    fn spill_sorted(
        &mut self,
        env: &SpillEnv,
        tree: &TreeSpill,
        sorted: Sorted,
        savepoints: &Arc<[SeqNo]>,
    ) -> Result<Option<Arc<Run>>> {
        let sorted = Arc::new(sorted);
        let input = Input {
            raw_bytes: sorted.bytes() as u64,
            sources: vec![Box::new(sorted.source())],
            // All range deletes of the tree are older than these messages, so they hide none of
            // them.
            range_deletes: RangeDeletes::empty(),
            savepoints: Arc::clone(savepoints),
            numbers: self.numbers(),
            writes: 1,
            reserved: !self.adds_data(),
        };
        let run = self.write_run(env, tree, input);
        if run.is_err() {
            self.put_back(sorted);
        }
        run
    }

    fn spill_index(
        &mut self,
        env: &SpillEnv,
        tree: &TreeSpill,
        savepoints: &Arc<[SeqNo]>,
    ) -> Result<Option<Arc<Run>>> {
        let (index, excluded) = self.sorted(&env.index_budget)?;
        let input = Input {
            raw_bytes: index.data_bytes(),
            sources: vec![Box::new(OwnSource { inner: index.scan_all(), excluded, shift: 0 })],
            range_deletes: index.range_deletes(),
            savepoints: Arc::clone(savepoints),
            numbers: self.numbers(),
            writes: 1,
            reserved: !self.adds_data(),
        };
        self.write_run(env, tree, input)
    }

    /// Returns the runs that spills wrote. The older base runs are large and do not overlap, so
    /// they are neither counted nor merged.
    fn spilled_runs(&self) -> &[Arc<Run>] {
        let base = self.runs.partition_point(|run| run.meta().max_seq.get() > self.base_upto);
        &self.runs[..base]
    }

    /// Returns how many of the newest runs to merge: the newest runs whose messages were written
    /// equally often, and older such groups until there are [`MERGE_RUNS_MIN`] runs. With a maximum
    /// of `m` runs, the first merges take `m + 1`, `m`, `m - 1`, and so on runs. So about
    /// `m * m / 2` spills happen before a message is written a third time.
    fn newest_with_equal_writes(&self) -> usize {
        let mut n = 0;
        for alike in self.spilled_runs().chunk_by(|a, b| a.meta().writes == b.meta().writes) {
            n += alike.len();
            if n >= MERGE_RUNS_MIN {
                break;
            }
        }
        n
    }

    /// Merges the newest `n` runs.
    fn merge(
        &mut self,
        env: &SpillEnv,
        tree: &TreeSpill,
        n: usize,
        savepoints: &Arc<[SeqNo]>,
    ) -> Result<Option<Arc<Run>>> {
        let runs = &self.runs[..n];
        let numbers = runs.iter().map(|run| (run.meta().min_seq.get(), run.meta().max_seq.get()));
        let input = Input {
            sources: runs.iter().map(merge_source).collect::<Result<_>>()?,
            range_deletes: RangeDeletes::new(self.range_deletes.iter().cloned()),
            savepoints: Arc::clone(savepoints),
            numbers: numbers.fold((u64::MAX, 0), |all, run| (all.0.min(run.0), all.1.max(run.1))),
            raw_bytes: runs.iter().map(|run| run.meta().raw_bytes).sum(),
            writes: runs.iter().map(|run| run.meta().writes).max().unwrap_or(0).saturating_add(1),
            reserved: !self.adds_data(),
        };
        self.write_run(env, tree, input)
    }

    fn replace_newest(&mut self, n: usize, run: Option<Arc<Run>>) {
        let older = self.runs[n..].iter().cloned();
        let runs = run.into_iter().chain(older).collect();
        for run in &self.runs[..n] {
            run.kill();
        }
        self.runs = runs;
    }

    /// Undoes the messages in runs whose numbers are above `upto`: drops runs with only such
    /// messages, and rewrites a run that also has older messages. The rewrite frees space in the
    /// end, so it may use the reserve on a full disk. `savepoints` are the message numbers at which
    /// savepoints stay set.
    pub(crate) fn cut_runs(
        &mut self,
        env: &SpillEnv,
        tree: &TreeSpill,
        upto: u64,
        savepoints: &Arc<[SeqNo]>,
    ) -> Result<()> {
        loop {
            let Some(run) = self.runs.first().cloned() else { return Ok(()) };
            let meta = run.meta();
            if meta.max_seq.get() <= upto {
                return Ok(());
            }
            let kept = if meta.min_seq.get() > upto {
                None
            } else {
                let excluded = Excluded::from([(upto, u64::MAX)]);
                let all = (Direction::Forward, None, None, ReadMode::Merge);
                let inner = RunCursor::new(Arc::clone(&run), all.0, all.1, all.2, all.3)?;
                let input = Input {
                    sources: vec![Box::new(OwnSource { inner, excluded, shift: 0 })],
                    range_deletes: RangeDeletes::empty(),
                    savepoints: Arc::clone(savepoints),
                    numbers: (meta.min_seq.get(), upto),
                    raw_bytes: meta.raw_bytes,
                    writes: meta.writes,
                    reserved: true,
                };
                self.write_run(env, tree, input)?
            };
            self.replace_newest(1, kept);
        }
    }

    fn write_run(
        &mut self,
        env: &SpillEnv,
        tree: &TreeSpill,
        input: Input,
    ) -> Result<Option<Arc<Run>>> {
        let (min, max) = (SeqNo(input.numbers.0), SeqNo(input.numbers.1));
        let split = input.savepoints.iter().any(|s| min <= *s && *s < max);
        let per_entry = split || tree.update.is_some();
        let options = FoldOptions {
            snapshots: input.savepoints,
            range_deletes: input.range_deletes,
            at_base: false,
            update: tree.update.clone(),
        };
        let mut merge = FoldMerge::new(input.sources, options)?;
        let expected = input.raw_bytes * 3 / 4;
        let space = Arc::clone(&env.runs.space);
        let mut output =
            Output::new(space, WriteCause::PrivateRuns, Class::Merge, expected, input.reserved);
        let id = RunId(env.run_ids.fetch_add(1, Ordering::Relaxed) + 1);
        let options = RunOptions { writes: input.writes, ..tree.options };
        let mut writer =
            RunWriter::new(id, self.tree, options, per_entry).verifying(env.runs.verify());
        while merge.next()? {
            writer.add(&mut output, merge.key(), merge.seq(), merge.kind(), merge.value())?;
        }
        let meta = writer.finish(&mut output)?;
        output.finish()?;
        let prefix = tree.options.filter_prefix;
        let run = meta.map(|meta| Run::new(meta, prefix, Arc::clone(&env.runs)));
        for reference in merge.take_dropped_refs() {
            let dropped = self.drop_value(env, &reference);
            // After an error no caller has the run, so its space must be freed here.
            dropped.inspect_err(|_| run.iter().for_each(|run| run.kill()))?;
        }
        Ok(run)
    }

    /// Frees a large value that was overwritten or deleted before the commit.
    fn drop_value(&mut self, env: &SpillEnv, reference: &[u8]) -> Result<()> {
        let reference = ValueRef::decode(reference)
            .map_err(|_| Error::internal("a reference to a large value cannot be decoded"))?;
        let first = reference.extents.first().copied();
        let extents = first.and_then(|first| self.forget_value(first)).unwrap_or_default();
        self.release(env, extents);
        Ok(())
    }

    /// Frees all runs and values on disk.
    pub(crate) fn discard(&mut self, env: &SpillEnv) {
        for run in &*self.runs {
            run.kill();
        }
        self.runs = Arc::default();
        let values: Vec<Extent> = self.values.drain(..).flat_map(|(_, extents)| extents).collect();
        self.release(env, values);
    }

    /// Releases the extents of large values as soon as all readers have ended that may still have
    /// references to these values.
    pub(crate) fn release(&mut self, env: &SpillEnv, extents: Vec<Extent>) {
        if extents.is_empty() {
            return;
        }
        match &self.hold {
            None => extents.into_iter().for_each(|extent| env.runs.space.release(extent)),
            Some(hold) => {
                hold.add(extents);
                self.hold = Some(hold.successor());
            }
        }
    }
}

fn merge_source(run: &Arc<Run>) -> Result<Box<dyn Source>> {
    let run = Arc::clone(run);
    let cursor = RunCursor::new(run, Direction::Forward, None, None, ReadMode::Merge)?;
    Ok(Box::new(cursor))
}
