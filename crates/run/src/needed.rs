//! Reads, concurrently, the blocks that several lookups need.
//!
//! ```text
//!   needed, sorted by run and block
//!     -- admit as many distinct blocks as the memory allows (block_reads.rs)
//!        -- neighbouring blocks become one span -- read all spans at the same time
//!           -- for each block: decode, insert into the cache, give it to its lookups, release
//!     -- the next blocks
//! ```
//!
//! Invariant: a thread whose blocks are admitted waits only for the device. So a lookup must not
//! read anything when it gets its block. Any thread may read.

use frondb_core::{Result, RunId};

use crate::env::RunEnv;
use crate::missing::{MissingBlock, ReadBlock};
use crate::read::{Span, SpanPlace, read_spans};
use crate::reader::Run;

/// Largest span in which neighbouring blocks are read, bytes. A disk takes longer for a longer read
/// than for several short concurrent ones.
const SPAN_BYTES_MAX: u64 = 128 << 10;

/// A block that a lookup needs.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the names and the types of its fields say it")]
pub struct NeededBlock<'a> {
    pub run: &'a Run,
    pub block: MissingBlock,
    /// The caller's number of the lookup.
    pub lookup: usize,
}

/// Receives a block, or the error of its read, for a lookup.
type Take<'a> = dyn FnMut(&NeededBlock<'_>, Result<ReadBlock>) + 'a;

/// The lookups that need the same block, at least one.
type OfBlock<'a> = &'a [NeededBlock<'a>];

/// Reads the `needed` blocks of the runs of `env`, inserts them into the cache, and passes each
/// block to the lookups that need it, in the order of their numbers. If a block cannot be read,
/// only the first of its lookups gets the error, and the others get nothing.
pub fn read_needed(env: &RunEnv, needed: &mut [NeededBlock<'_>], take: &mut Take<'_>) {
    needed.sort_unstable_by_key(|needed| (needed.place(), needed.lookup));
    let blocks: Vec<OfBlock<'_>> = needed.chunk_by(|a, b| a.place() == b.place()).collect();
    let mut rest = &blocks[..];
    while let [first, others @ ..] = rest {
        let others = others.iter().map(|block| block[0].memory());
        let (mut admitted, more) =
            env.block_reads.begin_many(&env.budget, first[0].memory(), others);
        let (now, later) = rest.split_at(1 + more);
        rest = later;
        let mut unread = now.to_vec();
        if admitted.has_waited() {
            // Another thread may have read the block meanwhile.
            unread.retain(|block| !give_cached(block, take));
        }
        let spans = spans_of(&unread);
        for (blocks, span) in spans.iter().zip(read(env, &spans)) {
            give_span(blocks, span, take);
            admitted.end_part(blocks.iter().map(|block| block[0].memory()).sum());
        }
    }
}

impl NeededBlock<'_> {
    fn place(&self) -> (RunId, usize) {
        (self.run.meta().id, self.block.number)
    }

    fn end(&self) -> u64 {
        self.block.offset + self.block.len as u64
    }

    fn memory(&self) -> u64 {
        self.run.read_memory(self.block.len)
    }
}

/// Groups blocks, sorted by run and number, into spans of neighbours.
fn spans_of<'a>(mut blocks: &'a [OfBlock<'a>]) -> Vec<&'a [OfBlock<'a>]> {
    let mut spans = Vec::with_capacity(blocks.len());
    while let Some(first) = blocks.first() {
        let (run, number) = first[0].place();
        let begin = first[0].block.offset;
        let is_neighbour = |(i, block): &(usize, &OfBlock<'_>)| {
            block[0].place() == (run, number + i)
                && (*i == 0 || block[0].end() - begin <= SPAN_BYTES_MAX)
        };
        let count = blocks.iter().enumerate().take_while(is_neighbour).count();
        let (span, rest) = blocks.split_at(count);
        spans.push(span);
        blocks = rest;
    }
    spans
}

/// Reads all spans concurrently.
fn read(env: &RunEnv, spans: &[&[OfBlock<'_>]]) -> Vec<Result<Span>> {
    let mut places = Vec::with_capacity(spans.len());
    for span in spans {
        let (first, last) = (&span[0][0], &span[span.len() - 1][0]);
        let (offset, len) = (first.block.offset, (last.end() - first.block.offset) as usize);
        first.run.note_read(len);
        places.push(SpanPlace { extents: &first.run.meta().extents, offset, len });
    }
    let spans = env.profiled(|| read_spans(&env.space, &places));
    spans.into_iter().map(|span| env.events.note_damage(span)).collect()
}

/// Passes the blocks of a span to their lookups. If the span cannot be read, reads each block
/// alone, so that only the lookups of a bad block fail.
fn give_span(blocks: &[OfBlock<'_>], span: Result<Span>, take: &mut Take<'_>) {
    match span {
        Ok(span) => {
            let begin = blocks[0][0].block.offset;
            for block in blocks {
                let MissingBlock { offset, len, .. } = block[0].block;
                give(block, Ok(&span.bytes()[(offset - begin) as usize..][..len]), take);
            }
        }
        Err(error) if blocks.len() == 1 => give(blocks[0], Err(error), take),
        Err(_) => {
            for block in blocks {
                let (run, MissingBlock { offset, len, .. }) = (block[0].run, block[0].block);
                let span = run.read(offset, len);
                give(block, span.as_ref().map(Span::bytes).map_err(Clone::clone), take);
            }
        }
    }
}

/// Decodes the frame of a block, inserts it into the cache and passes it to its lookups.
fn give(lookups: OfBlock<'_>, frame: Result<&[u8]>, take: &mut Take<'_>) {
    let [first, others @ ..] = lookups else { return };
    let (run, number) = (first.run, first.block.number);
    let decoded = frame.and_then(|frame| Ok((frame, run.decode(frame, first.block.offset)?)));
    let (frame, block) = match decoded {
        Ok(decoded) => decoded,
        Err(error) => return take(first, Err(error)),
    };
    let keeps_row = !run.cache_block(number, &block, frame);
    take(first, Ok(ReadBlock { block: block.clone(), keeps_row }));
    for other in others {
        // Count one hit for each lookup, as for lookups one after the other.
        let block = run.cached_again(number, &block);
        take(other, Ok(ReadBlock { block, keeps_row: false }));
    }
}

/// Passes a block to its lookups if it is in the cache. Returns whether it is.
fn give_cached(lookups: OfBlock<'_>, take: &mut Take<'_>) -> bool {
    let (run, number) = (lookups[0].run, lookups[0].block.number);
    let Some(block) = run.cached_block(number) else { return false };
    for lookup in lookups {
        take(lookup, Ok(ReadBlock { block: block.clone(), keeps_row: false }));
    }
    true
}
