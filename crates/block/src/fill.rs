//! Copies entries of a block into the arrays of a [`Chunk`].

use std::ops::Range;

use frondb_core::chunk::Values;
use frondb_core::mem::Array;
use frondb_core::{Chunk, MessageKind, SeqNo};
use memchr::memchr_iter;

use crate::layout::Keys;
use crate::reader::{Inner, kind_of};
use crate::rows::read_uint;
use crate::transposed::ROW_SLACK;
use crate::values::ValuePlaces;

/// Appends the SeqNos whose differences from `base` are stored in `WIDTH` bytes each.
fn push_seqs<const WIDTH: usize>(stored: &[u8], base: u64, seqs: &mut Array<SeqNo>) {
    let stored = stored.as_chunks::<WIDTH>().0;
    for (seq, bytes) in seqs.append(stored.len(), SeqNo(base)).iter_mut().zip(stored) {
        let mut word = [0; 8];
        word[..WIDTH].copy_from_slice(bytes);
        *seq = SeqNo(base.wrapping_add(u64::from_le_bytes(word)));
    }
}

/// Replaces the contents of `ends` by the ends of `count` strings of `len` bytes each. The first
/// string begins at `start`.
fn push_ends(ends: &mut Array<u32>, count: usize, start: u32, len: u32) {
    ends.clear();
    let ends = ends.append(count, start);
    if len > 0 {
        // Add instead of multiplying, because SSE2 cannot multiply four numbers at a time.
        let mut end = start;
        for slot in ends {
            end += len;
            *slot = end;
        }
    }
}

impl Inner {
    pub(crate) fn fill_keys(&self, entries: &Range<usize>, chunk: &mut Chunk) {
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

    pub(crate) fn fill_kinds(&self, entries: &Range<usize>, kinds: &mut Array<MessageKind>) {
        let stored = self.kinds();
        if stored.is_empty() {
            kinds.resize(entries.len(), kind_of(self.header.kind));
        } else {
            let kinds = kinds.append(entries.len(), MessageKind::Put).iter_mut();
            kinds.zip(&stored[entries.clone()]).for_each(|(kind, &byte)| *kind = kind_of(byte));
        }
    }

    pub(crate) fn fill_seqs(
        &self,
        entries: &Range<usize>,
        run_seq: SeqNo,
        seqs: &mut Array<SeqNo>,
    ) {
        if self.header.seqs_stored == 0 {
            seqs.resize(entries.len(), run_seq);
            return;
        }
        let base = self.header.seq_base;
        if let Some(map) = self.seq_columns() {
            let seqs = seqs.append(entries.len(), SeqNo(base));
            return map.add_numbers(&self.bytes, entries.clone(), seqs);
        }
        let width = usize::from(self.header.seq_width);
        let stored = &self.seqs()[entries.start * width..entries.end * width];
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

    pub(crate) fn fill_values(&self, entries: &Range<usize>, chunk: &mut Chunk) {
        if let Some(map) = self.turn_values(entries.len()) {
            let (count, len) = (entries.len(), self.header.value_len);
            let mut values = owned_values(chunk);
            values.resize(count * len as usize, 0);
            map.to_rows(&self.bytes, entries.clone(), &mut values);
            push_ends(&mut chunk.value_ends, count, 0, len);
            chunk.values = Values::Owned(values);
            return;
        }
        let start = self.value_range(entries.start).start;
        match &self.value_places {
            ValuePlaces::Fixed(len) => {
                push_ends(&mut chunk.value_ends, entries.len(), start as u32, *len as u32);
            }
            ValuePlaces::Lengths { width, .. } => {
                let (lengths, mut end) = (self.value_lens(), start);
                let ends = chunk.value_ends.append(entries.len(), 0);
                for (i, slot) in entries.clone().zip(ends) {
                    end += read_uint(lengths, *width, i) as usize;
                    *slot = end as u32;
                }
            }
            ValuePlaces::Ended { end_byte, .. } => {
                return self.fill_ended(*end_byte, start, entries.len(), chunk);
            }
        }
        chunk.values_start = start as u32;
        if !self.values.is_empty() {
            chunk.values = Values::Shared(self.values.clone());
        }
    }

    /// Appends the `count` values from `start` on. Leaves out the bytes that end them, because the
    /// values of a chunk must follow each other without gaps.
    fn fill_ended(&self, end_byte: u8, start: usize, count: usize, chunk: &mut Chunk) {
        let mut values = owned_values(chunk);
        let (stored, mut at) = (&self.values[start..], 0);
        for (end, slot) in memchr_iter(end_byte, stored).zip(chunk.value_ends.append(count, 0)) {
            values.extend_from_slice(&stored[at..end]);
            at = end + 1;
            *slot = values.len() as u32;
        }
        chunk.values = Values::Owned(values);
    }
}

/// Takes the chunk's array of values if the chunk owns it; else returns an empty array.
fn owned_values(chunk: &mut Chunk) -> Array<u8> {
    match std::mem::replace(&mut chunk.values, Values::Owned(Array::new())) {
        Values::Owned(values) => values,
        Values::Shared(_) => Array::new(),
    }
}
