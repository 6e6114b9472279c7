//! [`SortBuffer`]: the memory in which a bulk load collects entries in any order. They are sorted
//! before they are read or written.

use std::cmp::Reverse;

use frondb_core::chunk::key_prefix;
use frondb_core::mem::Array;
use frondb_core::{Chunk, MessageKind, Result, SeqNo, Source};

use crate::arena::Arena;

/// Number of entries that are prefetched into the processor's cache at a time.
const PREFETCHED: usize = 16;
const CACHE_LINE_BYTES: usize = 64;
/// Most bytes to prefetch of each entry. The processor itself predicts the accesses to later bytes.
const PREFETCHED_BYTES_MAX: usize = 3 * CACHE_LINE_BYTES;
const CHUNK_ENTRIES: usize = 1024;
/// A chunk ends once its keys and values have this many bytes.
const CHUNK_BYTES: usize = 256 << 10;

/// Puts of one tree, in order of arrival before [`sort`](Self::sort). One thread at a time may use
/// it.
#[derive(Default)]
pub struct SortBuffer {
    arena: Arena,
    slots: Array<Slot>,
}

/// The entries that [`SortBuffer::sort`] dropped: of several entries with one key, all but the
/// last.
#[derive(PartialEq, Eq, Debug, Default)]
pub struct Duplicates {
    /// Number of entries.
    pub entries: u64,
    /// References to large values in the dropped entries.
    pub references: Vec<Box<[u8]>>,
    /// The smallest key of a dropped entry; `None` if no entry was dropped.
    pub first: Option<Box<[u8]>>,
}

/// Position of an entry. Slots are sorted by key, and the slots of one key from the newest to the
/// oldest.
#[derive(Clone, Copy)]
struct Slot {
    prefix: u64,
    at: u32,
    key: u16,
    /// Whether the value is a reference to a large value.
    by_reference: bool,
    value: u32,
}

impl SortBuffer {
    /// Creates an empty buffer. It takes no memory before the first put.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a put. Key and value must respect the engine's limits. For a large value, the caller
    /// passes the reference and sets `by_reference`. REQUIRES: the buffer has less than 4 GiB.
    pub fn put(&mut self, key: &[u8], value: &[u8], by_reference: bool) {
        if self.slots.is_full() {
            // Grow by only a quarter, because unused capacity also takes memory.
            self.slots.reserve_exact((self.slots.len() / 4).max(64));
        }
        self.slots.push(Slot {
            prefix: key_prefix(key),
            at: self.arena.push(key, value),
            key: key.len() as u16,
            by_reference,
            value: value.len() as u32,
        });
    }

    /// Returns the bytes of memory that are allocated.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        (self.arena.memory_bytes() + self.slots.allocated()) as u64
    }

    /// Returns the bytes of memory that entries use; the rest of the allocated memory is free for
    /// more entries.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        (self.arena.used_bytes() + self.slots.len() * size_of::<Slot>()) as u64
    }

    /// Returns the total length of all keys and values, in bytes.
    #[must_use]
    pub fn raw_bytes(&self) -> u64 {
        self.arena.bytes() as u64
    }

    /// Returns the number of entries; before [`sort`](Self::sort), duplicates included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Removes all entries and keeps the memory.
    pub fn clear(&mut self) {
        self.arena.clear();
        self.slots.clear();
    }

    /// Sorts the entries by key, and drops all but the last entry of each key. Returns the dropped
    /// entries.
    pub fn sort(&mut self) -> Duplicates {
        let arena = &self.arena;
        let key = |slot: &Slot| arena.get(slot.at, usize::from(slot.key));
        self.slots.sort_unstable_by(|a, b| {
            let by_key = a.prefix.cmp(&b.prefix).then_with(|| key(a).cmp(key(b)));
            by_key.then_with(|| Reverse(a.at).cmp(&Reverse(b.at)))
        });
        let mut duplicates = Duplicates::default();
        let mut kept = self.slots.len().min(1);
        for i in 1..self.slots.len() {
            let (slot, last) = (self.slots[i], self.slots[kept - 1]);
            if slot.prefix != last.prefix || key(&slot) != key(&last) {
                self.slots[kept] = slot;
                kept += 1;
                continue;
            }
            duplicates.entries += 1;
            duplicates.first.get_or_insert_with(|| key(&slot).into());
            if slot.by_reference {
                duplicates.references.push(value_of(arena, &slot).into());
            }
        }
        self.slots.truncate(kept);
        duplicates
    }

    /// Calls `visit` with key, kind and value of each sorted entry.
    ///
    /// # Errors
    /// The first error of `visit`, after which no more entries are visited.
    pub fn for_each(
        &self,
        mut visit: impl FnMut(&[u8], MessageKind, &[u8]) -> Result<()>,
    ) -> Result<()> {
        for slots in self.slots.chunks(PREFETCHED) {
            self.prefetch(slots);
            for slot in slots {
                let (key, kind, value) = self.entry(slot);
                visit(key, kind, value)?;
            }
        }
        Ok(())
    }

    /// Reads a few bytes of each entry, so that the cache misses of all entries overlap. The
    /// entries lie in order of arrival, so in key order each would cost a separate cache miss.
    fn prefetch(&self, slots: &[Slot]) {
        let mut sum = 0_u8;
        for slot in slots {
            let bytes = (usize::from(slot.key) + slot.value as usize).min(PREFETCHED_BYTES_MAX);
            for at in [0, CACHE_LINE_BYTES, bytes.saturating_sub(1)] {
                sum ^= self.arena.byte(slot.at, at).unwrap_or(0);
            }
        }
        std::hint::black_box(sum);
    }

    fn entry(&self, slot: &Slot) -> (&[u8], MessageKind, &[u8]) {
        let kind = if slot.by_reference { MessageKind::PutRef } else { MessageKind::Put };
        let key = usize::from(slot.key);
        let (key, value) = self.arena.get(slot.at, key + slot.value as usize).split_at(key);
        (key, kind, value)
    }

    /// Returns the sorted entries as a source of puts, which all have the SeqNo `number`.
    pub fn source<B: std::borrow::Borrow<Self> + Send>(
        buffer: B,
        number: SeqNo,
    ) -> SortedSource<B> {
        SortedSource { buffer, number, next: 0 }
    }

    fn fill(&self, chunk: &mut Chunk, from: usize, number: SeqNo) -> usize {
        let mut next = from;
        let mut bytes = 0;
        let end = self.slots.len().min(from + CHUNK_ENTRIES);
        while next < end && bytes < CHUNK_BYTES {
            if (next - from).is_multiple_of(PREFETCHED) {
                self.prefetch(&self.slots[next..end.min(next + PREFETCHED)]);
            }
            let (key, kind, value) = self.entry(&self.slots[next]);
            chunk.push(key, number, kind, value);
            bytes += key.len() + value.len();
            next += 1;
        }
        next
    }
}

fn value_of<'a>(arena: &'a Arena, slot: &Slot) -> &'a [u8] {
    let key = usize::from(slot.key);
    &arena.get(slot.at, key + slot.value as usize)[key..]
}

/// A cursor over a sorted buffer.
pub struct SortedSource<B> {
    buffer: B,
    number: SeqNo,
    next: usize,
}

impl<B: std::borrow::Borrow<SortBuffer> + Send> Source for SortedSource<B> {
    fn next_chunk(&mut self, chunk: &mut Chunk) -> Result<bool> {
        chunk.clear();
        self.next = self.buffer.borrow().fill(chunk, self.next, self.number);
        Ok(!chunk.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_ascend_and_the_last_of_one_counts() {
        let mut buffer = SortBuffer::new();
        for (key, value) in [("b", "1"), ("", "2"), ("a long key", "3"), ("b", "4"), ("a", "5")] {
            buffer.put(key.as_bytes(), value.as_bytes(), false);
        }
        buffer.put(b"a long kex", b"reference", true);
        buffer.put(b"twice", b"referred to", true);
        buffer.put(b"twice", b"", false);
        let references = vec![Box::from(&b"referred to"[..])];
        let duplicates = Duplicates { entries: 2, references, first: Some(Box::from(&b"b"[..])) };
        assert_eq!(buffer.sort(), duplicates);
        assert_eq!(buffer.sort(), Duplicates::default());
        let (mut source, mut chunk) = (SortBuffer::source(&buffer, SeqNo(7)), Chunk::new());
        assert!(source.next_chunk(&mut chunk).is_ok_and(|more| more));
        let entries = (0..chunk.len()).map(|i| (chunk.key(i), chunk.value(i), chunk.kinds[i]));
        let put = MessageKind::Put;
        let expected: [(&[u8], &[u8], MessageKind); 6] = [
            (b"", b"2", put),
            (b"a", b"5", put),
            (b"a long kex", b"reference", MessageKind::PutRef),
            (b"a long key", b"3", put),
            (b"b", b"4", put),
            (b"twice", b"", put),
        ];
        assert!(entries.eq(expected));
        assert!(chunk.seqs.iter().all(|&seq| seq == SeqNo(7)));
        assert!(source.next_chunk(&mut chunk).is_ok_and(|more| !more));
    }

    #[test]
    fn the_last_value_of_the_empty_key_counts() {
        let mut buffer = SortBuffer::new();
        for value in ["", "x", ""] {
            buffer.put(b"", value.as_bytes(), false);
        }
        buffer.put(b"", b"last", false);
        assert_eq!(buffer.sort().entries, 3);
        let mut values = Vec::new();
        let visit = |_: &[u8], _, value: &[u8]| {
            values.push(value.to_vec());
            Ok(())
        };
        buffer.for_each(visit).unwrap();
        assert_eq!(values, [b"last"]);
    }
}
