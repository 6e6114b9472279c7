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
use crate::visible::VisibleGatherer;

/// Number of messages in the first chunk. It is small because most cursors return only a few
/// entries, and the memtable is one of several sources of these entries.
const CHUNK_MESSAGES_FIRST: usize = 16;
/// Messages of the first chunk after a long skip: such a cursor will most likely skip again.
const CHUNK_MESSAGES_AFTER_SKIP: usize = 4;
/// Growth factor from one chunk to the next.
const CHUNK_GROWTH: usize = 4;
/// Maximum number of messages of a chunk. (More slots are gathered at once only if a key has many
/// messages.)
const CHUNK_MESSAGES_MAX: usize = 1024;
/// A chunk ends when its keys and values exceed this many bytes.
const CHUNK_BYTES: usize = 256 << 10;
/// Buffers above this size are reserved exactly, not doubled.
const LARGE_BYTES: usize = 32 << 10;
/// Prefetch distance in messages: messages are stored in order of arrival, so reading each key is a
/// cache miss.
const PREFETCH_SLOTS: usize = 16;

/// A cursor over the messages of a memtable as of the cursor's creation. The cursor owns the memory
/// that it reads: the memtable may be written to or dropped while the cursor exists.
///
/// Within a chunk, keys ascend and the newest message of a key comes first, in either direction; a
/// backward cursor returns the chunks from the last to the first. The messages of one key may be
/// spread over several chunks.
///
/// A clone starts at the same position and moves independently.
#[derive(Clone)]
pub struct MemCursor {
    source: Option<Remaining>,
    direction: Direction,
    snapshot: SeqNo,
    /// Gathered slots; the slots in `pending` are still to be returned.
    gathered: Vec<Slot>,
    pending: Range<usize>,
    /// Number of messages to put into the next chunk.
    want: usize,
    /// Largest value of `want`.
    most: usize,
    mode: GatherMode,
    with_values: bool,
}

/// How slots are gathered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum GatherMode {
    /// All slots: the merge of a flush needs every message.
    All,
    /// All slots of each array. If the snapshot sees the complete array, and the array has a copy
    /// without obsolete slots, the slots of that copy. Used while keys have few messages; see
    /// `Memtable::visible_cursor`.
    Pieces,
    /// Only messages that the snapshot may see, key by key: used after the cursor found keys with
    /// many messages.
    Visible,
}

impl GatherMode {
    /// Returns the slots of an array that this mode gathers.
    fn of(self, array: &SortedArray, snapshot: SeqNo) -> &SortedArray {
        if self == Self::All { array } else { array.seen_by(snapshot) }
    }
}

/// The part of the memtable that is not gathered yet.
#[derive(Clone)]
struct Remaining {
    state: Arc<Published>,
    tail: Vec<Slot>,
    tail_range: Range<usize>,
    /// For each array with slots left: its index and the range of these slots.
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
            mode: GatherMode::All,
            with_values: true,
        }
    }

    pub(crate) fn new(
        state: Arc<Published>,
        tail: Vec<Slot>,
        direction: Direction,
        bounds: Bounds<'_>,
        snapshot: SeqNo,
        mode: GatherMode,
    ) -> Self {
        let source = Some(Remaining::new(state, tail, bounds, snapshot, mode));
        Self { source, direction, snapshot, mode, ..Self::empty() }
    }

    /// Returns the number of messages left in the cursor's range. Some may be too new for the
    /// snapshot.
    #[must_use]
    pub fn messages(&self) -> u64 {
        let gathered = self.pending.len();
        (gathered + self.source.as_ref().map_or(0, Remaining::len)) as u64
    }

    /// Returns the number of messages below `key`, for a forward cursor that has returned nothing
    /// yet.
    #[must_use]
    pub fn messages_below(&self, key: &[u8]) -> u64 {
        self.source.as_ref().map_or(0, |source| source.len_below(key, self.mode, self.snapshot))
            as u64
    }

    /// Returns the number of keys in the cursor's range, computed without reading values; `None` if
    /// some of the messages may be too new for the snapshot.
    #[must_use]
    pub fn count_keys(&self) -> Option<u64> {
        let Some(Remaining { state, tail_range, ranges, .. }) = &self.source else {
            return Some(0);
        };
        let mut slots = Vec::new();
        for (i, range) in ranges {
            let array = self.mode.of(&state.arrays[*i as usize], self.snapshot);
            if !array.is_visible(self.snapshot) {
                return None;
            }
            slots.extend_from_slice(&array.slots()[range.clone()]);
        }
        sort_stable(&mut slots, &state.chunks);
        tail_range.is_empty().then(|| keys(&slots, &state.chunks) as u64)
    }

    /// Returns the number of deletes among the messages in the range of a cursor that has returned
    /// nothing yet. Reads the header of each message.
    #[must_use]
    pub fn deletes(&self) -> u64 {
        let Some(Remaining { state, tail, tail_range, ranges }) = &self.source else { return 0 };
        let count = |slots: &[Slot]| {
            slots.iter().filter(|slot| state.chunks.is_delete(**slot)).count() as u64
        };
        let slots = |i: &u32| self.mode.of(&state.arrays[*i as usize], self.snapshot).slots();
        let in_arrays = ranges.iter().map(|(i, range)| count(&slots(i)[range.clone()]));
        count(&tail[tail_range.clone()]) + in_arrays.sum::<u64>()
    }

    /// Makes the cursor return empty values, for callers that count keys. A cursor that
    /// `Memtable::visible_cursor` created also gathers only visible messages, from the start.
    #[must_use]
    pub fn for_counting(mut self) -> Self {
        self.with_values = false;
        if self.mode == GatherMode::Pieces {
            self.mode = GatherMode::Visible;
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
        mode: GatherMode,
    ) -> Self {
        let chunks = &state.chunks;
        let edges = Edges::of(bounds, chunks);
        let tail_range = edges.within(&tail, chunks);
        let ranges = state
            .arrays
            .iter()
            .enumerate()
            .filter(|(_, array)| array.seqs().min <= snapshot)
            .map(|(i, array)| (i as u32, mode.of(array, snapshot).between(chunks, &edges)))
            .filter(|(_, range)| !range.is_empty())
            .collect();
        Self { state, tail, tail_range, ranges }
    }

    fn len(&self) -> usize {
        self.tail_range.len() + self.ranges.iter().map(|(_, range)| range.len()).sum::<usize>()
    }

    /// Returns the number of slots below a key.
    fn len_below(&self, key: &[u8], mode: GatherMode, snapshot: SeqNo) -> usize {
        let Self { state, tail, tail_range, ranges } = self;
        let probe = state.chunks.probe(key);
        let below = |slots: &[Slot]| rank_below(slots, &state.chunks, &probe);
        let slots = |i: &u32| mode.of(&state.arrays[*i as usize], snapshot).slots();
        let in_arrays = ranges.iter().map(|(i, range)| below(&slots(i)[range.clone()]));
        below(&tail[tail_range.clone()]) + in_arrays.sum::<usize>()
    }

    /// Skips the slots before `key`. Returns whether these were more than [`CHUNK_MESSAGES_FIRST`].
    fn skip(
        &mut self,
        key: &[u8],
        mode: GatherMode,
        snapshot: SeqNo,
        direction: Direction,
    ) -> bool {
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
            narrow(range, mode.of(&state.arrays[*i as usize], snapshot).slots());
        }
        ranges.retain(|(_, range)| range.start < range.end);
        before - self.len() > CHUNK_MESSAGES_FIRST
    }

    fn has_more(&self) -> bool {
        !self.tail_range.is_empty() || !self.ranges.is_empty()
    }

    /// Gathers about `want` slots into `out`; none if no slot is left. Returns the mode for the
    /// next call.
    fn gather(
        &mut self,
        mode: GatherMode,
        direction: Direction,
        want: usize,
        snapshot: SeqNo,
        out: &mut Vec<Slot>,
    ) -> GatherMode {
        let Self { state, tail, tail_range, ranges } = self;
        let mut rests: Rests<'_> = SmallVec::new();
        rests.push(&tail[tail_range.clone()]);
        let arrays = &state.arrays;
        let slots = |i: &u32| mode.of(&arrays[*i as usize], snapshot).slots();
        rests.extend(ranges.iter().map(|(i, range)| &slots(i)[range.clone()]));
        let chunks = &state.chunks;
        let passed = match (mode, direction) {
            (GatherMode::Visible, _) => {
                // The tail's SeqNos are unknown here, so each of its messages is checked.
                let visible = ranges.iter().map(|(i, _)| arrays[*i as usize].is_visible(snapshot));
                let visible = once(false).chain(visible).collect();
                let gatherer = VisibleGatherer { snapshot, visible, chunks };
                match direction {
                    Direction::Forward => gatherer.first(&mut rests, want, out),
                    Direction::Backward => gatherer.last(&mut rests, want, out),
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
        match mode {
            GatherMode::All => GatherMode::All,
            GatherMode::Pieces if 2 * keys(out, &state.chunks) <= out.len() => GatherMode::Visible,
            // Gathering visible messages searches all arrays for each key. That pays off only if it
            // passes over at least twice as many slots as it returns.
            GatherMode::Visible if passed < 2 * out.len() => GatherMode::Pieces,
            mode => mode,
        }
    }
}

impl MemCursor {
    /// Drops the pending slots before `key`; returns whether any pending slots are left.
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

/// Returns the number of distinct keys among ordered slots.
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
                self.mode = source.gather(self.mode, direction, want, snapshot, &mut self.gathered);
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

    fn expect(&mut self, messages: usize) {
        if messages > 0 {
            self.want = messages.max(CHUNK_MESSAGES_AFTER_SKIP).min(self.most);
        }
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
        if source.skip(key, self.mode, self.snapshot, self.direction) {
            self.want = self.want.min(CHUNK_MESSAGES_AFTER_SKIP);
            source.state.probes.add();
        }
        Ok(())
    }
}

/// Returns the number of slots at the end of `slots` that make the next chunk of a backward cursor.
/// A chunk is filled in ascending order, so its first slot must be known before.
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

/// Copies the messages of the first slots that `snapshot` may see into an empty chunk, up to the
/// size limits of a chunk. Returns the number of slots examined.
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
    // Messages of one tree have about the same size, so the first one decides for all.
    let lines = if with_values { chunks.lines(first) } else { 1 };
    for &slot in slots.iter().take(PREFETCH_SLOTS) {
        chunks.prefetch(slot, lines);
    }
    let value_bytes = if with_values { usize::MAX } else { 0 };
    // Reserve room first, because growing by doubling would copy most messages twice.
    let (message, room) = (chunks.get(first), CHUNK_BYTES / slots.len());
    // Doubling would also waste memory when a large chunk needs slightly more than the previous
    // one.
    let reserve = |array: &mut Array<u8>, bytes: usize| match slots.len() * bytes.min(room) {
        bytes if bytes < LARGE_BYTES => array.reserve(bytes),
        bytes => array.reserve_exact(bytes + bytes / 8),
    };
    reserve(keys, message.key.len());
    reserve(values, message.value.len().min(value_bytes));
    // Resizes each array once, because appending each message would check five capacities.
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
