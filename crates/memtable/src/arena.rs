//! The memory of messages: append-only arena segments ([`Chunk`]; not the chunks of decoded
//! messages that a cursor returns), and the 16-byte [`Slot`] that refers to a message in every
//! ordered array.
//!
//! ```text
//! Slot     bits: u64     64 bits of the key (`order.rs`), which decide most comparisons
//!          word: u64     segment:20 | offset:20 | update:1 | tag:23
//!
//! message  bytes  field
//!          8      seq - base:32 | value length:14 | key length:16 | kind:2     (little-endian)
//!          0|4    value length, if the 14 bits are all ones
//!          0|8    SeqNo,        if the 32 bits are all ones
//!          n      key
//!          n      value
//!
//! segments 1 KiB, 2 KiB, 4 KiB, ... 1 MiB, 1 MiB, ...          a larger message has its own
//! ```
//!
//! Invariants
//! - A message never moves and never changes; its segment lives as long as a [`Chunks`] lists it.
//! - Only [`Arena::append`] makes a [`Slot`], after writing the bytes that the slot points to.
//! - A slot is looked up only in a [`Chunks`] of its own arena that lists the slot's segment.
//!
//! Threads: one writer owns the [`Arena`]; any number of readers hold [`Chunks`]. The writer writes
//! only bytes that no slot points to yet. A reader receives a slot only through a lock that the
//! writer released after writing, so no byte is written while it is read.

use std::cmp::Ordering;
use std::ptr::NonNull;

use frondb_core::mem::Buf;
use frondb_core::sync::Arc;
use frondb_core::{MessageKind, SeqNo};

use crate::order::{Digest, KeyOrder, TAG_BITS};

/// Size of the first segment. It is small because a database may have very many trees with a few
/// messages each (rule 10).
const CHUNK_BYTES_MIN: usize = 1 << 10;
const CHUNK_BYTES_MAX: usize = 1 << OFFSET_BITS;

const OFFSET_BITS: u32 = 20;
const CHUNK_BITS: u32 = 20;
/// Number of low bits of a slot's word that hold the tag and the flag of an update (a reader of an
/// update also needs older messages of the key).
const MARK_BITS: u32 = TAG_BITS + 1;
const UPDATE: u64 = 1 << TAG_BITS;
const _: () = assert!(OFFSET_BITS + CHUNK_BITS + MARK_BITS == u64::BITS);

const HEAD_BYTES: usize = 8;
/// Bytes of a cache line, the unit of a prefetch.
const LINE_BYTES: usize = 64;
/// Maximum number of cache lines to prefetch; the hardware prefetcher finds the rest of a longer
/// message.
const LINES_MAX: usize = 4;
const VALUE_LEN_ESCAPE: u64 = (1 << 14) - 1;
const SEQ_ESCAPE: u64 = u32::MAX as u64;

/// An element of a sorted array: refers to a message, and holds the 64 bits and the tag by which
/// most keys are compared ([`KeyOrder`]).
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(crate) struct Slot {
    bits: u64,
    word: u64,
}

impl Slot {
    #[inline]
    pub(crate) fn bits(self) -> u64 {
        self.bits
    }

    #[inline]
    fn digest(self) -> Digest {
        Digest { bits: self.bits, tag: self.word & ((1 << TAG_BITS) - 1) }
    }

    /// Returns whether the message is an update, which needs the key's older messages.
    #[inline]
    pub(crate) fn is_update(self) -> bool {
        self.word & UPDATE != 0
    }

    /// Returns the hash for the filters; bits and tag together represent the whole key.
    #[inline]
    pub(crate) fn hash(self) -> u64 {
        hash(self.digest())
    }

    #[inline]
    fn chunk(self) -> usize {
        (self.word >> (OFFSET_BITS + MARK_BITS)) as usize
    }

    #[inline]
    fn offset(self) -> usize {
        (self.word >> MARK_BITS) as usize & ((1 << OFFSET_BITS) - 1)
    }
}

/// A key to search for, with its digest, computed once.
#[derive(Clone, Copy)]
pub(crate) struct Probe<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) digest: Digest,
}

impl Probe<'_> {
    /// Returns the same as [`Slot::hash`] of a message with this key.
    #[inline]
    pub(crate) fn hash(&self) -> u64 {
        hash(self.digest)
    }
}

#[inline]
fn hash(Digest { bits, tag }: Digest) -> u64 {
    let mixed = (bits ^ tag.rotate_right(TAG_BITS)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// A segment of the arena. It never grows and never moves.
pub(crate) struct Chunk {
    base: NonNull<u8>,
    len: usize,
    /// Owns the memory at `base`; all accesses go through `base`.
    memory: Buf,
}

// SAFETY: the chunk owns the memory. The arena's single owner writes through `write`, only to bytes
// that no slot covers yet; readers read through `read`, only bytes that a slot covers. The module
// documentation explains why no byte is written while it is read.
unsafe impl Send for Chunk {}
// SAFETY: as above.
unsafe impl Sync for Chunk {}

impl Chunk {
    fn new(len: usize) -> Self {
        let mut memory = Buf::packed(len);
        let base = NonNull::from(&mut memory[..]).cast();
        Self { base, len, memory }
    }

    /// Copies `bytes` to offset `at`.
    ///
    /// # Safety
    /// No slot may cover these bytes yet, and no other thread may write to the segment.
    #[inline]
    unsafe fn write(&self, at: usize, bytes: &[u8]) {
        assert!(at <= self.len && bytes.len() <= self.len - at);
        // SAFETY: the target lies inside the memory, and `bytes` cannot overlap it: the contract of
        // this function rules out any reference to the target.
        unsafe {
            let target = self.base.as_ptr().add(at);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len());
        }
    }

    /// Returns the `n` bytes at `at`, which a slot must cover.
    #[inline]
    fn read(&self, at: usize, n: usize) -> &[u8] {
        assert!(at <= self.len && n <= self.len - at);
        // SAFETY: the bytes lie inside the memory, are initialised, and are covered by a slot, so
        // they are never written again.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(at), n) }
    }
}

/// A message as it lies in the arena.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) seq: SeqNo,
    pub(crate) kind: MessageKind,
    pub(crate) value: &'a [u8],
}

/// The decoded header of a message, and the offset of its key.
struct Head {
    word: u64,
    key_at: usize,
    key_len: usize,
    value_len: usize,
    seq: u64,
}

/// A reader's view of an arena: its segments at one moment. Cloning increments two reference
/// counts.
#[derive(Clone)]
pub(crate) struct Chunks {
    list: Arc<[Arc<Chunk>]>,
    /// SeqNo of the first message; message headers store SeqNos relative to it.
    base_seq: u64,
    order: Arc<KeyOrder>,
}

impl Chunks {
    #[inline]
    pub(crate) fn probe<'a>(&self, key: &'a [u8]) -> Probe<'a> {
        Probe { key, digest: self.order.digest(key) }
    }

    /// Returns the key of the message that `slot` refers to.
    #[inline]
    pub(crate) fn key(&self, slot: Slot) -> &[u8] {
        let chunk = &self.list[slot.chunk()];
        let head = self.head(chunk, slot.offset());
        chunk.read(head.key_at, head.key_len)
    }

    /// Returns the SeqNo of the message that `slot` refers to.
    #[inline]
    pub(crate) fn seq(&self, slot: Slot) -> SeqNo {
        SeqNo(self.head(&self.list[slot.chunk()], slot.offset()).seq)
    }

    /// Returns the message that `slot` refers to.
    #[inline]
    pub(crate) fn get(&self, slot: Slot) -> Stored<'_> {
        let chunk = &self.list[slot.chunk()];
        let head = self.head(chunk, slot.offset());
        let body = chunk.read(head.key_at, head.key_len + head.value_len);
        let (key, value) = body.split_at(head.key_len);
        Stored { key, seq: SeqNo(head.seq), kind: kind_of(head.word), value }
    }

    /// Returns whether the message that `slot` refers to is a delete.
    pub(crate) fn is_delete(&self, slot: Slot) -> bool {
        kind_of(self.head(&self.list[slot.chunk()], slot.offset()).word) == MessageKind::Delete
    }

    /// Returns the length of the message's key and value together, in bytes.
    #[inline]
    pub(crate) fn data_len(&self, slot: Slot) -> usize {
        let head = self.head(&self.list[slot.chunk()], slot.offset());
        head.key_len + head.value_len
    }

    /// Returns the number of cache lines to prefetch for a message like this one.
    pub(crate) fn lines(&self, slot: Slot) -> usize {
        ((HEAD_BYTES + self.data_len(slot)) / LINE_BYTES + 1).min(LINES_MAX)
    }

    /// Prefetches the first `lines` cache lines of the message, for a loop that will need it soon.
    #[inline]
    pub(crate) fn prefetch(&self, slot: Slot, lines: usize) {
        #[cfg(target_arch = "x86_64")]
        if let Some(chunk) = self.list.get(slot.chunk()) {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let at = chunk.base.as_ptr().wrapping_add(slot.offset());
            for line in 0..lines {
                let at = at.wrapping_add(line * LINE_BYTES);
                // SAFETY: a prefetch has no effect that the program can observe, at any address.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (slot, lines);
    }

    /// Compares two slots by key alone: messages of one key compare equal.
    #[inline]
    pub(crate) fn compare(&self, a: Slot, b: Slot) -> Ordering {
        compare(a.digest(), b.digest(), || self.key(a).cmp(self.key(b)))
    }

    /// Compares the key of `slot` with the probe's key.
    #[inline]
    pub(crate) fn compare_key(&self, slot: Slot, probe: &Probe<'_>) -> Ordering {
        compare(slot.digest(), probe.digest, || self.key(slot).cmp(probe.key))
    }

    /// Returns whether two slots have the same key. Costs less than [`compare`](Self::compare).
    #[inline]
    pub(crate) fn same_key(&self, a: Slot, b: Slot) -> bool {
        let (of_a, of_b) = (a.digest(), b.digest());
        of_a == of_b && (!of_a.is_hashed() || self.key(a) == self.key(b))
    }

    #[inline]
    fn head(&self, chunk: &Chunk, at: usize) -> Head {
        let word = read_u64(chunk, at);
        let mut key_at = at + HEAD_BYTES;
        let mut value_len = (word >> 18) & VALUE_LEN_ESCAPE;
        if value_len == VALUE_LEN_ESCAPE {
            value_len = u64::from(read_u32(chunk, key_at));
            key_at += 4;
        }
        let mut seq = self.base_seq.wrapping_add(word >> 32);
        if word >> 32 == SEQ_ESCAPE {
            seq = read_u64(chunk, key_at);
            key_at += 8;
        }
        let key_len = (word >> 2) as usize & 0xffff;
        Head { word, key_at, key_len, value_len: value_len as usize, seq }
    }
}

#[inline]
fn read_u64(chunk: &Chunk, at: usize) -> u64 {
    chunk.read(at, 8).first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[inline]
fn read_u32(chunk: &Chunk, at: usize) -> u32 {
    chunk.read(at, 4).first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

#[inline]
fn kind_of(word: u64) -> MessageKind {
    match word & 3 {
        0 => MessageKind::Put,
        1 => MessageKind::Delete,
        2 => MessageKind::Update,
        _ => MessageKind::PutRef,
    }
}

#[inline]
fn compare(a: Digest, b: Digest, by_key: impl FnOnce() -> Ordering) -> Ordering {
    a.bits.cmp(&b.bits).then_with(|| match a.is_hashed() && b.is_hashed() {
        true => by_key(),
        false => a.tag.cmp(&b.tag),
    })
}

/// The writer's side: appends messages.
pub(crate) struct Arena {
    /// The segments of the arena; messages are appended to the last one.
    chunks: Vec<Arc<Chunk>>,
    /// Offset of the first free byte in the last segment.
    used: usize,
    /// Memory of all segments, in bytes.
    bytes: usize,
    base_seq: u64,
    order: Arc<KeyOrder>,
}

impl Arena {
    /// Returns an arena for messages from `base_seq` on. Allocates nothing.
    pub(crate) fn new(base_seq: SeqNo) -> Self {
        Self {
            chunks: Vec::new(),
            used: 0,
            bytes: 0,
            base_seq: base_seq.get(),
            order: Arc::new(KeyOrder::plain()),
        }
    }

    /// Returns the memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of segments. When it changes, readers need a new [`Chunks`].
    pub(crate) fn chunk_count(&self) -> usize {
        self.chunks.len()
    }

    /// Returns a view of the current segments.
    pub(crate) fn chunks(&self) -> Chunks {
        Chunks {
            list: self.chunks.as_slice().into(),
            base_seq: self.base_seq,
            order: Arc::clone(&self.order),
        }
    }

    /// Changes the [`KeyOrder`], which computes the bits and tags of slots from keys. Converts
    /// `slots`, which are all slots of the arena, sorted. Copies of slots and [`Chunks`] made
    /// earlier keep the old order and must not be mixed with new ones.
    pub(crate) fn reorder(&mut self, order: KeyOrder, slots: &mut [Slot]) {
        let chunks = self.chunks();
        for slot in slots {
            let digest = order.digest(chunks.key(*slot));
            slot.bits = digest.bits;
            slot.word = slot.word >> TAG_BITS << TAG_BITS | digest.tag;
        }
        self.order = Arc::new(order);
    }

    /// Stores a message and returns the slot that refers to it.
    ///
    /// # Panics
    /// If the key or the value is longer than the format's fields (the engine checks its limits,
    /// which are far lower), or if the arena already has 2^20 segments, about a tebibyte.
    pub(crate) fn append(
        &mut self,
        key: &[u8],
        seq: SeqNo,
        kind: MessageKind,
        value: &[u8],
    ) -> Slot {
        assert!(key.len() <= usize::from(u16::MAX) && value.len() < u32::MAX as usize / 2);
        // A SeqNo too far from the base takes the wide form: the memtable stayed active while other
        // trees committed billions of messages, or the SeqNo is below the base.
        let distance = seq.get().checked_sub(self.base_seq).filter(|&d| d < SEQ_ESCAPE);
        let short_value = (value.len() as u64) < VALUE_LEN_ESCAPE;
        let head_bytes =
            HEAD_BYTES + if short_value { 0 } else { 4 } + if distance.is_some() { 0 } else { 8 };
        let at = self.reserve(head_bytes + key.len() + value.len());

        let mut head = [0u8; HEAD_BYTES + 4 + 8];
        let value_field = if short_value { value.len() as u64 } else { VALUE_LEN_ESCAPE };
        let word = distance.unwrap_or(SEQ_ESCAPE) << 32
            | value_field << 18
            | (key.len() as u64) << 2
            | kind as u64;
        head[..HEAD_BYTES].copy_from_slice(&word.to_le_bytes());
        let mut end = HEAD_BYTES;
        if !short_value {
            head[end..end + 4].copy_from_slice(&(value.len() as u32).to_le_bytes());
            end += 4;
        }
        if distance.is_none() {
            head[end..end + 8].copy_from_slice(&seq.get().to_le_bytes());
        }

        let index = self.chunks.len() - 1;
        let chunk = &self.chunks[index];
        // SAFETY: `reserve` has set these bytes aside for this message; its slot does not exist
        // yet, and `&mut self` makes this the only writer.
        unsafe {
            chunk.write(at, &head[..head_bytes]);
            chunk.write(at + head_bytes, key);
            chunk.write(at + head_bytes + key.len(), value);
        }
        let Digest { bits, tag } = self.order.digest(key);
        let place = (index as u64) << OFFSET_BITS | at as u64;
        let update = if kind == MessageKind::Update { UPDATE } else { 0 };
        Slot { bits, word: place << MARK_BITS | update | tag }
    }

    /// Reserves `n` bytes in the last segment and returns their offset.
    #[inline]
    fn reserve(&mut self, n: usize) -> usize {
        let free = self.chunks.last().map_or(0, |chunk| chunk.len - self.used);
        if free < n {
            self.add_chunk(n);
        }
        let at = self.used;
        self.used += n;
        at
    }

    #[cold]
    fn add_chunk(&mut self, n: usize) {
        assert!(self.chunks.len() < 1 << CHUNK_BITS, "a memtable holds at most a tebibyte");
        let len = self.bytes.next_power_of_two().clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX).max(n);
        let chunk = Chunk::new(len);
        self.bytes += chunk.memory.footprint() + size_of::<Chunk>();
        self.chunks.push(Arc::new(chunk));
        self.used = 0;
    }
}
