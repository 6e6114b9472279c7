//! Encodes the collected messages of a block, once per block.

use frondb_core::Result;
use frondb_core::mem::Buf;

use super::BlockBuilder;
use crate::codec::Codec;
use crate::dictionary_frames::encode_frame_with_dictionary;
use crate::envelope::encode_frame_with_tail;
use crate::format::{
    BlockKind, FLAG_KEYS_FIXED, FLAG_KINDS, FLAG_SEQS_TRANSPOSED, FLAG_VALUES_ENDED,
    FLAG_VALUES_FIXED, FLAG_VALUES_TRANSPOSED, LAYOUT_ROWS, LAYOUT_TRANSPOSED, PayloadHeader,
    TRANSPOSED_KEY_BYTES_MAX, TRANSPOSED_VALUE_BYTES_MAX,
};
use crate::rows;
use crate::transposed;
use crate::values;

/// Blocks between two trials of the layouts of values: a trial compresses a block twice.
const VALUE_TRIAL_INTERVAL: u32 = 64;

/// With fewer entries, byte-transposed columns of SeqNos or values do not pay off.
const MATRIX_ENTRIES_MIN: usize = 16;

/// Says whether the caller wants the block decoded; called with its number of decompressed bytes.
type Keeps<'a> = &'a mut dyn FnMut(usize) -> bool;

impl BlockBuilder {
    /// Appends the frame. Decodes the payload again and returns it if `keeps` returns `true` for
    /// its length.
    pub(super) fn encode_payload(
        &mut self,
        out: &mut Vec<u8>,
        keeps: impl FnOnce(usize) -> bool,
    ) -> Result<Option<Buf>> {
        // Call `keeps` only once, also if two layouts are tried.
        let (mut keeps, mut is_kept) = (Some(keeps), false);
        let keeps: Keeps<'_> = &mut |len| {
            if let Some(keeps) = keeps.take() {
                is_kept = keeps(len);
            }
            is_kept
        };
        let mut payload = std::mem::take(&mut self.payload);
        payload.clear();
        self.suffixes.clear();
        self.tail.clear();
        let mut header = PayloadHeader {
            kind: self.kinds[0],
            count: self.count as u32,
            ..PayloadHeader::default()
        };
        // A placeholder; the header is written once all numbers are known.
        header.encode(&mut payload);
        let fixed = self.key_ends.fixed();
        if let Some(key_len) = fixed {
            header.flags |= FLAG_KEYS_FIXED;
            header.key_len = key_len as u32;
        }
        let is_transposed = fixed.is_some_and(|len| (1..=TRANSPOSED_KEY_BYTES_MAX).contains(&len));
        if !is_transposed {
            self.encode_rows(&mut header, &mut payload);
        }
        self.encode_kinds(&mut header, &mut payload);
        self.encode_seqs(&mut header, &mut payload);
        self.encode_value_lengths(&mut header, &mut payload);
        let keys_at = payload.len();
        if is_transposed {
            self.encode_transposed(&mut header, &mut payload);
        } else {
            payload.extend_from_slice(&self.suffixes);
        }
        header.key_bytes = (payload.len() - keys_at) as u32;
        let result = self.encode_values(header, &mut payload, out, keeps);
        self.payload = payload;
        result
    }

    /// Whether the block has a codec: without one, byte-transposed columns (matrices) save nothing.
    fn compresses(&self) -> bool {
        self.codec != Codec::None
    }

    fn encode_transposed(&mut self, header: &mut PayloadHeader, payload: &mut Vec<u8>) {
        header.layout = LAYOUT_TRANSPOSED;
        let compress = self.compresses();
        let width = header.key_len as usize;
        self.transposed.encode(&self.keys, width, self.count, compress, payload, &mut self.tail);
    }

    /// Appends the values, in the layout that makes the frame smaller, and writes the frame.
    fn encode_values(
        &mut self,
        header: PayloadHeader,
        payload: &mut Vec<u8>,
        out: &mut Vec<u8>,
        keeps: Keeps<'_>,
    ) -> Result<Option<Buf>> {
        // Zero if the values differ in length.
        let width = self.value_ends.fixed().unwrap_or(0);
        let matrix = self.compresses()
            && self.count >= MATRIX_ENTRIES_MIN
            && (1..=TRANSPOSED_VALUE_BYTES_MAX).contains(&width);
        if !matrix {
            return self.seal_with_rows(header, payload, out, keeps);
        }
        let (values_at, tail_len) = (payload.len(), self.tail.len());
        self.values.extend_from_slice(&[0; transposed::ROW_SLACK]);
        let columns =
            self.transposed.encode(&self.values, width, self.count, true, payload, &mut self.tail);
        self.values.truncate(self.values.len() - transposed::ROW_SLACK);
        // If most columns are constant or random, as in packed integers, rows cannot be smaller:
        // the transposition has already removed what the codec would find. Text is tried in both
        // layouts.
        let clear = columns.incompressible * 8 >= columns.all * 5;
        let trial = !clear && self.value_layout.blocks_left == 0;
        if !clear {
            self.value_layout.blocks_left =
                self.value_layout.blocks_left.checked_sub(1).unwrap_or(VALUE_TRIAL_INTERVAL);
        }
        let (start, mut decoded) = (out.len(), None);
        if clear || trial || self.value_layout.transposed {
            let header = PayloadHeader { flags: header.flags | FLAG_VALUES_TRANSPOSED, ..header };
            decoded = self.seal(header, values_at, payload, out, keeps)?;
        }
        if clear || (self.value_layout.transposed && !trial) {
            return Ok(decoded);
        }
        let with_transposed = out.len();
        payload.truncate(values_at);
        self.tail.truncate(tail_len);
        let decoded_rows = self.seal_with_rows(header, payload, out, keeps)?;
        if trial {
            let (transposed, rows) = (with_transposed - start, out.len() - with_transposed);
            self.value_layout.transposed = transposed < rows;
            if transposed < rows {
                out.truncate(with_transposed);
                return Ok(decoded);
            }
            out.drain(start..with_transposed);
        }
        Ok(decoded_rows)
    }

    fn seal_with_rows(
        &mut self,
        header: PayloadHeader,
        payload: &mut Vec<u8>,
        out: &mut Vec<u8>,
        keeps: Keeps<'_>,
    ) -> Result<Option<Buf>> {
        let values_at = payload.len();
        if header.flags & FLAG_VALUES_ENDED == 0 {
            payload.extend_from_slice(&self.values);
        } else {
            for i in 0..self.count {
                payload.extend_from_slice(&self.values[self.value_ends.range(i)]);
                payload.push(header.value_len as u8);
            }
        }
        self.seal(header, values_at, payload, out, keeps)
    }

    /// Appends the frame of a payload that is complete except for its tail and header.
    fn seal(
        &mut self,
        mut header: PayloadHeader,
        values_at: usize,
        payload: &mut Vec<u8>,
        out: &mut Vec<u8>,
        keeps: Keeps<'_>,
    ) -> Result<Option<Buf>> {
        header.value_bytes = (payload.len() - values_at) as u32;
        header.tail_bytes = self.tail.len() as u32;
        let head_len = payload.len();
        payload.extend_from_slice(&self.tail);
        header.write(payload);
        let (codec, tail, kind) = (self.codec, self.tail.len(), BlockKind::Data);
        let mut decoded = keeps(payload.len()).then(|| Buf::packed(payload.len()));
        let back = decoded.as_deref_mut();
        match &mut self.encoder {
            Some(encoder) => {
                encode_frame_with_dictionary(kind, encoder, payload, tail, out, back)?;
            }
            None => {
                let verify = self.options.verify;
                encode_frame_with_tail(kind, codec, verify, payload, tail, out, back)?;
            }
        }
        payload.truncate(head_len);
        Ok(decoded)
    }

    fn encode_rows(&mut self, header: &mut PayloadHeader, payload: &mut Vec<u8>) {
        header.layout = LAYOUT_ROWS;
        header.restart_interval = self.options.restart_interval;
        let mut suffixes = std::mem::take(&mut self.suffixes);
        let width = rows::encode(
            |row| self.key(row),
            self.count,
            self.key_ends.fixed().is_some(),
            usize::from(self.options.restart_interval),
            payload,
            &mut suffixes,
        );
        self.suffixes = suffixes;
        header.length_width = width as u8;
    }

    fn encode_kinds(&self, header: &mut PayloadHeader, payload: &mut Vec<u8>) {
        if self.kinds_differ != 0 {
            header.flags |= FLAG_KINDS;
            header.kind = 0;
            payload.extend_from_slice(&self.kinds);
        }
    }

    fn encode_seqs(&mut self, header: &mut PayloadHeader, payload: &mut Vec<u8>) {
        if !self.options.per_entry_seqs {
            return;
        }
        let (base, top) =
            self.seqs.iter().fold((u64::MAX, 0), |(lo, hi), &seq| (lo.min(seq), hi.max(seq)));
        let width = rows::uint_width(top - base);
        header.seqs_stored = 1;
        header.seq_base = base;
        header.seq_width = width as u8;
        let start = payload.len();
        for &seq in &self.seqs {
            rows::push_uint(payload, width, seq - base);
        }
        if self.compresses() && self.count >= MATRIX_ENTRIES_MIN && width > 0 {
            header.flags |= FLAG_SEQS_TRANSPOSED;
            self.seq_rows.clear();
            self.seq_rows.extend_from_slice(&payload[start..]);
            self.seq_rows.extend_from_slice(&[0; transposed::ROW_SLACK]);
            payload.truncate(start);
            let deltas = &self.seq_rows;
            self.transposed.encode(deltas, width, self.count, true, payload, &mut self.tail);
        }
    }

    fn encode_value_lengths(&self, header: &mut PayloadHeader, payload: &mut Vec<u8>) {
        if let Some(value_len) = self.value_ends.fixed() {
            header.flags |= FLAG_VALUES_FIXED;
            header.value_len = value_len as u32;
            return;
        }
        // A user who chose a fast codec wants fast scans, and a scan must copy values with end
        // bytes.
        let is_fast = matches!(self.codec, Codec::None | Codec::Lz4);
        if let Some(end_byte) =
            (!is_fast).then(|| values::end_byte(&self.values, self.count)).flatten()
        {
            header.flags |= FLAG_VALUES_ENDED;
            header.value_len = u32::from(end_byte);
            return;
        }
        let longest = (0..self.count).map(|i| self.value_ends.range(i).len()).max().unwrap_or(0);
        let width = rows::length_width(longest);
        header.value_width = width as u8;
        for i in 0..self.count {
            rows::push_uint(payload, width, self.value_ends.range(i).len() as u64);
        }
    }
}
