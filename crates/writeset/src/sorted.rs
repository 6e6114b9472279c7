//! [`Sorted`]: messages of a write set in key order, for a spill of messages that were never read.
//!
//! ```text
//!  bytes | put m | put c | put t |      as in the write set
//!  slots   c 2     m 1     t 3          their offsets, by key, then newest first
//! ```
//!
//! A spill could also use the index that a transaction builds when it reads its writes. But an
//! index that is read only once takes three times as long to build, and additional memory. `Sorted`
//! is immutable; any thread may read it.

use std::cmp::Reverse;

use frondb_core::chunk::key_prefix;
use frondb_core::codec::Reader;
use frondb_core::sync::Arc;
use frondb_core::{Chunk, Error, Result, SeqNo, Source};

use crate::op::{Op, decode_op};

const CHUNK_ENTRIES: usize = 1024;
/// A chunk ends once its keys and values have this many bytes.
const CHUNK_BYTES: usize = 256 << 10;

/// Number of messages that are prefetched into the processor's cache at a time.
const PREFETCHED: usize = 16;
const CACHE_LINE_BYTES: usize = 64;

/// Encoded point messages and their order.
pub(crate) struct Sorted {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    /// The smallest message number.
    first: u64,
}

/// One message.
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    prefix: u64,
    /// Offset of the encoded message in `Sorted::bytes`.
    at: u32,
    /// Number of the message, relative to `Sorted::first`.
    number: u32,
}

impl Slot {
    /// Creates the slot of the message that is encoded at `at`. `number` is relative to the
    /// smallest number.
    pub(crate) fn new(key: &[u8], at: u32, number: u32) -> Self {
        Self { prefix: key_prefix(key), at, number }
    }
}

impl Sorted {
    /// Sorts `slots`, which are the point messages in `bytes`. `first` is the smallest message
    /// number.
    pub(crate) fn new(bytes: Vec<u8>, mut slots: Vec<Slot>, first: u64) -> Self {
        let key = |slot: &Slot| match decode_at(&bytes, slot.at) {
            Ok(Op::Point { key, .. }) => key,
            // Not expected, because the caller has decoded the messages to create the slots. If it
            // happens, `next_chunk` reports the error.
            _ => &[],
        };
        slots.sort_unstable_by(|a, b| {
            let by_key = a.prefix.cmp(&b.prefix).then_with(|| key(a).cmp(key(b)));
            by_key.then_with(|| Reverse(a.number).cmp(&Reverse(b.number)))
        });
        Self { bytes, slots, first }
    }

    /// Returns the number of bytes of the encoded messages.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the encoded messages, in the order in which they were written.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns a cursor over all messages in key order, with message numbers as SeqNos.
    pub(crate) fn source(self: &Arc<Self>) -> SortedWrites {
        SortedWrites { sorted: Arc::clone(self), next: 0 }
    }
}

fn decode_at(bytes: &[u8], at: u32) -> Result<Op<'_>> {
    let from = bytes.get(at as usize..).unwrap_or_default();
    decode_op(&mut Reader::new(from))
        .map_err(|_| Error::internal("a message of a write set cannot be decoded"))
}

/// Reads one or two bytes of each of the next messages, so that their cache misses overlap. The
/// messages lie in the order of writing, so in key order each would cost a separate cache miss.
fn prefetch(bytes: &[u8], next: &[Slot]) {
    let mut sum = 0_u8;
    for slot in next.iter().take(PREFETCHED) {
        for at in [slot.at as usize, slot.at as usize + CACHE_LINE_BYTES] {
            sum ^= bytes.get(at).copied().unwrap_or(0);
        }
    }
    std::hint::black_box(sum);
}

/// A cursor over [`Sorted`].
pub(crate) struct SortedWrites {
    sorted: Arc<Sorted>,
    next: usize,
}

impl Source for SortedWrites {
    fn next_chunk(&mut self, chunk: &mut Chunk) -> Result<bool> {
        chunk.clear();
        let Sorted { bytes, slots, first } = &*self.sorted;
        let mut taken = 0;
        for (slot, n) in slots[self.next..].iter().take(CHUNK_ENTRIES).zip(0..) {
            if n % PREFETCHED == 0 {
                prefetch(bytes, &slots[self.next..]);
            }
            let Op::Point { kind, key, value } = decode_at(bytes, slot.at)? else {
                return Err(Error::internal("a range delete was sorted as a point message"));
            };
            chunk.push(key, SeqNo(first + u64::from(slot.number)), kind, value);
            self.next += 1;
            taken += key.len() + value.len();
            if taken >= CHUNK_BYTES {
                break;
            }
        }
        Ok(!chunk.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::encode_op;
    use frondb_core::MessageKind;

    #[test]
    fn messages_come_by_key_and_newest_first() {
        let (mut bytes, mut slots) = (Vec::new(), Vec::new());
        let keys = ["same prefix b", "a", "same prefix a", "a", "", "same pre"];
        for (key, number) in keys.iter().zip(0..) {
            slots.push(Slot::new(key.as_bytes(), bytes.len() as u32, number));
            encode_op(&mut bytes, MessageKind::Put, key.as_bytes(), &[number as u8]);
        }
        let written = bytes.clone();
        let sorted = Arc::new(Sorted::new(bytes, slots, 10));
        let (mut source, mut chunk) = (sorted.source(), Chunk::new());
        assert!(source.next_chunk(&mut chunk).is_ok_and(|more| more));
        let order: Vec<_> = (0..chunk.len()).map(|i| (chunk.key(i), chunk.seqs[i].get())).collect();
        let expected: [(&[u8], u64); 6] = [
            (b"", 14),
            (b"a", 13),
            (b"a", 11),
            (b"same pre", 15),
            (b"same prefix a", 12),
            (b"same prefix b", 10),
        ];
        assert_eq!(order, expected);
        assert!(source.next_chunk(&mut chunk).is_ok_and(|more| !more));
        drop(source);
        assert_eq!(Arc::into_inner(sorted).map(Sorted::into_bytes), Some(written));
    }

    #[test]
    fn chunks_end_where_they_are_large() {
        let (mut bytes, mut slots) = (Vec::new(), Vec::new());
        let value = vec![7; CHUNK_BYTES / 3];
        for number in 0..8_u32 {
            slots.push(Slot::new(&[number as u8], bytes.len() as u32, number));
            encode_op(&mut bytes, MessageKind::Put, &[number as u8], &value);
        }
        let mut source = Arc::new(Sorted::new(bytes, slots, 1)).source();
        let (mut chunk, mut sizes) = (Chunk::new(), Vec::new());
        while source.next_chunk(&mut chunk).unwrap_or(false) {
            sizes.push(chunk.len());
        }
        assert_eq!(sizes, [3, 3, 2]);
    }
}
