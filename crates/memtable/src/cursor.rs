//! [`MemCursor`]: the messages of a memtable between two keys, as chunks.

use std::iter::once;
use std::ops::Range;

use frondb_core::chunk::{Values, key_prefix};
use frondb_core::mem::Array;
use frondb_core::sync::Arc;
use frondb_core::{Chunk, Direction, Result, SeqNo, Source};
use smallvec::SmallVec;

use crate::arena::{Chunks, Slot};
use crate::array::{Bounds, Edges, SortedArray, rank_ahead, rank_below};
use crate::gather::{Rests, sort_stable, take_first, take_last};
use crate::shared::Published;
use crate::skim::Skim;

/// Messages of the first chunk. Most cursors are read for a few entries, and a memtable is one of
/// several sources that these come from.
const CHUNK_MESSAGES_FIRST: usize = 16;
/// Messages of the first chunk behind a leap: who leaps will most often leap again.
const CHUNK_MESSAGES_LEAP: usize = 4;
/// How many times as many messages the next chunk has.
const CHUNK_GROWTH: usize = 4;
/// Messages of a chunk at most. (What is gathered for one is larger only if a key has many.)
const CHUNK_MESSAGES_MAX: usize = 1024;
/// A chunk ends when its keys and values pass this.
const CHUNK_BYTES: usize = 256 << 10;
/// More than this is not reserved twice over.
const LARGE_BYTES: usize = 32 << 10;
/// How many messages ahead their memory is asked for: keys lie in the order they came, so each is
/// a cache miss.
const PREFETCH_SLOTS: usize = 16;

/// Hands out the messages of a memtable as it was when the cursor was made. Owns what it needs:
/// the memtable may be written to or dropped meanwhile.
///
/// Keys ascend and the newest message of a key comes first, in either direction within a chunk;
/// a backward cursor hands out the chunks from the last to the first. The messages of one key may
/// be spread over two chunks.
///
/// A clone goes on from the same place by itself.
#[derive(Clone)]
pub struct MemCursor {
    source: Option<Remaining>,
    direction: Direction,
    snapshot: SeqNo,
    /// Slots that were gathered; `pending` of them were not handed out.
    gathered: Vec<Slot>,
    pending: Range<usize>,
    /// Messages wanted in the next chunk.
    want: usize,
    /// Messages wanted in a chunk at most.
    most: usize,
    how: GatherMode,
    with_values: bool,
}

/// How slots are gathered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum GatherMode {
    /// All of them: whoever merges them needs every message.
    All,
    /// All of them while keys have hardly more than one message; see `Memtable::visible_cursor`.
    Pieces,
    /// What the snapshot may see, key by key: keys were met that have many messages.
    Skim,
}

impl GatherMode {
    /// The slots of an array that are gathered.
    fn of(self, array: &SortedArray, snapshot: SeqNo) -> &SortedArray {
        if self == Self::All { array } else { array.seen_by(snapshot) }
    }
}

/// What was not gathered yet.
#[derive(Clone)]
struct Remaining {
    state: Arc<Published>,
    tail: Vec<Slot>,
    tail_range: Range<usize>,
    /// Of each array that has something left: which one, and what.
    ranges: SmallVec<[(u32, Range<usize>); 16]>,
}

impl MemCursor {
    pub(crate) fn empty() -> Self {
        Self {
            source: None,
            direction: Direction::Forward,
            snapshot: SeqNo::MAX,
            gathered: Vec::new(),
            pending: 0..0,
            want: CHUNK_MESSAGES_FIRST,
            most: CHUNK_MESSAGES_MAX,
            how: GatherMode::All,
            with_values: true,
        }
    }

    pub(crate) fn new(
        state: Arc<Published>,
        tail: Vec<Slot>,
        direction: Direction,
        bounds: Bounds<'_>,
        snapshot: SeqNo,
        how: GatherMode,
    ) -> Self {
        let source = Some(Remaining::new(state, tail, bounds, snapshot, how));
        Self { source, direction, snapshot, how, ..Self::empty() }
    }

    /// How many messages it goes over, of which it hands out some.
    #[must_use]
    pub fn messages(&self) -> u64 {
        let gathered = self.pending.len();
        (gathered + self.source.as_ref().map_or(0, Remaining::len)) as u64
    }

    /// How many of them have a key below `key`, if it goes forward and has handed out nothing.
    #[must_use]
    pub fn messages_below(&self, key: &[u8]) -> u64 {
        self.source.as_ref().map_or(0, |source| source.len_below(key, self.how, self.snapshot))
            as u64
    }

    /// How many keys it goes over, from the slots alone, which it sorts; `None` if some of the messages
    /// may be too new for the snapshot.
    #[must_use]
    pub fn count_keys(&self) -> Option<u64> {
        let Some(Remaining { state, tail_range, ranges, .. }) = &self.source else {
            return Some(0);
        };
        let mut slots = Vec::new();
        for (i, range) in ranges {
            let array = self.how.of(&state.arrays[*i as usize], self.snapshot);
            if !array.is_visible(self.snapshot) {
                return None;
            }
            slots.extend_from_slice(&array.slots()[range.clone()]);
        }
        sort_stable(&mut slots, &state.chunks);
        tail_range.is_empty().then(|| keys(&slots, &state.chunks) as u64)
    }

    /// Hands out empty values, for who counts keys; and expects keys with many messages from the first
    /// on, if only what is visible is wanted.
    #[must_use]
    pub fn for_counting(mut self) -> Self {
        self.with_values = false;
        if self.how == GatherMode::Pieces {
            self.how = GatherMode::Skim;
        }
        self
    }

    pub(crate) fn in_large_chunks(mut self) -> Self {
        self.want = CHUNK_MESSAGES_MAX;
        self
    }
}

impl Remaining {
    fn new(
        state: Arc<Published>,
        tail: Vec<Slot>,
        bounds: Bounds<'_>,
        snapshot: SeqNo,
        how: GatherMode,
    ) -> Self {
        let chunks = &state.chunks;
        let edges = Edges::of(bounds, chunks);
        let tail_range = edges.within(&tail, chunks);
        let ranges = state
            .arrays
            .iter()
            .enumerate()
            .filter(|(_, array)| array.seqs().min <= snapshot)
            .map(|(i, array)| (i as u32, how.of(array, snapshot).between(chunks, &edges)))
            .filter(|(_, range)| !range.is_empty())
            .collect();
        Self { state, tail, tail_range, ranges }
    }

    fn len(&self) -> usize {
        self.tail_range.len() + self.ranges.iter().map(|(_, range)| range.len()).sum::<usize>()
    }

    /// How much of it lies below a key.
    fn len_below(&self, key: &[u8], how: GatherMode, snapshot: SeqNo) -> usize {
        let Self { state, tail, tail_range, ranges } = self;
        let probe = state.chunks.probe(key);
        let below = |slots: &[Slot]| rank_below(slots, &state.chunks, &probe);
        let slots = |i: &u32| how.of(&state.arrays[*i as usize], snapshot).slots();
        let in_arrays = ranges.iter().map(|(i, range)| below(&slots(i)[range.clone()]));
        below(&tail[tail_range.clone()]) + in_arrays.sum::<usize>()
    }

    /// Leaves out what lies before `key`; returns whether that is more than a few messages.
    fn skip(&mut self, key: &[u8], how: GatherMode, snapshot: SeqNo, direction: Direction) -> bool {
        let before = self.len();
        let Self { state, tail, tail_range, ranges } = self;
        let probe = state.chunks.probe(key);
        let narrow = |range: &mut Range<usize>, slots: &[Slot]| {
            let ahead = rank_ahead(&slots[range.clone()], &state.chunks, &probe, direction);
            let at = range.start + ahead;
            match direction {
                Direction::Forward => range.start = at,
                Direction::Backward => range.end = at,
            }
        };
        narrow(tail_range, tail);
        for (i, range) in ranges.iter_mut() {
            narrow(range, how.of(&state.arrays[*i as usize], snapshot).slots());
        }
        ranges.retain(|(_, range)| range.start < range.end);
        before - self.len() > CHUNK_MESSAGES_FIRST
    }

    fn has_more(&self) -> bool {
        !self.tail_range.is_empty() || !self.ranges.is_empty()
    }

    /// Gathers about `want` slots into `out`; none if nothing is left. Says how to go on.
    fn gather(
        &mut self,
        how: GatherMode,
        direction: Direction,
        want: usize,
        snapshot: SeqNo,
        out: &mut Vec<Slot>,
    ) -> GatherMode {
        let Self { state, tail, tail_range, ranges } = self;
        let mut rests: Rests<'_> = SmallVec::new();
        rests.push(&tail[tail_range.clone()]);
        let arrays = &state.arrays;
        let slots = |i: &u32| how.of(&arrays[*i as usize], snapshot).slots();
        rests.extend(ranges.iter().map(|(i, range)| &slots(i)[range.clone()]));
        let chunks = &state.chunks;
        let passed = match (how, direction) {
            (GatherMode::Skim, _) => {
                // Of the tail it is not known.
                let visible = ranges.iter().map(|(i, _)| arrays[*i as usize].is_visible(snapshot));
                let visible = once(false).chain(visible).collect();
                let skim = Skim { snapshot, visible, chunks };
                match direction {
                    Direction::Forward => skim.first(&mut rests, want, out),
                    Direction::Backward => skim.last(&mut rests, want, out),
                }
            }
            (_, Direction::Forward) => {
                take_first(&mut rests, want, chunks, out);
                out.len()
            }
            (_, Direction::Backward) => {
                take_last(&mut rests, want, chunks, out);
                out.len()
            }
        };
        let shrink = |range: &mut Range<usize>, left: usize| match direction {
            Direction::Forward => range.start = range.end - left,
            Direction::Backward => range.end = range.start + left,
        };
        shrink(tail_range, rests[0].len());
        for ((_, range), rest) in ranges.iter_mut().zip(&rests[1..]) {
            shrink(range, rest.len());
        }
        ranges.retain(|(_, range)| range.start < range.end);
        match how {
            GatherMode::All => GatherMode::All,
            GatherMode::Pieces if 2 * keys(out, &state.chunks) <= out.len() => GatherMode::Skim,
            // Each key is searched for in all arrays, so it must spare more than it costs.
            GatherMode::Skim if passed < 2 * out.len() => GatherMode::Pieces,
            how => how,
        }
    }
}

impl MemCursor {
    /// Narrows what was gathered and not handed out; whether anything of it is left.
    fn skip_pending(&mut self, key: &[u8]) -> bool {
        let Some(Remaining { state, .. }) = &self.source else { return false };
        let slots = &self.gathered[self.pending.clone()];
        let below = rank_below(slots, &state.chunks, &state.chunks.probe(key));
        match self.direction {
            Direction::Forward => self.pending.start += below,
            Direction::Backward => self.pending.end = self.pending.start + below,
        }
        !self.pending.is_empty()
    }
}

/// How many keys ordered slots have.
fn keys(slots: &[Slot], chunks: &Chunks) -> usize {
    let differ = |pair: &&[Slot]| !chunks.same_key(pair[0], pair[1]);
    slots.windows(2).filter(differ).count() + usize::from(!slots.is_empty())
}

impl Source for MemCursor {
    fn next_chunk(&mut self, chunk: &mut Chunk) -> Result<bool> {
        chunk.clear();
        let Some(source) = &mut self.source else { return Ok(false) };
        while chunk.is_empty() {
            if self.pending.is_empty() {
                self.gathered.clear();
                let Self { direction, want, snapshot, .. } = *self;
                self.gathered.reserve(want.min(source.len()));
                self.how = source.gather(self.how, direction, want, snapshot, &mut self.gathered);
                self.pending = 0..self.gathered.len();
                source.state.probes.add_merged(self.gathered.len());
                if self.gathered.is_empty() && !source.has_more() {
                    self.source = None;
                    return Ok(false);
                }
            }
            let slots = &self.gathered[self.pending.clone()];
            let chunks = &source.state.chunks;
            match self.direction {
                Direction::Forward => {
                    let filled = fill(chunk, slots, self.snapshot, chunks, self.with_values);
                    self.pending.start += filled;
                }
                Direction::Backward => {
                    let n = piece_at_end(slots, chunks);
                    let piece = &slots[slots.len() - n..];
                    let filled = fill(chunk, piece, self.snapshot, chunks, self.with_values);
                    debug_assert_eq!(filled, n);
                    self.pending.end -= n;
                }
            }
            self.want = (self.want * CHUNK_GROWTH).min(self.most);
        }
        Ok(true)
    }

    fn keep_small(&mut self, messages: usize) {
        self.most = messages.clamp(1, CHUNK_MESSAGES_MAX);
        self.want = self.want.min(self.most);
    }

    fn skip(&mut self, key: &[u8]) -> Result<()> {
        if self.skip_pending(key) {
            return Ok(());
        }
        let Some(source) = &mut self.source else { return Ok(()) };
        if source.skip(key, self.how, self.snapshot, self.direction) {
            self.want = self.want.min(CHUNK_MESSAGES_LEAP);
            source.state.probes.add();
        }
        Ok(())
    }
}

/// How many slots at the end of `slots` make the next chunk of a backward cursor, which is filled
/// ascending and so must know where to begin.
fn piece_at_end(slots: &[Slot], chunks: &Chunks) -> usize {
    let (mut n, mut bytes) = (0, 0);
    for &slot in slots.iter().rev().take(CHUNK_MESSAGES_MAX) {
        bytes += chunks.data_len(slot);
        if n > 0 && bytes > CHUNK_BYTES {
            break;
        }
        n += 1;
    }
    n
}

/// Copies the messages of the first slots that `snapshot` may see into an empty chunk, no more than a chunk
/// should have; returns how many slots it went over.
fn fill(
    chunk: &mut Chunk,
    slots: &[Slot],
    snapshot: SeqNo,
    chunks: &Chunks,
    with_values: bool,
) -> usize {
    let slots = &slots[..slots.len().min(CHUNK_MESSAGES_MAX)];
    let Some(&first) = slots.first() else { return 0 };
    let Chunk { prefixes, key_ends, keys, kinds, seqs, value_ends, values, .. } = chunk;
    let Values::Owned(values) = values else { return 0 };
    // Messages are much alike.
    let lines = if with_values { chunks.lines(first) } else { 1 };
    for &slot in slots.iter().take(PREFETCH_SLOTS) {
        chunks.prefetch(slot, lines);
    }
    let value_bytes = if with_values { usize::MAX } else { 0 };
    // Growing by doubling copies most of them twice.
    let (message, room) = (chunks.get(first), CHUNK_BYTES / slots.len());
    // And so would room for twice as many, when a large chunk needs a little more than the one before.
    let reserve = |array: &mut Array<u8>, bytes: usize| match slots.len() * bytes.min(room) {
        bytes if bytes < LARGE_BYTES => array.reserve(bytes),
        bytes => array.reserve_exact(bytes + bytes / 8),
    };
    reserve(keys, message.key.len());
    reserve(values, message.value.len().min(value_bytes));
    // Room for all at once, because appending each would look five times whether there is some.
    prefixes.resize(slots.len(), 0);
    key_ends.resize(slots.len(), 0);
    kinds.resize(slots.len(), message.kind);
    seqs.resize(slots.len(), message.seq);
    value_ends.resize(slots.len(), 0);
    let (mut count, mut passed) = (0, slots.len());
    for (i, &slot) in slots.iter().enumerate() {
        if let Some(&ahead) = slots.get(i + PREFETCH_SLOTS) {
            chunks.prefetch(ahead, lines);
        }
        let message = chunks.get(slot);
        if message.seq > snapshot {
            continue;
        }
        let value = &message.value[..message.value.len().min(value_bytes)];
        let bytes = keys.len() + values.len() + message.key.len() + value.len();
        if bytes > CHUNK_BYTES && count > 0 {
            passed = i;
            break;
        }
        keys.extend_from_slice(message.key);
        values.extend_from_slice(value);
        prefixes[count] = key_prefix(message.key);
        key_ends[count] = keys.len() as u32;
        kinds[count] = message.kind;
        seqs[count] = message.seq;
        value_ends[count] = values.len() as u32;
        count += 1;
    }
    prefixes.truncate(count);
    key_ends.truncate(count);
    kinds.truncate(count);
    seqs.truncate(count);
    value_ends.truncate(count);
    passed
}
