//! Byte-transposed columns of SeqNos and values, and values with an end byte. A block in memory
//! keeps this form, or its owner turns the block into rows.
//!
//! A block that many reads will find in the cache has rows: a reader then gets a value as a slice
//! of the block. Turning columns into rows takes about as long as decompressing the block. So a
//! block that is probably read only once, because the cache has no room for it, keeps its columns.
//! A lookup then gathers one row from the columns, and a scan converts only the rows of its range.
//! Columns also take less memory than rows, because a constant column is a single byte. A block
//! counts the rows that reads have converted, so its owner can tell when converting the whole block
//! would have cost less. The same applies to values with an end byte: a scan has to copy them, but
//! it refers to values stored with lengths where they are in the block.
//!
//! ```text
//!   payload    header  rows' lengths  kinds  seqs   value lengths  keys  values  tail
//!   columns    the payload
//!   rows               rows' lengths  kinds  seqs'  value lengths  keys  values'
//! ```

use frondb_core::mem::Buf;
use frondb_core::sync::atomic::{AtomicU32, Ordering};
use memchr::memchr_iter;

use crate::areas::Areas;
use crate::format::{FLAG_VALUES_ENDED, PayloadHeader};
use crate::rows::length_width;
use crate::transposed::TransposedMap;

/// The SeqNos and the values of a block, if they are columns.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    pub(crate) seqs: Option<TransposedMap>,
    pub(crate) values: Option<TransposedMap>,
    /// The byte that ends each value; `None` if values have no end byte.
    pub(crate) end_byte: Option<u8>,
    /// Number of rows whose values reads have converted; see [`note_turned`](Self::note_turned).
    turned: AtomicU32,
}

impl Columns {
    /// Whether SeqNos and values are rows: there are no columns and no end bytes.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.seqs.is_none() && self.values.is_none() && self.end_byte.is_none()
    }

    /// Returns the lengths of `count` values without their end bytes; an empty list if values have
    /// no end byte; `None` if `values` has another number of end bytes, or does not end with one.
    fn ended_lengths(&self, values: &[u8], count: usize) -> Option<Vec<u32>> {
        let Some(end_byte) = self.end_byte else { return Some(Vec::new()) };
        let (mut lengths, mut start) = (Vec::with_capacity(count.min(values.len())), 0);
        for end in memchr_iter(end_byte, values) {
            lengths.push((end - start) as u32);
            start = end + 1;
        }
        (lengths.len() == count && start == values.len()).then_some(lengths)
    }

    /// Adds `rows` to the count of converted rows. A count lost between load and store does no
    /// harm.
    #[inline]
    pub(crate) fn note_turned(&self, rows: usize) {
        let turned = self.turned.load(Ordering::Relaxed);
        self.turned.store(turned.saturating_add(rows as u32), Ordering::Relaxed);
    }

    /// Returns the number of rows whose values reads have converted from columns so far.
    pub(crate) fn turned(&self) -> usize {
        self.turned.load(Ordering::Relaxed) as usize
    }

    /// Bytes of memory that the columns take besides the block's buffer.
    pub(crate) fn memory_bytes(&self) -> usize {
        let maps = [&self.seqs, &self.values];
        maps.into_iter().flatten().map(TransposedMap::memory_bytes).sum()
    }

    /// Copies all areas into a new buffer, with SeqNos and values as rows. `keys` are the columns
    /// of transposed keys, which stay columns. `None` if values with an end byte are malformed.
    pub(crate) fn expand(
        &self,
        header: &PayloadHeader,
        old: &Areas,
        mut keys: Option<TransposedMap>,
        from: &[u8],
    ) -> Option<Expanded> {
        let count = header.count as usize;
        let lengths = self.ended_lengths(&from[old.values..old.end], count)?;
        let header = self.expanded_header(header, &lengths);
        let areas = self.expanded(&header, old, keys.as_ref());
        let mut buf = Buf::packed(areas.end);
        buf[..areas.seqs].copy_from_slice(&from[old.shared..old.seqs]);
        match &self.seqs {
            Some(map) => map.to_rows(from, 0..count, &mut buf[areas.seqs..areas.value_lens]),
            None => {
                let seqs = &from[old.seqs..old.value_lens];
                buf[areas.seqs..areas.value_lens].copy_from_slice(seqs);
            }
        }
        match &mut keys {
            Some(map) => map.relocate(from, count, &mut buf, areas.keys),
            None => buf[areas.keys..areas.values].copy_from_slice(&from[old.keys..old.values]),
        }
        let values = &from[old.values..old.end];
        if self.end_byte.is_some() {
            let width = usize::from(header.value_width);
            let stored = buf[areas.value_lens..areas.keys].chunks_exact_mut(width);
            for (stored, length) in stored.zip(&lengths) {
                stored.copy_from_slice(&length.to_le_bytes()[..width]);
            }
            close_up(values, &lengths, &mut buf[areas.values..]);
        } else {
            buf[areas.value_lens..areas.keys].copy_from_slice(&from[old.value_lens..old.keys]);
            match &self.values {
                Some(map) => map.to_rows(from, 0..count, &mut buf[areas.values..]),
                None => buf[areas.values..].copy_from_slice(values),
            }
        }
        Some(Expanded { buf, header, areas, keys })
    }

    /// Returns the header after [`expand`](Self::expand). Only the fields that readers use are
    /// correct.
    fn expanded_header(&self, header: &PayloadHeader, lengths: &[u32]) -> PayloadHeader {
        if self.end_byte.is_none() {
            return *header;
        }
        let longest = lengths.iter().copied().max().unwrap_or(0) as usize;
        PayloadHeader {
            flags: header.flags & !FLAG_VALUES_ENDED,
            value_width: length_width(longest) as u8,
            value_len: 0,
            value_bytes: header.value_bytes - header.count,
            ..*header
        }
    }

    /// Returns the areas after [`expand`](Self::expand). `header` is the header of the expanded
    /// block.
    fn expanded(&self, header: &PayloadHeader, old: &Areas, keys: Option<&TransposedMap>) -> Areas {
        let count = header.count as usize;
        let key_bytes = keys.map_or(old.values - old.keys, |map| map.column_bytes(count));
        let value_bytes = match (&self.values, self.end_byte) {
            (Some(_), _) => count * header.value_len as usize,
            (None, Some(_)) => header.value_bytes as usize,
            (None, None) => old.end - old.values,
        };
        let seqs = old.seqs - old.shared;
        let value_lens = seqs + count * usize::from(header.seq_width);
        let keys = value_lens + count * usize::from(header.value_width);
        let values = keys + key_bytes;
        Areas {
            shared: 0,
            suffix_lens: old.suffix_lens - old.shared,
            kinds: old.kinds - old.shared,
            seqs,
            value_lens,
            keys,
            values,
            end: values + value_bytes,
        }
    }
}

/// Copies values without the byte that ends each of them.
fn close_up(values: &[u8], lengths: &[u32], mut to: &mut [u8]) {
    let mut from = 0;
    for length in lengths.iter().map(|&length| length as usize) {
        let (value, rest) = to.split_at_mut(length);
        value.copy_from_slice(&values[from..from + length]);
        from += length + 1;
        to = rest;
    }
}

/// A block with rows, made by [`Columns::expand`].
pub(crate) struct Expanded {
    pub(crate) buf: Buf,
    pub(crate) header: PayloadHeader,
    pub(crate) areas: Areas,
    pub(crate) keys: Option<TransposedMap>,
}
