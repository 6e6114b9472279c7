//! The k-way merge: returns the entries of all sources by ascending key, and by descending SeqNo
//! within a key (a backward merge reverses both), each (key, SeqNo) once.
//!
//! Sources fill chunks. When a chunk arrives, one loop computes the codes of its keys relative to
//! their predecessors in the same source. After that, an entry costs a step in its chunk and
//! log2(sources) comparisons of integers in the loser tree.

use frondb_core::chunk::Entries;
use frondb_core::{Chunk, Direction, MessageKind, Result, SeqNo, Source};

use crate::input::{Input, break_tie};
use crate::order::{END, EQUAL};
use crate::workspace::Workspace;

/// Length from which a sequence of entries from one source is worth the check that found it. After
/// a shorter sequence, the next [`ONE_SOURCE_PAUSE`] calls do not check.
const ONE_SOURCE_MIN: usize = 4;

/// Number of calls until the next check after a sequence that was too short.
const ONE_SOURCE_PAUSE: u32 = 64;

/// Merges sorted sources; index 0 is the newest. Used by one thread at a time.
pub struct Merger<S: Source = Box<dyn Source>> {
    sources: Vec<S>,
    /// Buffers of the merge. Input `i` belongs to source `i`; a pooled workspace may have more
    /// inputs.
    work: Workspace,
    direction: Direction,
    state: MergeState,
    /// SeqNo of the last entry returned.
    last_seq: SeqNo,
    /// The source that failed when it had to deliver the next entry.
    failed: Option<usize>,
    /// Number of calls until the next check for a sequence of entries from one source.
    pause: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MergeState {
    /// No entry was requested yet.
    Fresh,
    /// A skip has moved to the winner, which is the next entry to return.
    Positioned,
    /// The winner was returned.
    Running,
    /// All sources are exhausted, or one failed.
    Ended,
}

impl<S: Source> Merger<S> {
    /// Creates a merge of `sources`, newest first, which all run in `direction`. Reads nothing yet.
    #[must_use]
    pub fn new(sources: Vec<S>, direction: Direction) -> Self {
        Self {
            work: Workspace::take(sources.len()),
            sources,
            direction,
            state: MergeState::Fresh,
            last_seq: SeqNo::MAX,
            failed: None,
            pause: 0,
        }
    }

    /// Moves to the next entry; returns `false` when there is none.
    ///
    /// # Errors
    /// The error of a source, once; the merge has then ended.
    #[inline(always)]
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<bool> {
        loop {
            let moved = if self.state == MergeState::Running { self.step() } else { self.begin() };
            if !matches!(moved, Ok(true)) {
                self.state = MergeState::Ended;
                return moved;
            }
            let seq = self.seq();
            if self.same_key() && seq == self.last_seq {
                // Two sources have the same message. The message of the newer source has already
                // been returned (rule 2).
                continue;
            }
            self.last_seq = seq;
            return Ok(true);
        }
    }

    /// Moves to the first entry of the merge, or to the first one after a skip.
    #[cold]
    fn begin(&mut self) -> Result<bool> {
        match self.state {
            MergeState::Fresh => self.start(),
            MergeState::Ended => Ok(false),
            MergeState::Positioned | MergeState::Running => {
                self.state = MergeState::Running;
                Ok(!self.at_end())
            }
        }
    }

    /// Skips the entries before `key`: forward, entries with keys below `key`; backward, entries
    /// with keys at or above `key`. The next entry is the first of the rest. Each input searches
    /// from its current position, so a short skip is cheap.
    ///
    /// # Errors
    /// The error of a source, once; the merge has then ended.
    pub fn skip(&mut self, key: &[u8]) -> Result<()> {
        let skipped = match self.state {
            MergeState::Ended => return Ok(()),
            MergeState::Running | MergeState::Positioned => self.skip_inputs(key),
            MergeState::Fresh => self.start().and_then(|_| self.skip_inputs(key)),
        };
        if skipped.is_err() {
            self.state = MergeState::Ended;
        }
        skipped
    }

    fn skip_inputs(&mut self, key: &[u8]) -> Result<()> {
        let direction = self.direction;
        self.restart(|input, source| input.skip(source, key, direction))?;
        if self.state == MergeState::Running {
            self.state = MergeState::Positioned;
            // No entry of the new key was returned yet.
            self.last_seq = SeqNo::MAX;
        }
        Ok(())
    }

    /// Counts the entries that directly follow the current one in its chunk, satisfy `is_wanted`,
    /// precede the entries of all other sources, and each have another key than the entry before.
    /// Counts at most `max` entries with at most `bytes` bytes of keys and `bytes` bytes of values.
    /// Returns 0 in a backward merge.
    fn count_from_one_source(
        &self,
        max: usize,
        bytes: usize,
        is_wanted: impl Fn(&Chunk, usize) -> bool,
    ) -> usize {
        if self.direction != Direction::Forward {
            return 0;
        }
        let winner = self.winner();
        let Input { chunk, codes, at, .. } = &self.work.inputs[winner];
        let start = at + 1;
        let mut end = chunk.len().min(start.saturating_add(max));
        for (i, other) in self.inputs().iter().enumerate() {
            if i != winner && !other.is_exhausted() && start < end {
                end = start + chunk.count_below(start..end, other.key(), Direction::Forward);
            }
        }
        let fits = |&end: &u32, ends: &[u32]| (end - ends[start - 1]) as usize <= bytes;
        end = start + chunk.key_ends[start..end].partition_point(|end| fits(end, &chunk.key_ends));
        end = start
            + chunk.value_ends[start..end].partition_point(|end| fits(end, &chunk.value_ends));
        (start..end).take_while(|&i| codes[i] != EQUAL && is_wanted(chunk, i)).count()
    }

    /// Moves over the next entries that satisfy `is_wanted` and need no comparison with other
    /// sources: at most `max` entries with at most `bytes` bytes of keys and `bytes` bytes of
    /// values. Returns these entries; none if a check for such entries does not pay off.
    pub(crate) fn next_from_one_source(
        &mut self,
        max: usize,
        bytes: usize,
        is_wanted: impl Fn(&Chunk, usize) -> bool,
    ) -> Entries<'_> {
        let is_only_source =
            self.inputs().iter().filter(|input| !input.is_exhausted()).count() == 1;
        if self.state != MergeState::Running || !is_only_source && !self.may_lead() {
            return Entries::default();
        }
        let count = self.count_from_one_source(max, bytes, is_wanted);
        if !is_only_source {
            self.note_lead(count);
        }
        if count == 0 {
            return Entries::default();
        }
        let (winner, direction) = (self.winner(), self.direction);
        self.work.inputs[winner].at += count;
        // The codes of the other inputs are relative to an entry that was passed, so compute all
        // codes again.
        let Workspace { inputs, codes, .. } = &mut self.work;
        codes.clear();
        codes.extend(inputs[..self.sources.len()].iter().map(|input| input.first_code(direction)));
        self.play();
        let Input { chunk, at, .. } = &self.work.inputs[winner];
        self.last_seq = chunk.seqs[*at];
        Entries::new(chunk, at + 1 - count..at + 1)
    }

    /// Whether to check for a sequence of entries from one source. If the sources alternate, a
    /// check does not pay off.
    fn may_lead(&mut self) -> bool {
        self.pause = self.pause.saturating_sub(1);
        self.pause == 0
    }

    fn note_lead(&mut self, count: usize) {
        if count < ONE_SOURCE_MIN {
            self.pause = ONE_SOURCE_PAUSE;
        }
    }

    /// Fills all inputs and plays the first tournament.
    fn start(&mut self) -> Result<bool> {
        let direction = self.direction;
        self.restart(|input, source| input.start(source, direction))?;
        if self.sources.is_empty() {
            return Ok(false);
        }
        self.state = MergeState::Running;
        Ok(!self.at_end())
    }

    /// Moves each input to an entry and plays a tournament. `code` moves an input and returns the
    /// code of its entry, relative to no base.
    fn restart(&mut self, code: impl Fn(&mut Input, &mut S) -> Result<u64>) -> Result<()> {
        self.work.codes.clear();
        for (input, source) in self.work.inputs.iter_mut().zip(&mut self.sources) {
            self.work.codes.push(code(input, source)?);
        }
        self.play();
        Ok(())
    }

    /// Plays a tournament among the inputs by their codes.
    fn play(&mut self) {
        let Workspace { inputs, codes, tree } = &mut self.work;
        let direction = self.direction;
        tree.play_all(codes, |a, b| break_tie(inputs, direction, a, b));
    }

    #[inline(always)]
    fn step(&mut self) -> Result<bool> {
        let winner = self.winner();
        let Workspace { inputs, tree, .. } = &mut self.work;
        let direction = self.direction;
        let code = match inputs[winner].advance(&mut self.sources[winner], direction) {
            Ok(code) => code,
            Err(error) => {
                self.failed = Some(winner);
                return Err(error);
            }
        };
        tree.replace(code, |a, b| break_tie(inputs, direction, a, b));
        Ok(!self.at_end())
    }

    /// Whether all sources are exhausted. REQUIRES: a tournament was played.
    #[inline(always)]
    fn at_end(&self) -> bool {
        let winner = self.work.tree.winner();
        winner.code == END && self.work.inputs[winner.source as usize].is_exhausted()
    }

    /// Returns the winning source. REQUIRES: a tournament was played.
    #[inline(always)]
    fn winner(&self) -> usize {
        self.work.tree.winner().source as usize
    }

    /// Returns the inputs that belong to sources.
    fn inputs(&self) -> &[Input] {
        &self.work.inputs[..self.sources.len()]
    }

    /// Whether the winner is a valid entry.
    #[inline(always)]
    fn is_at_entry(&self) -> bool {
        matches!(self.state, MergeState::Running | MergeState::Positioned)
    }

    #[inline(always)]
    fn current(&self) -> Option<(&Chunk, usize)> {
        if !self.is_at_entry() {
            return None;
        }
        let input = &self.work.inputs[self.winner()];
        Some((&input.chunk, input.at))
    }

    /// Key of the current entry; empty before the first entry and after the last one.
    #[inline(always)]
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.current().map_or(&[], |(chunk, at)| chunk.key(at))
    }

    /// First eight bytes of the key, as in [`Chunk::prefixes`].
    #[inline]
    #[must_use]
    pub fn prefix(&self) -> u64 {
        self.current().map_or(0, |(chunk, at)| chunk.prefixes[at])
    }

    /// SeqNo of the current entry.
    #[inline(always)]
    #[must_use]
    pub fn seq(&self) -> SeqNo {
        self.current().map_or(SeqNo(0), |(chunk, at)| chunk.seqs[at])
    }

    /// Kind of the current entry.
    #[inline(always)]
    #[must_use]
    pub fn kind(&self) -> MessageKind {
        self.current().map_or(MessageKind::Put, |(chunk, at)| chunk.kinds[at])
    }

    /// Value of the current entry.
    #[inline(always)]
    #[must_use]
    pub fn value(&self) -> &[u8] {
        self.current().map_or(&[], |(chunk, at)| chunk.value(at))
    }

    /// Returns the key of the last entry before a source failed in [`next`](Self::next); `None` if
    /// none failed there, or if it failed before its first entry.
    #[must_use]
    pub fn last_key(&self) -> Option<&[u8]> {
        self.failed.map(|failed| &*self.work.inputs[failed].last_key)
    }

    /// Returns the last key of the sources once the merge has ended; `None` if it had no entry. If
    /// the merge has skipped, entries may lie beyond this key, because a skip passes entries
    /// unread.
    #[must_use]
    pub fn end_key(&self) -> Option<&[u8]> {
        if self.state != MergeState::Ended {
            return None;
        }
        let keys = self.inputs().iter().map(|input| &*input.last_key).filter(|key| !key.is_empty());
        match self.direction {
            Direction::Forward => keys.max(),
            Direction::Backward => keys.min(),
        }
    }

    /// Whether the current entry has the same key as the entry before it.
    #[inline(always)]
    #[must_use]
    pub fn same_key(&self) -> bool {
        self.is_at_entry() && self.work.tree.winner().code == EQUAL
    }
}

impl<S: Source> Drop for Merger<S> {
    fn drop(&mut self) {
        std::mem::take(&mut self.work).return_to_pool();
    }
}
