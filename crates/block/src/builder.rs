//! Builds data blocks.
//!
//! [`BlockBuilder::add`] only appends to arrays. All work that looks at more than one entry (which
//! columns vary, which layout, which widths) is done once per block in [`BlockBuilder::finish`], in
//! loops over the arrays. The buffers are reused from block to block.

mod encode;

use frondb_core::{Error, MessageKind, Result, SeqNo, limits};

use crate::codec::Codec;
use crate::dictionary::DictionaryEncoder;
use crate::envelope::{Verify, frame_checksum};
use crate::reader::Block;
use crate::stats::BlockSummary;
use crate::transposed::{self, Transposer};
use crate::trial::CodecTrial;

/// Default distance between restarts, which are keys that are stored whole.
pub const DEFAULT_RESTART_INTERVAL: u8 = 16;

/// The encoding of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockOptions {
    /// Compression. Default lz4, which is skipped where it saves little.
    pub codec: Codec,
    /// For keys that are stored as rows, not as byte-transposed columns: one key in this many is
    /// stored whole, 1 to 255. Default 16.
    pub restart_interval: u8,
    /// Whether each message stores its SeqNo. If not, the reader gives all messages the SeqNo of
    /// the run, which is correct while no snapshot sees some of them and not the others. Default
    /// true.
    pub per_entry_seqs: bool,
    /// Which blocks are decoded again and compared when they are written. Default: blocks of codecs
    /// that are not fast.
    pub verify: Verify,
}

impl Default for BlockOptions {
    fn default() -> Self {
        Self {
            codec: Codec::default(),
            restart_interval: DEFAULT_RESTART_INTERVAL,
            per_entry_seqs: true,
            verify: Verify::default(),
        }
    }
}

/// Lengths of elements, usually all equal. The end offsets of the elements are stored as soon as
/// two lengths differ.
#[derive(Debug, Default)]
struct Lengths {
    /// The length of all elements so far, while `ends` is empty.
    common: usize,
    /// The end offset of each element, once two lengths differ.
    ends: Vec<u32>,
}

impl Lengths {
    fn clear(&mut self) {
        self.ends.clear();
        self.common = 0;
    }

    /// Adds the `index`-th element, which has `len` bytes and ends at `end`.
    #[inline(always)]
    fn push(&mut self, index: usize, len: usize, end: usize) {
        if self.ends.is_empty() {
            if len == self.common {
                return;
            }
            if index == 0 {
                self.common = len;
                return;
            }
        }
        self.push_other(index, end);
    }

    #[inline(never)]
    fn push_other(&mut self, index: usize, end: usize) {
        if self.ends.is_empty() {
            self.ends.extend((1..=index).map(|i| (i * self.common) as u32));
        }
        self.ends.push(end as u32);
    }

    /// Returns the common length, if all lengths are equal.
    fn fixed(&self) -> Option<usize> {
        self.ends.is_empty().then_some(self.common)
    }

    #[inline]
    fn range(&self, index: usize) -> std::ops::Range<usize> {
        if self.ends.is_empty() {
            return index * self.common..(index + 1) * self.common;
        }
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        start..self.ends[index] as usize
    }
}

/// Collects sorted messages and encodes them as blocks.
///
/// For one thread. The caller decides when a block is full ([`raw_bytes`](Self::raw_bytes)). An
/// entry of any allowed size fits an empty builder.
#[derive(Debug)]
pub struct BlockBuilder {
    options: BlockOptions,
    count: usize,
    /// The keys one after the other, with room for whole-word copies.
    keys: Vec<u8>,
    key_bytes: usize,
    key_ends: Lengths,
    kinds: Vec<u8>,
    /// OR of the differences of all kinds from the first kind; 0 if all are equal.
    kinds_differ: u8,
    seqs: Vec<u64>,
    values: Vec<u8>,
    value_ends: Lengths,
    /// The payload under construction in `finish`.
    payload: Vec<u8>,
    suffixes: Vec<u8>,
    seq_rows: Vec<u8>,
    transposed: Transposer,
    /// Columns that are not compressed; appended after the values.
    tail: Vec<u8>,
    value_layout: ValueLayout,
    /// The codec of the current block: [`Codec::None`] where lz4 saves little.
    codec: Codec,
    trial: CodecTrial,
    /// Compresses the blocks instead of `codec`; `None` if the blocks have no dictionary.
    encoder: Option<DictionaryEncoder>,
}

/// The layout of values that was smaller when both were last tried.
#[derive(Debug, Default)]
struct ValueLayout {
    transposed: bool,
    /// Number of blocks until both layouts are tried again.
    blocks_left: u32,
}

/// Keys up to this length are copied with two overlapping moves of fixed size.
const SHORT_KEY_BYTES_MAX: usize = 32;

impl BlockBuilder {
    /// Creates an empty builder.
    ///
    /// # Panics
    /// If the restart interval is 0.
    #[must_use]
    pub fn new(options: BlockOptions) -> Self {
        assert!(options.restart_interval > 0, "the restart interval must not be 0");
        Self {
            options,
            count: 0,
            keys: Vec::new(),
            key_bytes: 0,
            key_ends: Lengths::default(),
            kinds: Vec::new(),
            kinds_differ: 0,
            seqs: Vec::new(),
            values: Vec::new(),
            value_ends: Lengths::default(),
            payload: Vec::new(),
            suffixes: Vec::new(),
            seq_rows: Vec::new(),
            transposed: Transposer::default(),
            tail: Vec::new(),
            value_layout: ValueLayout::default(),
            codec: options.codec,
            trial: CodecTrial::new(options.codec),
            encoder: None,
        }
    }

    /// Makes the builder compress its blocks with a dictionary instead of the codec of the options.
    /// REQUIRES: that codec is [`Codec::Zstd`] or [`Codec::ZstdDictionary`], and no block was
    /// finished yet.
    #[must_use]
    pub fn with_dictionary(mut self, encoder: DictionaryEncoder) -> Self {
        self.encoder = Some(encoder);
        self
    }

    /// Returns the encoder that compresses the blocks with a dictionary; `None` without a
    /// dictionary.
    #[must_use]
    pub fn encoder(&self) -> Option<&DictionaryEncoder> {
        self.encoder.as_ref()
    }

    /// Returns the options given to [`new`](Self::new), with the last change by
    /// [`set_verify`](Self::set_verify).
    #[must_use]
    pub fn options(&self) -> &BlockOptions {
        &self.options
    }

    /// Sets which blocks are decoded again and compared when they are written.
    pub fn set_verify(&mut self, verify: Verify) {
        self.options.verify = verify;
    }

    /// Appends a message. REQUIRES: its key is greater than the last key, or equal with a smaller
    /// SeqNo.
    #[inline]
    pub fn add(&mut self, key: &[u8], seq: SeqNo, kind: MessageKind, value: &[u8]) {
        debug_assert!(self.in_order(key, seq), "messages must be added in order");
        let at = self.key_bytes;
        let room = at + key.len().max(SHORT_KEY_BYTES_MAX) + transposed::ROW_SLACK;
        if self.keys.len() < room {
            self.grow_keys(room);
        }
        copy_key(&mut self.keys[at..], key);
        self.key_bytes = at + key.len();
        self.key_ends.push(self.count, key.len(), self.key_bytes);
        self.kinds_differ |= kind as u8 ^ self.kinds.first().map_or(kind as u8, |&first| first);
        self.kinds.push(kind as u8);
        if self.options.per_entry_seqs {
            self.seqs.push(seq.get());
        }
        if !value.is_empty() {
            self.values.extend_from_slice(value);
        }
        self.value_ends.push(self.count, value.len(), self.values.len());
        self.count += 1;
    }

    #[cold]
    fn grow_keys(&mut self, room: usize) {
        self.keys.resize(room.next_power_of_two().max(4096), 0);
    }

    fn in_order(&self, key: &[u8], seq: SeqNo) -> bool {
        if self.count == 0 {
            return true;
        }
        let last = self.last_key();
        let last_seq = self.seqs.last().copied().unwrap_or(u64::MAX);
        last < key || (last == key && (!self.options.per_entry_seqs || seq.get() < last_seq))
    }

    /// Returns the key and value bytes so far.
    #[inline]
    #[must_use]
    pub fn raw_bytes(&self) -> usize {
        self.key_bytes + self.values.len()
    }

    /// Returns the number of messages so far.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the builder is empty.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the key of the first message; empty if there is none.
    #[must_use]
    pub fn first_key(&self) -> &[u8] {
        if self.count == 0 { &[] } else { self.key(0) }
    }

    /// Returns the key of the last message; empty if there is none.
    #[must_use]
    pub fn last_key(&self) -> &[u8] {
        if self.count == 0 { &[] } else { self.key(self.count - 1) }
    }

    fn key(&self, index: usize) -> &[u8] {
        &self.keys[self.key_ends.range(index)]
    }

    /// Appends the messages as one frame to `out` and resets the builder.
    ///
    /// # Errors
    /// Invalid if the block exceeds [`BLOCK_RAW_BYTES_MAX`](limits::BLOCK_RAW_BYTES_MAX); `out` is
    /// unchanged then.
    ///
    /// # Panics
    /// If there are no messages.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<BlockSummary> {
        Ok(self.finish_keeping(out, |_| false)?.0)
    }

    /// As [`finish`](Self::finish). Calls `keeps` with the number of decompressed bytes. If `keeps`
    /// returns `true`, the frame is verified whatever the options say, and the result contains the
    /// block as readers will decode it, so a fault of the codec cannot reach readers.
    ///
    /// # Errors
    /// As `finish`; Internal if the frame decodes to the bytes to be written but readers would
    /// reject them.
    ///
    /// # Panics
    /// As `finish`.
    pub fn finish_keeping(
        &mut self,
        out: &mut Vec<u8>,
        keeps: impl FnOnce(usize) -> bool,
    ) -> Result<(BlockSummary, Option<Block>)> {
        assert!(self.count > 0, "a block has at least one message");
        let raw_bytes = self.raw_bytes();
        if raw_bytes > limits::BLOCK_RAW_BYTES_MAX {
            return Err(Error::invalid(format!("a block of {raw_bytes} bytes exceeds the limit")));
        }
        let start = out.len();
        self.codec = self.trial.next();
        let decoded = self.encode_payload(out, keeps)?;
        self.trial.record(raw_bytes, out.len() - start);
        let summary = BlockSummary {
            count: self.count,
            raw_bytes,
            bytes: out.len() - start,
            checksum: frame_checksum(&out[start..]),
        };
        self.clear();
        let block = decoded.map(|payload| Block::from_payload(payload, false)).transpose();
        let block = block.map_err(|what| {
            Error::internal(format!("a block that was just written is malformed: {what}"))
        })?;
        Ok((summary, block))
    }

    /// Removes all messages. Keeps the buffers; those of values and of the payload are freed above
    /// [`BUFFER_BYTES_KEPT`].
    fn clear(&mut self) {
        self.count = 0;
        self.key_bytes = 0;
        self.key_ends.clear();
        self.kinds.clear();
        self.kinds_differ = 0;
        self.seqs.clear();
        self.values.clear();
        self.value_ends.clear();
        for buffer in [&mut self.values, &mut self.payload] {
            if buffer.capacity() > BUFFER_BYTES_KEPT {
                *buffer = Vec::new();
            }
        }
    }
}

/// Largest buffer of values, and largest buffer of the payload, that a builder keeps between
/// blocks, bytes.
const BUFFER_BYTES_KEPT: usize = 4 << 20;

/// Copies `key` to the front of `out`, which has at least [`SHORT_KEY_BYTES_MAX`] bytes. Two
/// overlapping moves of a fixed size are several nanoseconds faster than a call of memcpy.
#[inline(always)]
fn copy_key(out: &mut [u8], key: &[u8]) {
    let len = key.len();
    if let (16..=SHORT_KEY_BYTES_MAX, Some(head), Some(tail)) =
        (len, key.first_chunk::<16>(), key.last_chunk::<16>())
    {
        out[..16].copy_from_slice(head);
        out[len - 16..len].copy_from_slice(tail);
    } else if let (8..=15, Some(head), Some(tail)) =
        (len, key.first_chunk::<8>(), key.last_chunk::<8>())
    {
        out[..8].copy_from_slice(head);
        out[len - 8..len].copy_from_slice(tail);
    } else {
        out[..len].copy_from_slice(key);
    }
}
