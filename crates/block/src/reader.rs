//! Reads data blocks.
//!
//! [`Block::decode`] verifies, decompresses and validates: afterwards every length and offset in
//! the payload is known to lie inside it, so searching and filling need no error path. Content that
//! passes the checksum but is not sorted gives wrong answers, never a panic.

use std::ops::Range;

use frondb_core::chunk::Values;
use frondb_core::mem::{Array, Buf, Bytes};
use frondb_core::sync::Arc;
use frondb_core::{Chunk, MessageKind, Result, SeqNo};

use crate::envelope::{Place, decode_to_buf};
use crate::format::{BlockKind, FLAG_KINDS, FLAG_VALUES_FIXED, PayloadHeader};
use crate::layout::{Areas, Keys, Layout, rows};
use crate::rows::{Rows, read_uint};
use crate::transposed::ROW_SLACK;
use crate::transposed_keys::{TransposedKeys, TransposedView};

/// Distance, in entries, between values whose positions are stored, where values differ in length.
const VALUE_MARK_INTERVAL: usize = 16;

/// A decoded and verified data block. Immutable; any thread may read it, and a clone shares it.
#[derive(Clone, Debug)]
pub struct Block(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// All areas.
    bytes: Bytes,
    /// The values, at the end of `bytes`.
    values: Bytes,
    header: PayloadHeader,
    areas: Areas,
    keys: Keys,
    /// Where every [`VALUE_MARK_INTERVAL`]-th value begins; empty if values have one length.
    value_marks: Box<[u32]>,
}

impl Block {
    /// Verifies and decodes the frame that must fill `frame` exactly.
    ///
    /// # Errors
    /// Corruption with `place` if anything is not what was written; Unsupported if a newer version
    /// wrote it.
    pub fn decode(frame: &[u8], place: &Place<'_>) -> Result<Self> {
        let payload = decode_to_buf(frame, BlockKind::Data, place)?;
        Self::from_payload(payload)
            .map_err(|what| place.corruption(BlockKind::Data, format!("malformed: {what}")))
    }

    /// Validates a decompressed payload.
    pub(crate) fn from_payload(payload: Buf) -> Result<Self, &'static str> {
        let Layout { buf, header, areas, keys } = Layout::new(payload)?;
        let bytes = buf.freeze();
        let values = bytes.slice(areas.values..areas.end);
        let mut inner = Inner { bytes, values, header, areas, keys, value_marks: Box::default() };
        if header.flags & FLAG_KINDS != 0
            && inner.kinds().iter().any(|&kind| MessageKind::from_u8(kind).is_none())
        {
            return Err("kinds");
        }
        if header.flags & FLAG_VALUES_FIXED == 0 {
            inner.value_marks = inner.mark_values().ok_or("value lengths")?;
        }
        Ok(Self(Arc::new(inner)))
    }

    /// Number of messages, at least one.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.count()
    }

    /// Always false: a block has at least one message.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let inner = &*self.0;
        size_of::<Inner>()
            + inner.bytes.footprint()
            + match &inner.keys {
                Keys::Rows(restarts) => size_of_val(&**restarts),
                Keys::Transposed(keys) => keys.memory_bytes(),
            }
            + size_of_val(&*inner.value_marks)
    }

    /// Key of the first message.
    #[must_use]
    pub fn first_key(&self) -> &[u8] {
        let inner = &*self.0;
        match &inner.keys {
            Keys::Rows(restarts) => {
                let len = restarts.first().map_or(0, |first| first.key_len as usize);
                &inner.bytes[inner.areas.keys..inner.areas.keys + len]
            }
            Keys::Transposed(keys) => keys.map.first(),
        }
    }

    /// Replaces `out` by the key of message `index`.
    ///
    /// # Panics
    /// If there is no such message.
    pub fn key_into(&self, index: usize, out: &mut Vec<u8>) {
        let inner = &*self.0;
        assert!(index < inner.count());
        match &inner.keys {
            Keys::Transposed(keys) => inner.transposed(keys).key_into(index, out),
            Keys::Rows(restarts) => inner.rows().key_into(restarts, index, out),
        }
    }

    /// The first message whose key is not below `key`; [`len`](Self::len) if there is none.
    #[must_use]
    pub fn lower_bound(&self, key: &[u8]) -> usize {
        let inner = &*self.0;
        match &inner.keys {
            Keys::Transposed(keys) => inner.transposed(keys).equal_range(key).0,
            Keys::Rows(restarts) => inner.rows().lower_bound(restarts, key).0,
        }
    }

    /// The messages of `key`, newest first; if it has none, the empty range where they would be.
    #[must_use]
    pub fn find(&self, key: &[u8]) -> Range<usize> {
        let inner = &*self.0;
        match &inner.keys {
            Keys::Transposed(keys) => {
                let (start, end) = inner.transposed(keys).equal_range(key);
                start..end
            }
            Keys::Rows(restarts) => {
                let rows = inner.rows();
                match rows.lower_bound(restarts, key) {
                    (row, false) => row..row,
                    (row, true) => row..rows.end_of_equal(restarts, row, key),
                }
            }
        }
    }

    /// Kind of message `index`.
    ///
    /// # Panics
    /// If there is no such message.
    #[inline]
    #[must_use]
    pub fn kind(&self, index: usize) -> MessageKind {
        assert!(index < self.len());
        let kinds = self.0.kinds();
        kind_of(if kinds.is_empty() { self.0.header.kind } else { kinds[index] })
    }

    /// SeqNo of message `index`, or `run_seq` if the block stores none.
    ///
    /// # Panics
    /// If there is no such message.
    #[inline]
    #[must_use]
    pub fn seq(&self, index: usize, run_seq: SeqNo) -> SeqNo {
        assert!(index < self.len());
        let header = &self.0.header;
        if header.seqs_stored == 0 {
            return run_seq;
        }
        let delta = read_uint(self.0.seqs(), usize::from(header.seq_width), index);
        SeqNo(header.seq_base.wrapping_add(delta))
    }

    /// Value of message `index`.
    ///
    /// # Panics
    /// If there is no such message.
    #[must_use]
    pub fn value(&self, index: usize) -> &[u8] {
        assert!(index < self.len());
        let start = self.0.value_start(index);
        &self.0.values[start..start + self.0.value_len(index)]
    }

    /// Replaces `chunk` by the messages of `entries`. Cheapest when the range begins at a multiple
    /// of the restart interval; the values are shared with the block, not copied.
    ///
    /// # Panics
    /// If the range is not inside the block.
    pub fn fill(&self, entries: Range<usize>, run_seq: SeqNo, chunk: &mut Chunk) {
        let inner = &*self.0;
        assert!(entries.start <= entries.end && entries.end <= inner.count());
        chunk.clear();
        if entries.is_empty() {
            return;
        }
        inner.fill_keys(&entries, chunk);
        inner.fill_kinds(&entries, &mut chunk.kinds);
        inner.fill_seqs(&entries, run_seq, &mut chunk.seqs);
        inner.fill_values(&entries, chunk);
    }
}

/// A kind byte that was validated.
#[inline]
fn kind_of(byte: u8) -> MessageKind {
    MessageKind::from_u8(byte).unwrap_or(MessageKind::Put)
}

/// Appends the SeqNos whose differences from `base` are stored in `WIDTH` bytes each.
fn push_seqs<const WIDTH: usize>(stored: &[u8], base: u64, seqs: &mut Array<SeqNo>) {
    let stored = stored.as_chunks::<WIDTH>().0;
    for (seq, bytes) in seqs.append(stored.len(), SeqNo(base)).iter_mut().zip(stored) {
        let mut word = [0; 8];
        word[..WIDTH].copy_from_slice(bytes);
        *seq = SeqNo(base.wrapping_add(u64::from_le_bytes(word)));
    }
}

/// Replaces `ends` by the ends of `count` strings of `len` bytes, the first of which begins at
/// `start`.
fn push_ends(ends: &mut Array<u32>, count: usize, start: u32, len: u32) {
    ends.clear();
    let ends = ends.append(count, start);
    if len > 0 {
        // Adding up, because SSE2 cannot multiply four numbers at a time.
        let mut end = start;
        for slot in ends {
            end += len;
            *slot = end;
        }
    }
}

impl Inner {
    #[inline]
    fn count(&self) -> usize {
        self.header.count as usize
    }

    fn rows(&self) -> Rows<'_> {
        rows(&self.header, &self.areas, &self.bytes)
    }

    fn transposed<'a>(&'a self, keys: &'a TransposedKeys) -> TransposedView<'a> {
        TransposedView { keys, payload: &self.bytes, count: self.count() }
    }

    fn kinds(&self) -> &[u8] {
        &self.bytes[self.areas.kinds..self.areas.seqs]
    }

    fn seqs(&self) -> &[u8] {
        &self.bytes[self.areas.seqs..self.areas.value_lens]
    }

    fn value_lens(&self) -> &[u8] {
        &self.bytes[self.areas.value_lens..self.areas.keys]
    }

    fn value_len(&self, index: usize) -> usize {
        match self.header.value_width {
            0 => self.header.value_len as usize,
            width => read_uint(self.value_lens(), usize::from(width), index) as usize,
        }
    }

    fn value_start(&self, index: usize) -> usize {
        if self.header.value_width == 0 {
            return index * self.header.value_len as usize;
        }
        let mark = index / VALUE_MARK_INTERVAL;
        let rest: usize =
            (mark * VALUE_MARK_INTERVAL..index).map(|before| self.value_len(before)).sum();
        self.value_marks[mark] as usize + rest
    }

    /// Checks that the value lengths add up to the value bytes and remembers where some begin.
    fn mark_values(&self) -> Option<Box<[u32]>> {
        let mut marks = Vec::with_capacity(self.count().div_ceil(VALUE_MARK_INTERVAL));
        let mut at = 0u64;
        for index in 0..self.count() {
            if index % VALUE_MARK_INTERVAL == 0 {
                marks.push(u32::try_from(at).ok()?);
            }
            at += self.value_len(index) as u64;
        }
        (at == self.values.len() as u64).then(|| marks.into_boxed_slice())
    }

    fn fill_keys(&self, entries: &Range<usize>, chunk: &mut Chunk) {
        match &self.keys {
            Keys::Transposed(keys) => {
                let transposed = self.transposed(keys);
                let Chunk { prefixes, keys, key_ends, .. } = chunk;
                transposed.rows(entries.start, entries.end, prefixes, keys);
                let key_len = self.header.key_len;
                push_ends(key_ends, entries.len(), 0, key_len);
                debug_assert_eq!(keys.len(), entries.len() * key_len as usize + ROW_SLACK);
            }
            Keys::Rows(restarts) => self.rows().keys(restarts, entries, chunk),
        }
    }

    fn fill_kinds(&self, entries: &Range<usize>, kinds: &mut Array<MessageKind>) {
        let stored = self.kinds();
        if stored.is_empty() {
            kinds.resize(entries.len(), kind_of(self.header.kind));
        } else {
            let kinds = kinds.append(entries.len(), MessageKind::Put).iter_mut();
            kinds.zip(&stored[entries.clone()]).for_each(|(kind, &byte)| *kind = kind_of(byte));
        }
    }

    fn fill_seqs(&self, entries: &Range<usize>, run_seq: SeqNo, seqs: &mut Array<SeqNo>) {
        if self.header.seqs_stored == 0 {
            seqs.resize(entries.len(), run_seq);
            return;
        }
        let width = usize::from(self.header.seq_width);
        let stored = &self.seqs()[entries.start * width..entries.end * width];
        let base = self.header.seq_base;
        match width {
            1 => push_seqs::<1>(stored, base, seqs),
            2 => push_seqs::<2>(stored, base, seqs),
            3 => push_seqs::<3>(stored, base, seqs),
            4 => push_seqs::<4>(stored, base, seqs),
            5 => push_seqs::<5>(stored, base, seqs),
            6 => push_seqs::<6>(stored, base, seqs),
            7 => push_seqs::<7>(stored, base, seqs),
            8 => push_seqs::<8>(stored, base, seqs),
            _ => seqs.resize(entries.len(), SeqNo(base)),
        }
    }

    fn fill_values(&self, entries: &Range<usize>, chunk: &mut Chunk) {
        let start = self.value_start(entries.start);
        chunk.values_start = start as u32;
        if self.header.value_width == 0 {
            push_ends(&mut chunk.value_ends, entries.len(), start as u32, self.header.value_len);
        } else {
            let mut end = start;
            let ends = chunk.value_ends.append(entries.len(), 0);
            for (i, slot) in entries.clone().zip(ends) {
                end += self.value_len(i);
                *slot = end as u32;
            }
        }
        if !self.values.is_empty() {
            chunk.values = Values::Shared(self.values.clone());
        }
    }
}
