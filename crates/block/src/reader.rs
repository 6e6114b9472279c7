//! Reads data blocks.
//!
//! [`Block::decode`] verifies, decompresses and validates a payload. Afterwards every length and
//! offset in the payload is known to lie inside it, so searches and fills need no error path.
//! Content that passes the checksum but is not sorted gives wrong answers, never a panic.

use std::ops::Range;

use frondb_core::mem::{Buf, Bytes};
use frondb_core::sync::Arc;
use frondb_core::{Chunk, MessageKind, Result, SeqNo};

use crate::areas::Areas;
use crate::columns::{Columns, Expanded};
use crate::dictionary::Dictionary;
use crate::dictionary_frames::decode_to_buf;
use crate::envelope::Place;
use crate::format::{BlockKind, FLAG_KINDS, PayloadHeader};
use crate::layout::{Keys, Layout, rows};
use crate::rows::{Rows, read_uint};
use crate::transposed::TransposedMap;
use crate::transposed_keys::{TransposedKeys, TransposedView};
use crate::values::ValuePlaces;

/// Rows would have cost less than columns if the average row of a block was converted more than
/// this many times: once by the scan that read the block from the device, and once again.
const WORTH_ROWS: usize = 2;

/// A decoded and verified data block. Immutable; any thread may read it, and a clone shares it.
#[derive(Clone, Debug)]
pub struct Block(Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    /// The buffer with all areas.
    pub(crate) bytes: Bytes,
    /// The value area of `bytes`.
    pub(crate) values: Bytes,
    pub(crate) header: PayloadHeader,
    pub(crate) areas: Areas,
    pub(crate) keys: Keys,
    /// Positions of the values in `values`.
    pub(crate) value_places: ValuePlaces,
    /// SeqNos and values that are not rows in `bytes`. Boxed, because most blocks have none.
    columns: Option<Box<Columns>>,
}

impl Block {
    /// Verifies and decodes a frame, which must fill `frame` exactly.
    ///
    /// # Errors
    /// Corruption with `place` if a byte differs from the bytes written; Unsupported if a newer
    /// version wrote the frame.
    pub fn decode(frame: &[u8], place: &Place<'_>) -> Result<Self> {
        Self::decode_with(frame, None, place)
    }

    /// As [`decode`](Self::decode), for a frame that may have been compressed with `dictionary`.
    ///
    /// # Errors
    /// As `decode`; Corruption also if the frame was compressed with another dictionary.
    pub fn decode_with(
        frame: &[u8],
        dictionary: Option<&Dictionary>,
        place: &Place<'_>,
    ) -> Result<Self> {
        Self::decode_as(frame, dictionary, false, place)
    }

    /// As [`decode_with`](Self::decode_with), but SeqNos and values that are stored as columns stay
    /// columns. Decoding is then faster and takes less memory, but each read of a value has to
    /// gather it. For a block that is probably read only once.
    ///
    /// # Errors
    /// As `decode_with`.
    pub fn decode_columns(
        frame: &[u8],
        dictionary: Option<&Dictionary>,
        place: &Place<'_>,
    ) -> Result<Self> {
        Self::decode_as(frame, dictionary, true, place)
    }

    fn decode_as(
        frame: &[u8],
        dictionary: Option<&Dictionary>,
        keeps_columns: bool,
        place: &Place<'_>,
    ) -> Result<Self> {
        let payload = decode_to_buf(frame, BlockKind::Data, dictionary, place)?;
        Self::from_payload(payload, keeps_columns)
            .map_err(|what| place.corruption(BlockKind::Data, format!("malformed: {what}")))
    }

    /// Validates a decompressed payload.
    pub(crate) fn from_payload(payload: Buf, keeps_columns: bool) -> Result<Self, &'static str> {
        let Layout { buf, header, areas, keys, columns } = Layout::new(payload, keeps_columns)?;
        let bytes = buf.freeze();
        let values = bytes.slice(areas.values..areas.end);
        let columns = (!columns.is_empty()).then(|| Box::new(columns));
        let lengths = &bytes[areas.value_lens..areas.keys];
        let value_places = ValuePlaces::new(&header, lengths, &values)?;
        let inner = Inner { bytes, values, header, areas, keys, value_places, columns };
        if header.flags & FLAG_KINDS != 0
            && inner.kinds().iter().any(|&kind| MessageKind::from_u8(kind).is_none())
        {
            return Err("kinds");
        }
        Ok(Self(Arc::new(inner)))
    }

    /// Whether SeqNos or values are columns, or values have an end byte.
    #[inline]
    #[must_use]
    pub fn has_columns(&self) -> bool {
        self.0.columns.is_some()
    }

    /// Whether reads have converted so many rows that a block with rows would have cost less.
    #[must_use]
    pub fn is_worth_rows(&self) -> bool {
        let turned = self.0.columns.as_ref().map_or(0, |columns| columns.turned());
        turned > WORTH_ROWS * self.len()
    }

    /// Returns the block with SeqNos and values as rows, as [`decode`](Self::decode) does.
    #[must_use]
    pub fn to_rows(&self) -> Self {
        let Inner { bytes, header, areas, keys, columns, .. } = &*self.0;
        let Some(columns) = columns else { return self.clone() };
        let map = match keys {
            Keys::Transposed(keys) => Some(keys.map.clone()),
            Keys::Rows(_) => None,
        };
        // Cannot fail: the end bytes were checked when the block was decoded.
        let Some(expanded) = columns.expand(header, areas, map, bytes) else { return self.clone() };
        let Expanded { buf, header, areas, keys: map } = expanded;
        let keys = match (map, keys) {
            (Some(map), _) => Keys::transposed(map, &buf, &header),
            (None, keys) => keys.clone(),
        };
        let bytes = buf.freeze();
        let values = bytes.slice(areas.values..areas.end);
        let lengths = &bytes[areas.value_lens..areas.keys];
        let Ok(value_places) = ValuePlaces::new(&header, lengths, &values) else {
            return self.clone();
        };
        Self(Arc::new(Inner { bytes, values, header, areas, keys, value_places, columns: None }))
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

    /// Bytes of memory that the block takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let inner = &*self.0;
        size_of::<Inner>()
            + inner.bytes.footprint()
            + match &inner.keys {
                Keys::Rows(restarts) => size_of_val(&**restarts),
                Keys::Transposed(keys) => keys.memory_bytes(),
            }
            + inner.value_places.memory_bytes()
            + inner.columns.as_ref().map_or(0, |c| size_of::<Columns>() + c.memory_bytes())
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

    /// Replaces the contents of `out` by the key of message `index`.
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

    /// Returns the first message whose key is not below `key`; [`len`](Self::len) if there is none.
    #[must_use]
    pub fn lower_bound(&self, key: &[u8]) -> usize {
        let inner = &*self.0;
        match &inner.keys {
            Keys::Transposed(keys) => inner.transposed(keys).equal_range(key).0,
            Keys::Rows(restarts) => inner.rows().lower_bound(restarts, key).0,
        }
    }

    /// Returns the range of the messages of `key`, newest first; if there are none, the empty range
    /// at the position where they would be.
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
        if self.has_columns()
            && let Some(seq) = self.0.gather_seq(index)
        {
            return seq;
        }
        let delta = read_uint(self.0.seqs(), usize::from(header.seq_width), index);
        SeqNo(header.seq_base.wrapping_add(delta))
    }

    /// Returns the value of message `index`. If the value has to be gathered from columns, it
    /// replaces the contents of `gathered`.
    ///
    /// # Panics
    /// If there is no such message.
    #[inline]
    #[must_use]
    pub fn value<'a>(&'a self, index: usize, gathered: &'a mut Vec<u8>) -> &'a [u8] {
        assert!(index < self.len());
        if self.has_columns() && self.0.gather_value(index, gathered) {
            return gathered;
        }
        &self.0.values[self.0.value_range(index)]
    }

    /// Replaces the contents of `chunk` by the messages of `entries`. Cheapest if the range begins
    /// at a multiple of the restart interval. Values that are rows are shared with the block, not
    /// copied.
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

/// Converts a kind byte that has been validated.
#[inline]
pub(crate) fn kind_of(byte: u8) -> MessageKind {
    MessageKind::from_u8(byte).unwrap_or(MessageKind::Put)
}

impl Inner {
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.header.count as usize
    }

    /// Returns the columns of SeqNos, if SeqNos are columns.
    #[inline]
    pub(crate) fn seq_columns(&self) -> Option<&TransposedMap> {
        self.columns.as_ref()?.seqs.as_ref()
    }

    /// Returns the columns of values, if values are columns. Counts `rows` rows as converted if the
    /// block has any columns or end bytes.
    #[inline]
    pub(crate) fn turn_values(&self, rows: usize) -> Option<&TransposedMap> {
        let columns = self.columns.as_ref()?;
        columns.note_turned(rows);
        columns.values.as_ref()
    }

    /// Returns the SeqNo of message `index` if SeqNos are columns. Not inlined, because cached
    /// blocks rarely have columns; [`gather_value`](Self::gather_value) likewise.
    #[cold]
    #[inline(never)]
    fn gather_seq(&self, index: usize) -> Option<SeqNo> {
        let mut seq = [SeqNo(self.header.seq_base)];
        self.seq_columns()?.add_numbers(&self.bytes, index..index + 1, &mut seq);
        Some(seq[0])
    }

    /// Replaces the contents of `out` by the value of message `index` if values are columns;
    /// otherwise returns `false`.
    #[cold]
    #[inline(never)]
    fn gather_value(&self, index: usize, out: &mut Vec<u8>) -> bool {
        let map = self.turn_values(1);
        map.inspect(|map| map.row_into(&self.bytes, index, out)).is_some()
    }

    pub(crate) fn rows(&self) -> Rows<'_> {
        rows(&self.header, &self.areas, &self.bytes)
    }

    pub(crate) fn transposed<'a>(&'a self, keys: &'a TransposedKeys) -> TransposedView<'a> {
        TransposedView { keys, payload: &self.bytes, count: self.count() }
    }

    pub(crate) fn kinds(&self) -> &[u8] {
        &self.bytes[self.areas.kinds..self.areas.seqs]
    }

    pub(crate) fn seqs(&self) -> &[u8] {
        &self.bytes[self.areas.seqs..self.areas.value_lens]
    }

    pub(crate) fn value_lens(&self) -> &[u8] {
        &self.bytes[self.areas.value_lens..self.areas.keys]
    }

    /// Returns the range of value `index` in `values`. REQUIRES: values are not columns.
    #[inline]
    pub(crate) fn value_range(&self, index: usize) -> Range<usize> {
        self.value_places.range(self.value_lens(), &self.values, index)
    }
}
