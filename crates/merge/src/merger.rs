//! The k-way merge: entries of all sources in the order key, then SeqNo descending (reversed when
//! going backward), each (key, SeqNo) once.
//!
//! Sources fill chunks; the codes of a chunk's keys relative to their predecessors in the same
//! source are computed in one loop when it arrives. Then an entry costs a step in its chunk and
//! log2(sources) comparisons of integers in the loser tree.

use std::cmp::Ordering;

use frondb_core::chunk::Entries;
use frondb_core::mem::Array;
use frondb_core::{Chunk, Direction, MessageKind, Result, SeqNo, Source};

use crate::buffers::{Buffers, Kept, with_kept};
use crate::loser_tree::{LoserTree, Verdict};
use crate::order::{self, END, EQUAL};

/// Fewer entries of one source in a row do not pay for looking.
const ALONE_MIN: usize = 4;

/// How many times nobody looks then.
const ALONE_PAUSE: u32 = 64;

/// One source with the chunk it is in.
struct Input {
    source: Box<dyn Source>,
    chunk: Chunk,
    codes: Array<u64>,
    /// The entry it is at; `chunk.len()` or beyond when exhausted.
    at: usize,
    /// The last key of the chunk before, the base of the first code of the next.
    last_key: Vec<u8>,
}

impl Input {
    fn new(source: Box<dyn Source>, kept: &mut Kept) -> Self {
        let Buffers { chunk, codes, last_key } = kept.take();
        Self { source, chunk, codes, at: 0, last_key }
    }

    /// Gives back what others can use, and returns the source, to be dropped.
    fn end(self, kept: &mut Kept) -> Box<dyn Source> {
        let Self { source, chunk, codes, last_key, .. } = self;
        kept.keep(Buffers { chunk, codes, last_key });
        source
    }

    /// Takes the next chunk. The code of its first entry is relative to the last key of the chunk
    /// before, unless it is the first.
    fn refill(&mut self, direction: Direction, first: bool) -> Result<bool> {
        if !first {
            let last = match direction {
                Direction::Forward => self.chunk.len().checked_sub(1),
                Direction::Backward => (!self.chunk.is_empty()).then_some(0),
            };
            self.last_key.clear();
            if let Some(last) = last {
                self.last_key.extend_from_slice(self.chunk.key(last));
            }
        }
        if !self.source.next_chunk(&mut self.chunk)? || self.chunk.is_empty() {
            self.chunk.clear();
            self.at = 0;
            return Ok(false);
        }
        let base = (!first).then_some(&self.last_key[..]);
        let Chunk { keys, key_ends, .. } = &self.chunk;
        order::code_all(keys, key_ends, base, direction, &mut self.codes);
        self.at = match direction {
            Direction::Forward => 0,
            Direction::Backward => self.chunk.len() - 1,
        };
        Ok(true)
    }

    /// Moves to the next entry and returns its code; [`END`] if there is none.
    #[inline(always)]
    fn advance(&mut self, direction: Direction) -> Result<u64> {
        let next = match direction {
            Direction::Forward => self.at + 1,
            Direction::Backward => self.at.wrapping_sub(1),
        };
        if let Some(&code) = self.codes.get(next) {
            self.at = next;
            return Ok(code);
        }
        self.advance_chunk(direction)
    }

    /// Moves to the first entry that does not lie before `key`; see [`Merger::skip`]. Returns its code,
    /// relative to no base.
    fn skip(&mut self, key: &[u8], direction: Direction) -> Result<u64> {
        // Exhausted before.
        let mut has_more = !self.codes.is_empty();
        while has_more {
            let left = match direction {
                Direction::Forward => self.at..self.chunk.len(),
                Direction::Backward => 0..self.at + 1,
            };
            let (len, below) = (left.len(), self.chunk.count_below(left, key, direction));
            match direction {
                Direction::Forward if below < len => self.at += below,
                Direction::Backward if below > 0 => self.at = below - 1,
                _ => {
                    self.source.skip(key)?;
                    has_more = self.refill(direction, true)?;
                    continue;
                }
            }
            return Ok(order::first_code(self.chunk.key(self.at), direction));
        }
        self.codes.clear();
        Ok(END)
    }

    #[inline(never)]
    fn advance_chunk(&mut self, direction: Direction) -> Result<u64> {
        if !self.refill(direction, false)? {
            self.codes.clear();
            return Ok(END);
        }
        Ok(self.codes[self.at])
    }
}

/// Merges sorted sources; index 0 is the newest. For one thread at a time.
pub struct Merger {
    inputs: Vec<Input>,
    tree: Option<LoserTree>,
    direction: Direction,
    state: State,
    /// Codes of the inputs when a tournament begins.
    codes: Array<u64>,
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

impl Merger {
    /// A merge of `sources`, newest first, all of which run in `direction`. Reads nothing yet.
    #[must_use]
    pub fn new(sources: Vec<Box<dyn Source>>, direction: Direction) -> Self {
        let inputs =
            with_kept(|kept| sources.into_iter().map(|source| Input::new(source, kept)).collect());
        Self {
            inputs,
            tree: None,
            direction,
            state: State::Fresh,
            codes: Array::new(),
            last_seq: SeqNo::MAX,
            failed: None,
            pause: 0,
        }
    }

    /// Moves to the next entry; false when there is none.
    ///
    /// # Errors
    /// What a source returned, once; the merge has then ended.
    #[inline]
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<bool> {
        loop {
            let moved = match self.state {
                State::Running => self.step(),
                State::Placed => {
                    self.state = State::Running;
                    Ok(!self.at_end())
                }
                State::Fresh => self.start(),
                State::Ended => return Ok(false),
            };
            if !matches!(moved, Ok(true)) {
                self.state = State::Ended;
                self.tree = None;
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

    /// Passes over what lies before `key`: forward the keys below it, backward those from it on. The
    /// next entry is then the first of the others. Looks for it from where each input is, so that a
    /// short way is cheap.
    ///
    /// # Errors
    /// What a source returned, once; the merge has then ended.
    pub fn skip(&mut self, key: &[u8]) -> Result<()> {
        match self.state {
            State::Ended => return Ok(()),
            State::Running | State::Placed => {}
            State::Fresh => {
                self.start()?;
            }
        }
        let skipped = self.skip_inputs(key);
        if skipped.is_err() {
            self.state = State::Ended;
            self.tree = None;
        }
        skipped
    }

    fn skip_inputs(&mut self, key: &[u8]) -> Result<()> {
        self.codes.clear();
        for input in &mut self.inputs {
            self.codes.push(input.skip(key, self.direction)?);
        }
        if let Some(tree) = &mut self.tree {
            let (inputs, direction) = (&self.inputs, self.direction);
            tree.play_all(&self.codes, |a, b| break_tie(inputs, direction, a, b));
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
        let Some(tree) = self.tree.as_ref().filter(|_| self.direction == Direction::Forward) else {
            return 0;
        };
        let winner = tree.winner().source as usize;
        let Input { chunk, codes, at, .. } = &self.inputs[winner];
        let start = at + 1;
        let mut end = chunk.len().min(start.saturating_add(max));
        for (i, other) in self.inputs.iter().enumerate() {
            if i != winner && !other.codes.is_empty() && start < end {
                let key = other.chunk.key(other.at);
                end = start + chunk.count_below(start..end, key, Direction::Forward);
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
        let is_alone = self.inputs.iter().filter(|input| !input.codes.is_empty()).count() == 1;
        if self.state != State::Running || !is_alone && !self.may_be_alone() {
            return Entries::default();
        }
        let count = self.count_alone(max, bytes, is_wanted);
        if !is_alone {
            self.note_alone(count);
        }
        let Some(tree) = self.tree.as_mut().filter(|_| count > 0) else {
            return Entries::default();
        };
        let winner = tree.winner().source as usize;
        self.inputs[winner].at += count;
        // The codes of the others are relative to an entry that is passed.
        self.codes.clear();
        self.codes.extend(self.inputs.iter().map(|input| match input.codes.is_empty() {
            true => END,
            false => order::first_code(input.chunk.key(input.at), self.direction),
        }));
        let (inputs, direction) = (&self.inputs, self.direction);
        tree.play_all(&self.codes, |a, b| break_tie(inputs, direction, a, b));
        let Input { chunk, at, .. } = &self.inputs[winner];
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
    #[cold]
    fn start(&mut self) -> Result<bool> {
        self.codes.clear();
        for input in &mut self.inputs {
            let filled = input.refill(self.direction, true)?;
            self.codes.push(if filled { input.codes[input.at] } else { END });
            if !filled {
                input.codes.clear();
            }
        }
        if self.codes.is_empty() {
            return Ok(false);
        }
        let (inputs, direction) = (&self.inputs, self.direction);
        let tree = LoserTree::new(&self.codes, |a, b| break_tie(inputs, direction, a, b));
        self.tree = Some(tree);
        self.state = State::Running;
        Ok(!self.at_end())
    }

    #[inline(always)]
    fn step(&mut self) -> Result<bool> {
        let Some(tree) = &mut self.tree else { return Ok(false) };
        let direction = self.direction;
        let winner = tree.winner().source as usize;
        let code = match self.inputs[winner].advance(direction) {
            Ok(code) => code,
            Err(error) => {
                self.failed = Some(winner);
                return Err(error);
            }
        };
        let inputs = &self.inputs;
        tree.replace(code, |a, b| break_tie(inputs, direction, a, b));
        Ok(!self.at_end())
    }

    #[inline(always)]
    fn at_end(&self) -> bool {
        let Some(tree) = &self.tree else { return true };
        let winner = tree.winner();
        winner.code == END && self.inputs[winner.source as usize].codes.is_empty()
    }

    #[inline(always)]
    fn current(&self) -> Option<(&Chunk, usize)> {
        let tree = self.tree.as_ref()?;
        let input = &self.inputs[tree.winner().source as usize];
        Some((&input.chunk, input.at))
    }

    /// Key of the entry; empty before the first and after the last.
    #[inline]
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
    #[inline]
    #[must_use]
    pub fn seq(&self) -> SeqNo {
        self.current().map_or(SeqNo(0), |(chunk, at)| chunk.seqs[at])
    }

    /// Kind of the entry.
    #[inline]
    #[must_use]
    pub fn kind(&self) -> MessageKind {
        self.current().map_or(MessageKind::Put, |(chunk, at)| chunk.kinds[at])
    }

    /// Value of the entry.
    #[inline]
    #[must_use]
    pub fn value(&self) -> &[u8] {
        self.current().map_or(&[], |(chunk, at)| chunk.value(at))
    }

    /// Of a merge that failed, the key of the last entry that it handed out.
    #[must_use]
    pub fn last_key(&self) -> Option<&[u8]> {
        self.failed.map(|failed| &*self.inputs[failed].last_key)
    }

    /// Whether the entry has the key of the entry before it.
    #[inline]
    #[must_use]
    pub fn same_key(&self) -> bool {
        self.tree.as_ref().is_some_and(|tree| tree.winner().code == EQUAL)
    }
}

impl Drop for Merger {
    fn drop(&mut self) {
        let inputs = std::mem::take(&mut self.inputs);
        // The first input's are the next to be taken: memtables copy values, runs do not. Sources go
        // after that: they may hold the last reference to much.
        let sources = with_kept(|kept| {
            inputs.into_iter().rev().map(|input| input.end(kept)).collect::<Vec<_>>()
        });
        drop(sources);
    }
}

/// Decides between two sources with equal codes by their keys, SeqNos and ages.
#[inline(never)]
fn break_tie(inputs: &[Input], direction: Direction, a: u32, b: u32) -> Verdict {
    let (first, second) = (&inputs[a as usize], &inputs[b as usize]);
    // An exhausted source comes last whatever its code.
    match (first.codes.is_empty(), second.codes.is_empty()) {
        (false, false) => {}
        (first_ended, _) => return Verdict { first_wins: !first_ended, loser_code: END },
    }
    let (first_key, second_key) = (first.chunk.key(first.at), second.chunk.key(second.at));
    let by_key = order::compare(first_key, second_key, direction);
    let (first_seq, second_seq) = (first.chunk.seqs[first.at], second.chunk.seqs[second.at]);
    let by_seq = match direction {
        Direction::Forward => second_seq.cmp(&first_seq),
        Direction::Backward => first_seq.cmp(&second_seq),
    };
    let first_wins = by_key.then(by_seq).then(a.cmp(&b)) == Ordering::Less;
    let loser_code = if first_wins {
        order::code(first_key, second_key, direction)
    } else {
        order::code(second_key, first_key, direction)
    };
    Verdict { first_wins, loser_code }
}
