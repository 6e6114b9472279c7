//! [`Chunk`]: sorted messages as arrays, and [`Source`], which returns chunks.
//!
//! A block is decoded into a chunk, a memtable fills a chunk, and a merge reads the chunks of its
//! sources. So the hot loops run over arrays, with one virtual call per chunk instead of one per
//! message.
//!
//! Invariants of a chunk: messages ascend by key, and messages of one key *descend* by SeqNo; each
//! array of per-message data has one element per message. A backward source returns its chunks from
//! the last to the first. Each of these chunks is also ascending, and its reader reads it from the
//! end.

use std::cmp::Ordering;
use std::ops::Range;

use crate::mem::{Array, Bytes};
use crate::{MessageKind, Result, SeqNo};

/// The direction of a scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Ascending keys.
    Forward,
    /// Descending keys.
    Backward,
}

/// The memory of a chunk's values.
#[derive(Clone, Debug)]
pub enum Values {
    /// In the chunk itself.
    Owned(Array<u8>),
    /// In a decompressed block that the chunk keeps alive.
    Shared(Bytes),
}

impl Values {
    /// Returns the bytes to which `value_ends` refers.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Owned(vec) => vec,
            Self::Shared(bytes) => bytes,
        }
    }
}

/// Sorted messages as arrays. The fields are public for the hot loops that fill and merge chunks;
/// all other code uses the methods.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// First eight bytes of each key, as a big-endian number, padded with zeros. A key with a
    /// smaller prefix is a smaller key.
    pub prefixes: Array<u64>,
    /// End of each key in `keys`. A key begins at the end of the previous key.
    pub key_ends: Array<u32>,
    /// The keys, one after the other. Unused bytes may follow the last key.
    pub keys: Array<u8>,
    /// Kind of each message.
    pub kinds: Array<MessageKind>,
    /// SeqNo of each message.
    pub seqs: Array<SeqNo>,
    /// Offset in `values` at which the first value begins.
    pub values_start: u32,
    /// End of each value in `values`.
    pub value_ends: Array<u32>,
    /// The value bytes.
    pub values: Values,
}

impl Default for Chunk {
    fn default() -> Self {
        Self::new()
    }
}

impl Chunk {
    /// Creates an empty chunk.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            prefixes: Array::new(),
            key_ends: Array::new(),
            keys: Array::new(),
            kinds: Array::new(),
            seqs: Array::new(),
            values_start: 0,
            value_ends: Array::new(),
            values: Values::Owned(Array::new()),
        }
    }

    /// Removes all entries and keeps the arrays' memory.
    pub fn clear(&mut self) {
        self.prefixes.clear();
        self.key_ends.clear();
        self.keys.clear();
        self.kinds.clear();
        self.seqs.clear();
        self.values_start = 0;
        self.value_ends.clear();
        match &mut self.values {
            Values::Owned(vec) => vec.clear(),
            Values::Shared(_) => self.values = Values::Owned(Array::new()),
        }
    }

    /// Returns the bytes of memory that the arrays own, unused capacity included.
    #[must_use]
    pub fn allocated(&self) -> usize {
        let values = match &self.values {
            Values::Owned(bytes) => bytes.allocated(),
            Values::Shared(_) => 0,
        };
        values
            + self.keys.allocated()
            + self.prefixes.allocated()
            + self.key_ends.allocated()
            + self.value_ends.allocated()
            + self.kinds.allocated()
            + self.seqs.allocated()
    }

    /// Copies shared values from their decompressed block into the chunk, so that the chunk no
    /// longer keeps the block alive.
    pub fn own_values(&mut self) {
        let Values::Shared(bytes) = &self.values else { return };
        let end = self.value_ends.last().map_or(self.values_start, |end| *end);
        let owned = Array::from(&bytes[self.values_start as usize..end as usize]);
        self.value_ends.iter_mut().for_each(|end| *end -= self.values_start);
        (self.values, self.values_start) = (Values::Owned(owned), 0);
    }

    /// Returns the number of messages.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.prefixes.len()
    }

    /// Whether the chunk is empty.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.prefixes.is_empty()
    }

    /// Returns the key of entry `i`.
    #[inline]
    #[must_use]
    pub fn key(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.key_ends[i - 1] as usize };
        &self.keys[start..self.key_ends[i] as usize]
    }

    /// Returns the value of entry `i`.
    #[inline]
    #[must_use]
    pub fn value(&self, i: usize) -> &[u8] {
        let start = if i == 0 { self.values_start } else { self.value_ends[i - 1] };
        &self.values.bytes()[start as usize..self.value_ends[i] as usize]
    }

    /// Returns the number of messages in `range` with keys below `key`. The search begins at the
    /// start of the range for `Forward`, at its end for `Backward`, and is fastest for a key near
    /// there.
    #[must_use]
    pub fn count_below(&self, range: Range<usize>, key: &[u8], direction: Direction) -> usize {
        let prefix = key_prefix(key);
        let is_below = |i: usize| match self.prefixes[i].cmp(&prefix) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => self.key(i) < key,
        };
        let Range { start, end } = range;
        let (mut lo, mut hi, mut step) = (start, end, 1);
        match direction {
            Direction::Forward => {
                while lo + step < end && is_below(lo + step) {
                    lo += step;
                    step *= 2;
                }
                hi = hi.min(lo + step);
            }
            Direction::Backward => {
                while hi > start + step && !is_below(hi - 1 - step) {
                    hi -= step;
                    step *= 2;
                }
                lo = lo.max(hi.saturating_sub(1 + step));
            }
        }
        while lo < hi {
            let mid = (lo + hi) / 2;
            if is_below(mid) { lo = mid + 1 } else { hi = mid }
        }
        lo - start
    }

    /// Appends a message, with a copy of its value. For sources that do not fill whole arrays.
    ///
    /// # Panics
    /// If the values are [`Values::Shared`], or if the keys or the values exceed 4 GiB, which a
    /// caller prevents by filling only chunks of limited size.
    pub fn push(&mut self, key: &[u8], seq: SeqNo, kind: MessageKind, value: &[u8]) {
        let Values::Owned(values) = &mut self.values else {
            panic!("cannot push into a chunk whose values are shared");
        };
        self.prefixes.push(key_prefix(key));
        self.keys.extend_from_slice(key);
        assert!(self.keys.len() <= u32::MAX as usize);
        self.key_ends.push(self.keys.len() as u32);
        values.extend_from_slice(value);
        assert!(values.len() <= u32::MAX as usize);
        self.value_ends.push(values.len() as u32);
        self.kinds.push(kind);
        self.seqs.push(seq);
    }
}

/// Consecutive messages of a chunk, as arrays that a reader can copy as a whole.
#[derive(Clone, Copy, Debug)]
pub struct Entries<'a> {
    chunk: &'a Chunk,
    start: usize,
    end: usize,
}

static NONE: Chunk = Chunk::new();

impl Default for Entries<'_> {
    fn default() -> Self {
        Self { chunk: &NONE, start: 0, end: 0 }
    }
}

impl<'a> Entries<'a> {
    /// Returns the messages in `range` of a chunk.
    ///
    /// # Panics
    /// If the range ends beyond the end of the chunk.
    #[must_use]
    pub fn new(chunk: &'a Chunk, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= chunk.len());
        Self { chunk, start: range.start, end: range.end }
    }

    /// Returns the number of entries.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether there are no entries.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Returns the key bytes of the whole chunk, the offset at which the first key of the range
    /// begins, and the end offset of each key of the range.
    #[must_use]
    pub fn keys(&self) -> (&'a [u8], u32, &'a [u32]) {
        let first = self.start.checked_sub(1).map_or(0, |before| self.chunk.key_ends[before]);
        (&self.chunk.keys, first, &self.chunk.key_ends[self.start..self.end])
    }

    /// Returns for the values what [`keys`](Self::keys) returns for the keys.
    #[must_use]
    pub fn values(&self) -> (&'a [u8], u32, &'a [u32]) {
        let before = self.start.checked_sub(1);
        let first = before.map_or(self.chunk.values_start, |before| self.chunk.value_ends[before]);
        (self.chunk.values.bytes(), first, &self.chunk.value_ends[self.start..self.end])
    }
}

/// Returns the first eight bytes of a key as a big-endian number, padded with zeros.
#[inline]
#[must_use]
pub fn key_prefix(key: &[u8]) -> u64 {
    if let Some(head) = key.first_chunk::<8>() {
        u64::from_be_bytes(*head)
    } else {
        let mut head = [0; 8];
        head[..key.len()].copy_from_slice(key);
        u64::from_be_bytes(head)
    }
}

/// A source of sorted messages, which returns them chunk by chunk: the cursor of a run or a
/// memtable, or a merge.
pub trait Source: Send {
    /// Replaces the contents of `chunk` with the next messages in the source's direction. Returns
    /// whether `chunk` has messages; `false` means that no messages are left.
    fn next_chunk(&mut self, chunk: &mut Chunk) -> Result<bool>;

    /// Tells the source that the reader will probably need `messages` messages; 0 if the number is
    /// unknown. The number determines the size of the first chunk; later chunks grow. Called before
    /// the first chunk. A source may ignore the number.
    fn expect(&mut self, messages: usize) {
        let _ = messages;
    }

    /// Asks the source to fill chunks of about `messages` messages from now on, to keep no
    /// read-ahead buffer, and to copy values instead of keeping decoded blocks alive. For a scan
    /// that is one of very many open scans. A source may ignore the request.
    fn keep_small(&mut self, messages: usize) {
        let _ = messages;
    }

    /// Skips messages that were not returned yet: a forward source skips messages with keys below
    /// `key`, a backward source messages with keys at or above `key`. This is a hint: the next
    /// chunks may still contain some of these messages.
    ///
    /// # Errors
    /// Errors of reading further messages.
    fn skip(&mut self, key: &[u8]) -> Result<()> {
        let _ = key;
        Ok(())
    }
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn next_chunk(&mut self, chunk: &mut Chunk) -> Result<bool> {
        (**self).next_chunk(chunk)
    }

    fn expect(&mut self, messages: usize) {
        (**self).expect(messages);
    }

    fn keep_small(&mut self, messages: usize) {
        (**self).keep_small(messages);
    }

    fn skip(&mut self, key: &[u8]) -> Result<()> {
        (**self).skip(key)
    }
}
