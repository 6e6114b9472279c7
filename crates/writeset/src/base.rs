//! [`BaseRuns`]: the entries that a bulk statement has written to a previously empty tree.
//!
//! ```text
//!  later writes of the transaction    runs of spills | memory      numbers above `base_upto`
//!  the bulk statement                 [base run)[base run)[...)    one number or a few for all
//! ```
//!
//! The statement has sorted its entries outside of the write set, and written them as runs that do
//! not overlap, with the encoding of bases. If the transaction writes nothing more to the tree, its
//! commit attaches these runs as the base of the tree.

use frondb_core::sync::Arc;
use frondb_core::{Chunk, Direction, Result, Source};
use frondb_run::{ReadMode, Run, RunCursor};
use frondb_space::Extent;

use crate::writes::TreeWrites;

/// The result of a bulk statement for one tree.
pub struct BaseRuns {
    /// Runs that do not overlap, in the encoding of bases, with puts only and each key once. Their
    /// message numbers are above the last number of the tree's earlier writes, and at most `last`.
    pub runs: Vec<Arc<Run>>,
    /// Extents of the large values to which the runs refer.
    pub values: Vec<Vec<Extent>>,
    /// The largest message number in the runs.
    pub last: u64,
}

impl TreeWrites {
    /// Adds the result of a bulk statement. REQUIRES: the tree has no other writes.
    pub fn add_base(&mut self, base: BaseRuns) {
        debug_assert!(self.is_empty(), "the base lies below all other writes");
        let entries: u64 = base.runs.iter().map(|run| run.meta().entries).sum();
        let bytes: u64 = base.runs.iter().map(|run| run.meta().raw_bytes).sum();
        let large: u64 = base.values.iter().flatten().map(|extent| extent.bytes()).sum();
        self.free_memory();
        self.last = base.last;
        self.base_upto = base.last;
        self.add_written(entries, bytes + large);
        self.values.extend(base.values.into_iter().map(|extents| (base.last, extents)));
        self.runs = base.runs.into();
        self.spills += 1;
    }

    /// Whether all writes on disk come from a bulk statement.
    pub(crate) fn is_base_only(&self) -> bool {
        let is_base = |run: &Arc<Run>| run.meta().max_seq.get() <= self.base_upto;
        !self.runs.is_empty() && self.runs.iter().all(is_base) && self.range_deletes.is_empty()
    }
}

/// A cursor that reads runs that do not overlap, one after the other, with memory for only one run
/// at a time.
pub(crate) struct BaseSource {
    /// The remaining runs in reverse order: the last one is read next.
    left: Vec<Arc<Run>>,
    now: Option<RunCursor>,
    direction: Direction,
    lo: Vec<u8>,
    hi: Option<Vec<u8>>,
    /// The number of entries that the reader expects to read. The next run that is opened gets this
    /// number.
    expected: Option<usize>,
    small: Option<usize>,
}

impl BaseSource {
    pub(crate) fn new(
        mut runs: Vec<Arc<Run>>,
        direction: Direction,
        lo: &[u8],
        hi: Option<&[u8]>,
    ) -> Self {
        runs.sort_by(|a, b| a.meta().first_key.cmp(&b.meta().first_key));
        if direction == Direction::Forward {
            runs.reverse();
        }
        let (lo, hi) = (lo.to_vec(), hi.map(<[u8]>::to_vec));
        Self { left: runs, now: None, direction, lo, hi, expected: None, small: None }
    }

    /// Opens the next run. Returns `false` if there is none.
    fn open_next(&mut self) -> Result<bool> {
        let Some(run) = self.left.pop() else { return Ok(false) };
        let (lo, hi) = (Some(&*self.lo), self.hi.as_deref());
        let mut cursor = RunCursor::new(run, self.direction, lo, hi, ReadMode::Scan)?;
        if let Some(messages) = self.expected.take() {
            cursor.expect(messages);
        }
        if let Some(messages) = self.small {
            cursor.keep_small(messages);
        }
        self.now = Some(cursor);
        Ok(true)
    }
}

impl Source for BaseSource {
    fn next_chunk(&mut self, chunk: &mut Chunk) -> Result<bool> {
        loop {
            if let Some(now) = &mut self.now
                && now.next_chunk(chunk)?
            {
                return Ok(true);
            }
            self.now = None;
            if !self.open_next()? {
                chunk.clear();
                return Ok(false);
            }
        }
    }

    fn expect(&mut self, messages: usize) {
        self.expected = Some(messages);
    }

    fn keep_small(&mut self, messages: usize) {
        self.small = Some(messages);
        if let Some(now) = &mut self.now {
            now.keep_small(messages);
        }
    }

    fn skip(&mut self, key: &[u8]) -> Result<()> {
        let forward = self.direction == Direction::Forward;
        let is_passed = |run: &Arc<Run>| {
            if forward { *run.meta().last_key < *key } else { *key <= *run.meta().first_key }
        };
        while self.left.last().is_some_and(is_passed) {
            // The current run lies before the skipped run, so `key` is beyond it too.
            self.now = None;
            self.left.pop();
        }
        match &mut self.now {
            Some(now) => now.skip(key),
            None => Ok(()),
        }
    }
}
