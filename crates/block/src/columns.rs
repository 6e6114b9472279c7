//! SeqNos and values that are byte-transposed columns: kept so, or turned into rows.
//!
//! A block that many reads will find in the cache has rows: a reader then gets a value as a slice of
//! the block. Turning columns into rows takes about as long as decompressing the block, so a block
//! that is probably read only once, because the cache has no room for it, keeps its columns. A lookup
//! gathers its row from them, and a scan turns the columns of the rows that it reads. Columns also
//! take less memory than rows, because a constant column is a single byte. A block counts the rows
//! that were turned, so its owner can tell when rows would have cost less.
//!
//! ```text
//!   payload    header  rows' lengths  kinds  seqs   value lengths  keys  values  tail
//!   columns    the payload
//!   rows               rows' lengths  kinds  seqs'  value lengths  keys  values'
//! ```

use frondb_core::mem::Buf;
use frondb_core::sync::atomic::{AtomicU32, Ordering};

use crate::format::PayloadHeader;
use crate::layout::Areas;
use crate::transposed::TransposedMap;

/// The SeqNos and the values of a block, if they are columns.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    pub(crate) seqs: Option<TransposedMap>,
    pub(crate) values: Option<TransposedMap>,
    /// Values that were gathered so far; see [`note_turned`](Self::note_turned).
    turned: AtomicU32,
}

impl Columns {
    /// Whether there are no columns: SeqNos and values are rows.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.seqs.is_none() && self.values.is_none()
    }

    /// Counts `rows` whose values were gathered. A count lost between load and store does no harm.
    #[inline]
    pub(crate) fn note_turned(&self, rows: usize) {
        let turned = self.turned.load(Ordering::Relaxed);
        self.turned.store(turned.saturating_add(rows as u32), Ordering::Relaxed);
    }

    /// Values that were gathered so far.
    pub(crate) fn turned(&self) -> usize {
        self.turned.load(Ordering::Relaxed) as usize
    }

    /// Bytes of memory besides the block's buffer.
    pub(crate) fn memory_bytes(&self) -> usize {
        let maps = [&self.seqs, &self.values];
        maps.into_iter().flatten().map(TransposedMap::memory_bytes).sum()
    }

    /// Copies everything into a new buffer, with columns of SeqNos and values as rows. `keys` are the
    /// columns of transposed keys, which stay columns.
    pub(crate) fn expand(
        &self,
        header: &PayloadHeader,
        old: &Areas,
        mut keys: Option<TransposedMap>,
        from: &[u8],
    ) -> (Buf, Areas, Option<TransposedMap>) {
        let count = header.count as usize;
        let areas = self.expanded(header, old, keys.as_ref());
        let mut buf = Buf::packed(areas.end);
        buf[..areas.seqs].copy_from_slice(&from[old.shared..old.seqs]);
        match &self.seqs {
            Some(map) => map.to_rows(from, 0..count, &mut buf[areas.seqs..areas.value_lens]),
            None => {
                let seqs = &from[old.seqs..old.value_lens];
                buf[areas.seqs..areas.value_lens].copy_from_slice(seqs);
            }
        }
        buf[areas.value_lens..areas.keys].copy_from_slice(&from[old.value_lens..old.keys]);
        match &mut keys {
            Some(map) => map.relocate(from, count, &mut buf, areas.keys),
            None => buf[areas.keys..areas.values].copy_from_slice(&from[old.keys..old.values]),
        }
        match &self.values {
            Some(map) => map.to_rows(from, 0..count, &mut buf[areas.values..]),
            None => buf[areas.values..].copy_from_slice(&from[old.values..old.end]),
        }
        (buf, areas, keys)
    }

    /// Where the areas are after [`expand`](Self::expand).
    fn expanded(&self, header: &PayloadHeader, old: &Areas, keys: Option<&TransposedMap>) -> Areas {
        let count = header.count as usize;
        let key_bytes = keys.map_or(old.values - old.keys, |map| map.column_bytes(count));
        let value_bytes = match &self.values {
            Some(_) => count * header.value_len as usize,
            None => old.end - old.values,
        };
        let seqs = old.seqs - old.shared;
        let value_lens = seqs + count * usize::from(header.seq_width);
        let keys = value_lens + (old.keys - old.value_lens);
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
