//! The k-way merge: entries of all sources in the order key, then SeqNo descending (reversed when
//! going backward), each (key, SeqNo) once.
//!
//! Sources fill chunks; the codes of a chunk's keys relative to their predecessors in the same
//! source are computed in one loop when it arrives. Then an entry costs a step in its chunk and
//! log2(sources) comparisons of integers in the loser tree.

use frondb_core::chunk::Entries;
use frondb_core::{Chunk, Direction, MessageKind, Result, SeqNo, Source};

use crate::input::{Input, break_tie};
use crate::order::{END, EQUAL};
use crate::workspace::Workspace;

/// Fewer entries of one source in a row do not pay for looking.
const ALONE_MIN: usize = 4;

/// How many times nobody looks then.
const ALONE_PAUSE: u32 = 64;

/// Merges sorted sources; index 0 is the newest. For one thread at a time.
pub struct Merger<S: Source = Box<dyn Source>> {
    sources: Vec<S>,
    /// The first of its inputs are those of the sources.
    work: Workspace,
    direction: Direction,
    state: State,
    /// SeqNo of the last entry handed out.
    last_seq: SeqNo,
    /// The source that failed when it was asked for what follows its entry, which was the last one
    /// handed out.
    failed: Option<usize>,
    /// How often not to look whether one source is ahead by much.
    pause: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// No entry was asked for yet.
    Fresh,
    /// The winner is to be handed out: a skip put it there.
    Placed,
    /// The winner was handed out.
    Running,
    /// All sources are exhausted, or one failed.
    Ended,
}

impl<S: Source> Merger<S> {
    /// A merge of `sources`, newest first, all of which run in `direction`. Reads nothing yet.
    #[must_use]
    pub fn new(sources: Vec<S>, direction: Direction) -> Self {
        Self {
            work: Workspace::take(sources.len()),
            sources,
            direction,
            state: State::Fresh,
            last_seq: SeqNo::MAX,
            failed: None,
            pause: 0,
        }
    }

    /// Moves to the next entry; false when there is none.
    ///
    /// # Errors
    /// What a source returned, once; the merge has then ended.
    #[inline(always)]
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<bool> {
        loop {
            let moved = if self.state == State::Running { self.step() } else { self.begin() };
            if !matches!(moved, Ok(true)) {
                self.state = State::Ended;
                return moved;
            }
            let seq = self.seq();
            if self.same_key() && seq == self.last_seq {
                // The same message from two sources: the newer one was handed out (rule 2).
                continue;
            }
            self.last_seq = seq;
            return Ok(true);
        }
    }

    /// The first entry of all, or the first behind a skip.
    #[cold]
    fn begin(&mut self) -> Result<bool> {
        match self.state {
            State::Fresh => self.start(),
            State::Ended => Ok(false),
            State::Placed | State::Running => {
                self.state = State::Running;
                Ok(!self.at_end())
            }
        }
    }

    /// Passes over what lies before `key`: forward the keys below it, backward those from it on. The
    /// next entry is then the first of the others. Looks for it from where each input is, so that a
    /// short way is cheap.
    ///
    /// # Errors
    /// What a source returned, once; the merge has then ended.
    pub fn skip(&mut self, key: &[u8]) -> Result<()> {
        let skipped = match self.state {
            State::Ended => return Ok(()),
            State::Running | State::Placed => self.skip_inputs(key),
            State::Fresh => self.start().and_then(|_| self.skip_inputs(key)),
        };
        if skipped.is_err() {
            self.state = State::Ended;
        }
        skipped
    }

    fn skip_inputs(&mut self, key: &[u8]) -> Result<()> {
        let direction = self.direction;
        self.restart(|input, source| input.skip(source, key, direction))?;
        if self.state == State::Running {
            self.state = State::Placed;
            // None of its key was handed out.
            self.last_seq = SeqNo::MAX;
        }
        Ok(())
    }

    /// How many entries behind the current one `is_wanted` holds for, one after the other: of this source's
    /// chunk, before those of all other sources, each of another key. At most `max`, of at most `bytes`; none
    /// backward.
    fn count_alone(
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

    /// Moves on over as many entries as there are of those that `is_wanted` holds for and that need no
    /// comparison with other sources, at most `max`, of at most `bytes` of keys and as many of values; they lie one after the other. Empty if it is not worth while.
    pub(crate) fn next_alone(
        &mut self,
        max: usize,
        bytes: usize,
        is_wanted: impl Fn(&Chunk, usize) -> bool,
    ) -> Entries<'_> {
        let is_alone = self.inputs().iter().filter(|input| !input.is_exhausted()).count() == 1;
        if self.state != State::Running || !is_alone && !self.may_be_alone() {
            return Entries::default();
        }
        let count = self.count_alone(max, bytes, is_wanted);
        if !is_alone {
            self.note_alone(count);
        }
        if count == 0 {
            return Entries::default();
        }
        let (winner, direction) = (self.winner(), self.direction);
        self.work.inputs[winner].at += count;
        // The codes of the others are relative to an entry that is passed.
        let Workspace { inputs, codes, .. } = &mut self.work;
        codes.clear();
        codes.extend(inputs[..self.sources.len()].iter().map(|input| input.first_code(direction)));
        self.play();
        let Input { chunk, at, .. } = &self.work.inputs[winner];
        self.last_seq = chunk.seqs[*at];
        Entries::new(chunk, at + 1 - count..at + 1)
    }

    /// Among several sources it is not worth while to look where they alternate.
    fn may_be_alone(&mut self) -> bool {
        self.pause = self.pause.saturating_sub(1);
        self.pause == 0
    }

    fn note_alone(&mut self, count: usize) {
        if count < ALONE_MIN {
            self.pause = ALONE_PAUSE;
        }
    }

    /// Fills all inputs and plays the first tournament.
    fn start(&mut self) -> Result<bool> {
        let direction = self.direction;
        self.restart(|input, source| input.start(source, direction))?;
        if self.sources.is_empty() {
            return Ok(false);
        }
        self.state = State::Running;
        Ok(!self.at_end())
    }

    /// Moves each input to an entry and plays a tournament among them. `code` returns the code of the input's
    /// entry, relative to no base.
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

    /// Whether all sources are exhausted, after a tournament.
    #[inline(always)]
    fn at_end(&self) -> bool {
        let winner = self.work.tree.winner();
        winner.code == END && self.work.inputs[winner.source as usize].is_exhausted()
    }

    /// The source that is ahead, after a tournament.
    #[inline(always)]
    fn winner(&self) -> usize {
        self.work.tree.winner().source as usize
    }

    /// The inputs of its sources.
    fn inputs(&self) -> &[Input] {
        &self.work.inputs[..self.sources.len()]
    }

    /// Whether the winner is an entry that may be looked at.
    #[inline(always)]
    fn is_at_entry(&self) -> bool {
        matches!(self.state, State::Running | State::Placed)
    }

    #[inline(always)]
    fn current(&self) -> Option<(&Chunk, usize)> {
        if !self.is_at_entry() {
            return None;
        }
        let input = &self.work.inputs[self.winner()];
        Some((&input.chunk, input.at))
    }

    /// Key of the entry; empty before the first and after the last.
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

    /// SeqNo of the entry.
    #[inline(always)]
    #[must_use]
    pub fn seq(&self) -> SeqNo {
        self.current().map_or(SeqNo(0), |(chunk, at)| chunk.seqs[at])
    }

    /// Kind of the entry.
    #[inline(always)]
    #[must_use]
    pub fn kind(&self) -> MessageKind {
        self.current().map_or(MessageKind::Put, |(chunk, at)| chunk.kinds[at])
    }

    /// Value of the entry.
    #[inline(always)]
    #[must_use]
    pub fn value(&self) -> &[u8] {
        self.current().map_or(&[], |(chunk, at)| chunk.value(at))
    }

    /// Of a merge that failed, the key of the last entry that it handed out.
    #[must_use]
    pub fn last_key(&self) -> Option<&[u8]> {
        self.failed.map(|failed| &*self.work.inputs[failed].last_key)
    }

    /// Whether the entry has the key of the entry before it.
    #[inline(always)]
    #[must_use]
    pub fn same_key(&self) -> bool {
        self.is_at_entry() && self.work.tree.winner().code == EQUAL
    }
}

impl<S: Source> Drop for Merger<S> {
    fn drop(&mut self) {
        std::mem::take(&mut self.work).give_back();
    }
}
