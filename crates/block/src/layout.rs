//! Turns a decompressed payload into the in-memory form of a block.
//!
//! A payload is read once from front to back. Every length is checked, and the data for searches is
//! derived. Transposed keys stay transposed and are searched in place. Transposed SeqNos and values
//! become rows ([`crate::columns`]), or stay columns in a block that is probably read only once.

use frondb_core::MessageKind;
use frondb_core::limits::BLOCK_RAW_BYTES_MAX;
use frondb_core::mem::Buf;

use crate::areas::Areas;
use crate::columns::{Columns, Expanded};
use crate::format::{
    FLAG_KEYS_FIXED, FLAG_KINDS, FLAG_SEQS_TRANSPOSED, FLAG_VALUES_ENDED, FLAG_VALUES_FIXED,
    FLAG_VALUES_TRANSPOSED, FLAGS_ALL, LAYOUT_ROWS, LAYOUT_TRANSPOSED, PAYLOAD_HEADER_BYTES,
    PayloadHeader, TRANSPOSED_KEY_BYTES_MAX,
};
use crate::rows::{Restart, Rows};
use crate::transposed::TransposedMap;
use crate::transposed_keys::TransposedKeys;
use crate::values::ENDED_BYTES_MAX;

/// The data for searching keys, derived from the payload.
#[derive(Clone, Debug)]
pub(crate) enum Keys {
    Rows(Box<[Restart]>),
    Transposed(TransposedKeys),
}

/// A validated block in memory.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) buf: Buf,
    pub(crate) header: PayloadHeader,
    pub(crate) areas: Areas,
    pub(crate) keys: Keys,
    /// SeqNos and values that were not turned into rows.
    pub(crate) columns: Columns,
}

impl Layout {
    /// Validates a payload. The error says what is wrong. With `keeps_columns`, columns of SeqNos
    /// and values, and values with an end byte, keep their form; otherwise they become rows.
    pub(crate) fn new(mut payload: Buf, keeps_columns: bool) -> Result<Self, &'static str> {
        let header = PayloadHeader::decode(&payload).ok_or("header")?;
        check_header(&header, payload.len())?;
        let mut reader = AreaReader::new(&header, &payload)?;
        let areas = reader.areas(&header, &mut payload)?;
        let AreaReader { keys, mut columns, .. } = reader;
        if header.flags & FLAG_VALUES_ENDED != 0 {
            columns.end_byte = Some(u8::try_from(header.value_len).map_err(|_| "value layout")?);
        }
        if keeps_columns || columns.is_empty() {
            let keys = match keys {
                Some(map) => Keys::transposed(map, &payload, &header),
                None => Keys::rows(&header, &areas, &payload)?,
            };
            return Ok(Self { buf: payload, header, areas, keys, columns });
        }
        let expanded = columns.expand(&header, &areas, keys, &payload).ok_or("ends of values")?;
        let Expanded { buf, header, areas, keys } = expanded;
        let keys = match keys {
            Some(map) => Keys::transposed(map, &buf, &header),
            None => Keys::rows(&header, &areas, &buf)?,
        };
        Ok(Self { buf, header, areas, keys, columns: Columns::default() })
    }
}

impl Keys {
    pub(crate) fn transposed(map: TransposedMap, buf: &[u8], header: &PayloadHeader) -> Self {
        Self::Transposed(TransposedKeys::new(map, buf, header.count as usize))
    }

    fn rows(header: &PayloadHeader, areas: &Areas, buf: &[u8]) -> Result<Self, &'static str> {
        let rows = rows(header, areas, buf);
        Ok(Self::Rows(rows.validate(BLOCK_RAW_BYTES_MAX).ok_or("key lengths")?))
    }
}

/// Returns the key areas of a buffer in the rows layout.
pub(crate) fn rows<'a>(header: &PayloadHeader, areas: &Areas, buf: &'a [u8]) -> Rows<'a> {
    let key_len = header.key_len as usize;
    Rows {
        shared: &buf[areas.shared..areas.suffix_lens],
        suffix_lens: &buf[areas.suffix_lens..areas.kinds],
        width: usize::from(header.length_width),
        key_len: (header.flags & FLAG_KEYS_FIXED != 0).then_some(key_len),
        suffixes: &buf[areas.keys..areas.values],
        count: header.count as usize,
        interval: usize::from(header.restart_interval),
    }
}

/// Checks that the header's fields agree with each other and limit the size of the block in memory.
fn check_header(header: &PayloadHeader, payload_len: usize) -> Result<(), &'static str> {
    let has = |flag: u8| header.flags & flag != 0;
    let key_layout_right = match header.layout {
        LAYOUT_ROWS => matches!(header.length_width, 1 | 2) && header.restart_interval > 0,
        LAYOUT_TRANSPOSED => {
            header.length_width == 0
                && header.restart_interval == 0
                && has(FLAG_KEYS_FIXED)
                && (1..=TRANSPOSED_KEY_BYTES_MAX as u32).contains(&header.key_len)
        }
        _ => false,
    };
    if !key_layout_right || header.flags & !FLAGS_ALL != 0 {
        return Err("key layout");
    }
    let value_layout_right = if has(FLAG_VALUES_FIXED) {
        header.value_width == 0
            && !(has(FLAG_VALUES_TRANSPOSED) && header.value_len == 0)
            && !has(FLAG_VALUES_ENDED)
    } else if has(FLAG_VALUES_ENDED) {
        header.value_width == 0 && !has(FLAG_VALUES_TRANSPOSED)
    } else {
        matches!(header.value_width, 1 | 2 | 4) && !has(FLAG_VALUES_TRANSPOSED)
    };
    if !value_layout_right {
        return Err("value layout");
    }
    let seqs_right = match header.seqs_stored {
        0 => header.seq_width == 0 && !has(FLAG_SEQS_TRANSPOSED),
        1 => header.seq_width <= 8 && !(has(FLAG_SEQS_TRANSPOSED) && header.seq_width == 0),
        _ => false,
    };
    if !seqs_right {
        return Err("SeqNo layout");
    }
    if header.count == 0 || MessageKind::from_u8(header.kind).is_none() {
        return Err("count or kind");
    }
    // A message takes at least one byte. Expanded keys and values together are limited like a
    // payload, so that a few hostile bytes cannot fill a reader's memory.
    let count = u64::from(header.count);
    if has(FLAG_VALUES_ENDED) && header.value_bytes as usize > ENDED_BYTES_MAX {
        return Err("value bytes");
    }
    let value_len = if has(FLAG_VALUES_ENDED) { 0 } else { header.value_len };
    let entry_bytes = u64::from(header.key_len) + u64::from(value_len);
    let spelled_out = count.saturating_mul(entry_bytes);
    let most = BLOCK_RAW_BYTES_MAX as u64;
    if (count > 1 && count > payload_len as u64) || spelled_out > most {
        return Err("count");
    }
    Ok(())
}

/// Walks through the areas of a payload.
struct AreaReader {
    at: usize,
    tail_at: usize,
    /// Offset at which the tail begins and the other areas end.
    head_end: usize,
    keys: Option<TransposedMap>,
    columns: Columns,
}

impl AreaReader {
    fn new(header: &PayloadHeader, payload: &[u8]) -> Result<Self, &'static str> {
        let head_end = payload.len().checked_sub(header.tail_bytes as usize);
        let head_end = head_end.filter(|&end| end >= PAYLOAD_HEADER_BYTES).ok_or("tail")?;
        Ok(Self {
            at: PAYLOAD_HEADER_BYTES,
            tail_at: head_end,
            head_end,
            keys: None,
            columns: Columns::default(),
        })
    }

    /// Finds all areas, which must fill the payload exactly.
    fn areas(&mut self, header: &PayloadHeader, payload: &mut [u8]) -> Result<Areas, &'static str> {
        let has = |flag: u8| header.flags & flag != 0;
        let count = header.count as usize;
        let in_rows = header.layout == LAYOUT_ROWS;
        let lengths = if in_rows { usize::from(header.length_width) } else { 0 };
        let shared = self.array(count, lengths)?;
        let suffix_lens = self.array(count, if has(FLAG_KEYS_FIXED) { 0 } else { lengths })?;
        let kinds = self.array(count, usize::from(has(FLAG_KINDS)))?;
        let seqs = self.at;
        let seq_width = usize::from(header.seq_width);
        if has(FLAG_SEQS_TRANSPOSED) {
            self.columns.seqs = Some(self.matrix(payload, seq_width, count)?);
        } else {
            self.array(count, seq_width)?;
        }
        let value_lens = self.array(count, usize::from(header.value_width))?;
        let keys = self.at;
        if in_rows {
            self.array(header.key_bytes as usize, 1)?;
        } else {
            self.keys = Some(self.matrix(payload, header.key_len as usize, count)?);
        }
        let values = self.at;
        if has(FLAG_VALUES_TRANSPOSED) {
            self.columns.values = Some(self.matrix(payload, header.value_len as usize, count)?);
        } else {
            self.array(header.value_bytes as usize, 1)?;
        }
        let areas =
            Areas { shared, suffix_lens, kinds, seqs, value_lens, keys, values, end: self.at };
        let fill = self.at == self.head_end
            && self.tail_at == payload.len()
            && values - keys == header.key_bytes as usize
            && self.at - values == header.value_bytes as usize;
        let values_right = self.columns.values.is_some()
            || !has(FLAG_VALUES_FIXED)
            || self.at - values == count * header.value_len as usize;
        if fill && values_right { Ok(areas) } else { Err("lengths of the areas") }
    }

    /// Skips `count` numbers of `width` bytes and returns their offset.
    fn array(&mut self, count: usize, width: usize) -> Result<usize, &'static str> {
        let start = self.at;
        let end = count.checked_mul(width).and_then(|bytes| start.checked_add(bytes));
        self.at = end.filter(|&end| end <= self.head_end).ok_or("an area is too long")?;
        Ok(start)
    }

    fn matrix(
        &mut self,
        payload: &mut [u8],
        width: usize,
        count: usize,
    ) -> Result<TransposedMap, &'static str> {
        let Self { at, tail_at, .. } = self;
        TransposedMap::read(payload, width, count, at, tail_at).ok_or("transposed columns")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_an_end_byte_are_limited_in_size() {
        let header = PayloadHeader {
            layout: LAYOUT_ROWS,
            flags: FLAG_VALUES_ENDED,
            restart_interval: 16,
            length_width: 1,
            value_width: 0,
            seq_width: 0,
            kind: MessageKind::Put as u8,
            seqs_stored: 0,
            count: 2,
            key_len: 0,
            key_bytes: 2,
            value_len: 0,
            value_bytes: ENDED_BYTES_MAX as u32,
            tail_bytes: 0,
            seq_base: 1,
        };
        assert_eq!(check_header(&header, 5 << 20), Ok(()));
        let larger = PayloadHeader { value_bytes: header.value_bytes + 1, ..header };
        assert_eq!(check_header(&larger, 5 << 20), Err("value bytes"));
        // The limit does not apply to values that have lengths.
        let with_lengths = PayloadHeader { flags: 0, value_width: 1, ..larger };
        assert_eq!(check_header(&with_lengths, 5 << 20), Ok(()));
    }
}
