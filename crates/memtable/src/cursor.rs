//! [`MemCursor`]: the messages of a memtable between two keys, as chunks.

use std::ops::Bound;

use frondb_core::chunk::Values;
use frondb_core::sync::Arc;
use frondb_core::{Chunk, Direction, Result, SeqNo, Source};

use crate::arena::{Chunks, Probe, Slot};
use crate::array::{ArrayBuilder, SortedArray};
use crate::gather::{Part, take_first, take_last};
use crate::memtable::State;

/// Messages of the first chunk: most cursors are read for a few entries only.
const CHUNK_MESSAGES_FIRST: usize = 32;
/// Messages of a chunk at most.
const CHUNK_MESSAGES_MAX: usize = 1024;
/// A chunk ends when its keys and values pass this.
const CHUNK_BYTES: usize = 256 << 10;

/// Hands out the messages of a memtable as it was when the cursor was made. Owns what it needs:
/// the memtable may be written to or dropped meanwhile.
///
/// Keys ascend and the newest message of a key comes first, in either direction within a chunk;
/// a backward cursor hands out the chunks from the last to the first. The messages of one key may
/// be spread over two chunks.
pub struct MemCursor {
    source: Option<Arrays>,
    direction: Direction,
    snapshot: SeqNo,
    /// Slots that were gathered and not handed out: all of them for a forward cursor from `next`
    /// on, for a backward one up to it.
    gathered: Vec<Slot>,
    next: usize,
    /// Messages wanted in the next chunk.
    want: usize,
}

struct Arrays {
    chunks: Chunks,
    /// Newest first.
    parts: Vec<Part>,
}

impl MemCursor {
    pub(crate) fn empty() -> Self {
        Self {
            source: None,
            direction: Direction::Forward,
            snapshot: SeqNo::MAX,
            gathered: Vec::new(),
            next: 0,
            want: CHUNK_MESSAGES_FIRST,
        }
    }

    pub(crate) fn new(
        state: &State,
        tail: Vec<Slot>,
        direction: Direction,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        snapshot: SeqNo,
    ) -> Self {
        let chunks = state.chunks.clone();
        let mut newest = ArrayBuilder::unfiltered(tail.len(), SeqNo::MIN);
        newest.extend(&tail);
        let tail = newest.finish();
        let parts = std::iter::once(&tail)
            .chain(&state.arrays)
            .filter(|array| array.min_seq() <= snapshot)
            .map(|array| cut(array, bounds, &chunks))
            .collect();
        let source = Some(Arrays { chunks, parts });
        Self { source, direction, snapshot, ..Self::empty() }
    }

    pub(crate) fn in_large_chunks(mut self) -> Self {
        self.want = CHUNK_MESSAGES_MAX;
        self
    }
}

/// The part of `array` between two keys.
fn cut(array: &Arc<SortedArray>, bounds: (Bound<&[u8]>, Bound<&[u8]>), chunks: &Chunks) -> Part {
    let start = match bounds.0 {
        Bound::Included(key) => array.rank_below(chunks, &Probe::new(key)),
        Bound::Excluded(key) => array.rank_through(chunks, &Probe::new(key)),
        Bound::Unbounded => 0,
    };
    let end = match bounds.1 {
        Bound::Included(key) => array.rank_through(chunks, &Probe::new(key)),
        Bound::Excluded(key) => array.rank_below(chunks, &Probe::new(key)),
        Bound::Unbounded => array.slots().len(),
    };
    Part { array: Arc::clone(array), start, end: end.max(start) }
}

impl Source for MemCursor {
    fn next_chunk(&mut self, chunk: &mut Chunk) -> Result<bool> {
        chunk.clear();
        let Some(source) = &mut self.source else { return Ok(false) };
        let forward = self.direction == Direction::Forward;
        while chunk.is_empty() {
            let rest =
                if forward { &self.gathered[self.next..] } else { &self.gathered[..self.next] };
            if rest.is_empty() {
                self.gathered.clear();
                let take = if forward { take_first } else { take_last };
                take(&mut source.parts, self.want, &source.chunks, &mut self.gathered);
                self.next = if forward { 0 } else { self.gathered.len() };
                if self.gathered.is_empty() {
                    self.source = None;
                    return Ok(false);
                }
                continue;
            }
            let range = piece(rest, self.want, forward, &source.chunks);
            fill(chunk, &rest[range.clone()], self.snapshot, &source.chunks);
            self.next = if forward { self.next + range.end } else { range.start };
            self.want = (self.want * 2).min(CHUNK_MESSAGES_MAX);
        }
        Ok(true)
    }
}

/// The slots of the next chunk: from the front of `slots` or from its end, at least one, at most
/// `want`, and no more bytes than a chunk should have.
fn piece(slots: &[Slot], want: usize, forward: bool, chunks: &Chunks) -> std::ops::Range<usize> {
    let (mut n, mut bytes) = (0, 0);
    while n < slots.len().min(want) {
        let message = chunks.get(slots[if forward { n } else { slots.len() - 1 - n }]);
        bytes += message.key.len() + message.value.len();
        if n > 0 && bytes > CHUNK_BYTES {
            break;
        }
        n += 1;
    }
    if forward { 0..n } else { slots.len() - n..slots.len() }
}

/// Copies the messages that `snapshot` may see.
fn fill(chunk: &mut Chunk, slots: &[Slot], snapshot: SeqNo, chunks: &Chunks) {
    let Values::Owned(values) = &mut chunk.values else { return };
    for &slot in slots {
        let message = chunks.get(slot);
        if message.seq > snapshot {
            continue;
        }
        chunk.prefixes.push(slot.prefix());
        chunk.keys.extend_from_slice(message.key);
        chunk.key_ends.push(chunk.keys.len() as u32);
        values.extend_from_slice(message.value);
        chunk.value_ends.push(values.len() as u32);
        chunk.kinds.push(message.kind);
        chunk.seqs.push(message.seq);
    }
}
