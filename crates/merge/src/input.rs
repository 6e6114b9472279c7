//! One input of a merge: the current chunk of its source, and the position in it.

use std::cmp::Ordering;

use frondb_core::mem::Array;
use frondb_core::{Chunk, Direction, Result, Source};

use crate::loser_tree::TieBreak;
use crate::order::{self, END};

/// The current chunk of a source with the codes of its keys. The source itself is stored elsewhere,
/// because inputs outlive sources ([`crate::workspace`]).
#[derive(Default)]
pub(crate) struct Input {
    pub(crate) chunk: Chunk,
    /// Codes of the chunk's keys; empty when the source is exhausted.
    pub(crate) codes: Array<u64>,
    /// Index of the current entry; not an index of `chunk` when the source is exhausted.
    pub(crate) at: usize,
    /// The last key, in merge order, of the chunk before this one: the base of this chunk's first
    /// code. A skip leaves it unchanged.
    pub(crate) last_key: Vec<u8>,
}

impl Input {
    /// Reads the first chunk. Returns the code of its first entry, relative to no base; [`END`] if
    /// the source has no entries.
    pub(crate) fn start(&mut self, source: &mut impl Source, direction: Direction) -> Result<u64> {
        self.last_key.clear();
        if self.refill(source, direction, true)? {
            return Ok(self.codes[self.at]);
        }
        self.codes.clear();
        Ok(END)
    }

    /// Reads the next chunk and computes the offset-value codes of its keys; returns `false` if
    /// there is none. Unless it is the first chunk, the code of its first entry is relative to the
    /// last key of the previous chunk.
    fn refill(
        &mut self,
        source: &mut impl Source,
        direction: Direction,
        first: bool,
    ) -> Result<bool> {
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
        if !source.next_chunk(&mut self.chunk)? || self.chunk.is_empty() {
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
    pub(crate) fn advance(
        &mut self,
        source: &mut impl Source,
        direction: Direction,
    ) -> Result<u64> {
        let next = match direction {
            Direction::Forward => self.at + 1,
            Direction::Backward => self.at.wrapping_sub(1),
        };
        if let Some(&code) = self.codes.get(next) {
            self.at = next;
            return Ok(code);
        }
        self.advance_chunk(source, direction)
    }

    #[inline(never)]
    fn advance_chunk(&mut self, source: &mut impl Source, direction: Direction) -> Result<u64> {
        if !self.refill(source, direction, false)? {
            self.codes.clear();
            return Ok(END);
        }
        Ok(self.codes[self.at])
    }

    /// Moves to the first entry that does not lie before `key`; see [`crate::Merger::skip`].
    /// Returns the code of this entry, relative to no base; [`END`] if there is none.
    pub(crate) fn skip(
        &mut self,
        source: &mut impl Source,
        key: &[u8],
        direction: Direction,
    ) -> Result<u64> {
        // The input may be exhausted already.
        let mut has_more = !self.is_exhausted();
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
                    source.skip(key)?;
                    has_more = self.refill(source, direction, true)?;
                    continue;
                }
            }
            return Ok(self.first_code(direction));
        }
        self.codes.clear();
        Ok(END)
    }

    /// Whether the source has no more entries.
    #[inline(always)]
    pub(crate) fn is_exhausted(&self) -> bool {
        self.codes.is_empty()
    }

    #[inline(always)]
    pub(crate) fn key(&self) -> &[u8] {
        self.chunk.key(self.at)
    }

    /// Returns the code of the current entry, relative to no base; [`END`] without an entry.
    pub(crate) fn first_code(&self, direction: Direction) -> u64 {
        if self.is_exhausted() { END } else { order::first_code(self.key(), direction) }
    }
}

/// Compares two inputs with equal codes by their keys, SeqNos and ages.
#[inline(never)]
pub(crate) fn break_tie(inputs: &[Input], direction: Direction, a: u32, b: u32) -> TieBreak {
    let (first, second) = (&inputs[a as usize], &inputs[b as usize]);
    // An exhausted source comes last, whatever its code is.
    match (first.is_exhausted(), second.is_exhausted()) {
        (false, false) => {}
        (first_ended, _) => return TieBreak { first_wins: !first_ended, loser_code: END },
    }
    let (first_key, second_key) = (first.key(), second.key());
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
    TieBreak { first_wins, loser_code }
}
