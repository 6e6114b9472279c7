//! The merges of a bulk load: passes reduce the number of spools, then one merge per tree writes
//! the base runs.
//!
//! ```text
//!  spools  1 2 3 4 5 6 ... --passes--> 1 2-5 6 ... --and buffers--> base runs, one a leaf
//! ```
//!
//! Passes merge spools until one merge can take all of them, at most [`FAN_IN_MAX`]. Sources
//! (spools and buffers) have numbers, ascending in the order in which a writer filled them. Of
//! several entries with the same key, the entry from the source with the largest number is kept. A
//! drop of [`Merging`] at any time removes everything that is not committed.

use std::cmp::Reverse;
use std::ops::Range;

use frondb_commit::Attachment;
use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_core::wear::WriteCause;
use frondb_core::{Error, ErrorKind, Result, SeqNo, Source, TreeId};
use frondb_merge::{FoldMerge, FoldOptions};
use frondb_run::{Run, Spool, SpoolWriter};
use frondb_tree::TreeCore;
use frondb_trunk::Key;
use frondb_trunk::cut::Target;
use frondb_trunk::install::Place;
use frondb_trunk::job::{Job, JobInput};
use frondb_writeset::SortBuffer;

use super::options::{BulkProgress, BulkReport, Duplicates};
use super::shared::{GatheredTree, LoadShared, free_values};

/// Largest number of spools in one merge.
const FAN_IN_MAX: usize = 64;
/// Lower bound of [`Merging::fan_in`], even if the memory is too small for that many spools.
const FAN_IN_MIN: usize = 4;
/// Memory of a spool during a merge, bytes.
const SPOOL_BYTES: u64 = 768 << 10;
/// Bytes of a base in one write.
const WRITE_BYTES: usize = 512 << 10;
/// Entries of a pass between two checks for cancellation.
const PASS_STEP_ENTRIES: u64 = 64 * 1024;

/// The merges of a load.
pub(crate) struct Merging<'a> {
    shared: &'a LoadShared,
    progress: &'a mut dyn FnMut(BulkProgress) -> bool,
    at: BulkProgress,
    /// Largest number of spools in one merge, [`FAN_IN_MIN`] to [`FAN_IN_MAX`].
    fan_in: usize,
    trees: Vec<GatheredTree>,
    /// Finished parts.
    pub(crate) parts: Vec<Attachment>,
    report: BulkReport,
}

impl<'a> Merging<'a> {
    pub(crate) fn new(
        shared: &'a LoadShared,
        progress: &'a mut dyn FnMut(BulkProgress) -> bool,
        mut trees: Vec<GatheredTree>,
    ) -> Self {
        trees.sort_by_key(|tree| tree.tree.id);
        let memory = shared.default_bytes();
        let fan_in = (memory / SPOOL_BYTES).clamp(FAN_IN_MIN as u64, FAN_IN_MAX as u64);
        let fan_in = fan_in as usize;
        let total = trees.iter().map(|tree| tree.entries_to_merge(fan_in)).sum();
        let at = BulkProgress { done: 0, total };
        let sorted_runs = shared.spilled.load(Ordering::Relaxed);
        let report = BulkReport { sorted_runs, ..BulkReport::default() };
        Self { shared, progress, at, fan_in, trees, parts: Vec::new(), report }
    }

    pub(crate) fn merge_all(&mut self) -> Result<BulkReport> {
        for i in 0..self.trees.len() {
            while self.trees[i].spools.len() > self.fan_in {
                self.merge_some(i)?;
            }
            self.merge_to_base(i)?;
        }
        Ok(self.report)
    }

    /// Merges a group of adjacent spools of a tree into one: the group with the fewest entries
    /// ([`smallest_window`]). Only spools with adjacent numbers may be merged, so that each
    /// writer's last entry of a key wins.
    fn merge_some(&mut self, i: usize) -> Result<()> {
        let all = &mut self.trees[i].spools;
        all.sort_by_key(|(number, _)| *number);
        let sizes: Vec<u64> = all.iter().map(|(_, spool)| spool.entries()).collect();
        let window = smallest_window(&sizes, self.fan_in);
        let newest = all[window.end - 1].0;
        let raw_bytes = all[window.clone()].iter().map(|(_, spool)| spool.raw_bytes()).sum();
        let sources = newest_first(all.drain(window).map(spool_source).collect());
        let options = FoldOptions {
            snapshots: Arc::from([]),
            range_deletes: RangeDeletes::empty(),
            at_base: false,
            update: None,
        };
        let mut merge = FoldMerge::new(sources, options)?;
        let tree = Arc::clone(&self.trees[i].tree);
        let mut writer = self.shared.spool_writer(&tree, raw_bytes);
        while self.merge_part(&mut merge, &mut writer)? {}
        let spool = writer.finish()?.map(|spool| (newest, Arc::new(spool)));
        self.trees[i].spools.extend(spool);
        let counts = merge.stats();
        let twice = counts.entries_in - counts.entries_out;
        self.note_duplicate(tree.id, merge.take_first_dropped());
        self.account(tree.id, &merge.take_dropped_refs(), twice)
    }

    /// Runs one step of a pass. Returns whether the pass continues.
    fn merge_part(&mut self, merge: &mut FoldMerge, writer: &mut SpoolWriter) -> Result<bool> {
        self.shared.check_cancelled()?;
        let before = merge.stats().entries_in;
        let mut more = true;
        {
            let _call = self.shared.calls.begin()?;
            while more && merge.stats().entries_in - before < PASS_STEP_ENTRIES {
                more = merge.next()?;
                if more {
                    writer.add(merge.key(), merge.kind(), merge.value())?;
                }
            }
        }
        self.progress(merge.stats().entries_in - before)?;
        Ok(more)
    }

    /// Adds `entries` to the number of merged entries, and calls the callback. Fails with
    /// `Cancelled` if the callback returns false.
    pub(super) fn progress(&mut self, entries: u64) -> Result<()> {
        self.at.done += entries;
        if (self.progress)(self.at) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Cancelled, "the load was cancelled"))
    }

    fn merge_to_base(&mut self, i: usize) -> Result<()> {
        let tree = Arc::clone(&self.trees[i].tree);
        let spools = &self.trees[i].spools;
        let of_spools: u64 = spools.iter().map(|(_, spool)| spool.raw_bytes()).sum();
        let mut sources: Vec<Numbered> = self.trees[i].spools.drain(..).map(spool_source).collect();
        let buffers = std::mem::take(&mut self.trees[i].buffers);
        let of_buffers: u64 = buffers.iter().map(SortBuffer::raw_bytes).sum();
        for buffer in buffers {
            let number = self.shared.next_number();
            sources.push((number, Box::new(SortBuffer::source(buffer, number))));
        }
        let bytes = of_spools + of_buffers;
        let txns = &self.shared.txns;
        let mut context = tree.plan_context(&tree.version().trunk, txns.jobs.plan_limits());
        context.tree_raw_bytes += bytes;
        let piece_bytes = context.leaf_target();
        let target = Target { lo: Key::from([]), hi: None, place: Place::Base, piece_bytes };
        let runs = self.run_job(&tree, sources, bytes, target)?;
        let place = &mut self.trees[i];
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
        sources: Vec<Numbered>,
        raw_bytes: u64,
        target: Target,
    ) -> Result<Vec<Arc<Run>>> {
        // The output gets the numbers of its oldest and its newest source.
        let numbers = || sources.iter().map(|(number, _)| *number);
        let seqs = (numbers().min().unwrap_or(SeqNo(1)), numbers().max().unwrap_or(SeqNo(1)));
        let txns = &self.shared.txns;
        let input = JobInput {
            sources: newest_first(sources),
            range_deletes: RangeDeletes::empty(),
            snapshots: Arc::from([]),
            seqs,
            has_updates: false,
            at_base: false,
            raw_bytes,
            disk_bytes: raw_bytes / 2,
            handover: Arc::default(),
        };
        let job = Job::new(
            txns.jobs.job_env(WriteCause::PrivateRuns, tree, false),
            input,
            vec![target],
            1,
        )?;
        let mut job = job.with_buffer(WRITE_BYTES);
        loop {
            self.shared.check_cancelled()?;
            let before = job.entries_in();
            let done = {
                let _call = txns.calls.begin()?;
                job.step()?
            };
            self.progress(job.entries_in() - before)?;
            if done {
                break;
            }
        }
        let result = job.finish()?;
        let runs: Vec<Arc<Run>> =
            result.new_runs.iter().map(|placed| Arc::clone(&placed.run)).collect();
        let twice = result.stats.entries_in - result.stats.entries_out;
        self.note_duplicate(tree.id, result.first_dropped);
        let written = self.account(tree.id, &result.dropped_refs, twice);
        if let Err(error) = written {
            runs.iter().for_each(|run| run.kill());
            return Err(error);
        }
        Ok(runs)
    }

    fn note_duplicate(&self, tree: TreeId, key: Option<Box<[u8]>>) {
        self.shared.gathered.lock().note_duplicate(tree, key);
    }

    /// Counts the duplicate entries that a merge dropped, and frees their large values. Fails with
    /// `Exists` if there are duplicates and the load allows none.
    fn account(&mut self, tree: TreeId, dropped: &[Box<[u8]>], duplicates: u64) -> Result<()> {
        self.count_duplicates(duplicates)?;
        let space = &self.shared.space;
        match self.trees.iter_mut().find(|place| place.tree.id == tree) {
            Some(place) => free_values(space, &mut place.values, dropped),
            None => Ok(()),
        }
    }

    pub(crate) fn count_duplicates(&mut self, duplicates: u64) -> Result<()> {
        if duplicates > 0 && self.shared.options.duplicates == Duplicates::Fail {
            let message = format!("the load has {duplicates} entries whose key another entry has");
            return Err(Error::new(ErrorKind::Exists, message));
        }
        self.report.duplicates += duplicates;
        Ok(())
    }
}

impl Drop for Merging<'_> {
    fn drop(&mut self) {
        // Only a failed load still has parts here, because the caller takes them for the commit.
        let txns = &self.shared.txns;
        self.trees.iter().for_each(|tree| tree.give_back(&txns.space));
        txns.parts.release(&self.parts);
    }
}

impl GatheredTree {
    /// Returns the number of entries that all passes and the last merge will read.
    fn entries_to_merge(&self, fan_in: usize) -> u64 {
        let mut spools: Vec<&(SeqNo, Arc<Spool>)> = self.spools.iter().collect();
        spools.sort_by_key(|(number, _)| *number);
        let mut sizes: Vec<u64> = spools.iter().map(|(_, spool)| spool.entries()).collect();
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

/// Returns the adjacent spools to merge first if there are more than `fan_in`: just enough to leave
/// `fan_in` spools, but at most `fan_in`. Chooses the group of that length with the fewest entries.
fn smallest_window(sizes: &[u64], fan_in: usize) -> Range<usize> {
    let n = (sizes.len() - fan_in + 1).min(fan_in);
    let sums = sizes.windows(n).map(|window| window.iter().sum::<u64>());
    let at = sums.enumerate().min_by_key(|&(_, sum)| sum).map_or(0, |(at, _)| at);
    at..at + n
}

type Numbered = (SeqNo, Box<dyn Source>);

fn spool_source((number, spool): (SeqNo, Arc<Spool>)) -> Numbered {
    (number, Box::new(spool.source(number)))
}

/// Sorts sources from the newest to the oldest, the order that merges require.
fn newest_first(mut sources: Vec<Numbered>) -> Vec<Box<dyn Source>> {
    sources.sort_by_key(|(number, _)| Reverse(*number));
    sources.into_iter().map(|(_, source)| source).collect()
}
