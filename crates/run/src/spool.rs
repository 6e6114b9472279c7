//! Spools: sorted puts that are written once, read once from end to end, and gone with their last
//! holder. The temporary files of an external sort.
//!
//! A run would do, and costs twice the processor time: planes, block index and compression earn
//! their keep when a block is looked into often. A spool's frames are as large as its reads and hold
//! keys and values as arrays that a reader takes over as they are.
//!
//! ```text
//!  frame  | count | key bytes | has kinds | key ends | value ends | kinds | keys | values |
//!          4       4           4           4 each     4 each       1 each
//! ```
//!
//! Never in the manifest: where frames begin and what their checksums are is in memory only, and a
//! crash gives the space back by itself. Life cycle: [`SpoolWriter::add`] ...,
//! [`finish`](SpoolWriter::finish), [`Spool::source`].

use frondb_block::{
    BlockKind, Codec, CodecTrial, Place, decode_frame, encode_frame, frame_checksum,
};
use frondb_core::chunk::{Values, key_prefix};
use frondb_core::codec::Reader;
use frondb_core::mem::Bytes;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_core::{Chunk, Error, MessageKind, Result, SeqNo, Source};
use frondb_space::{Class, Extent, Space};

use crate::output::Output;
use crate::read::{locate, read_span};
use crate::reader::RunEnv;

/// Key and value bytes after which a frame is closed.
const FRAME_BYTES: usize = 256 * 1024;
/// The place of a frame that was found sound.
const NOWHERE: Place<'static> = Place { file: "", offset: 0 };

/// Writes a [`Spool`]. Dropped before [`finish`](Self::finish) it gives its space back. For one
/// thread at a time.
pub struct SpoolWriter {
    output: Output,
    env: Arc<RunEnv>,
    trial: CodecTrial,
    frame: Frame,
    /// The frame put together, and as it goes to the device.
    payload: Vec<u8>,
    encoded: Vec<u8>,
    frames: Vec<(u32, u64)>,
    entries: u64,
    raw_bytes: u64,
}

/// The entries of a frame that is filled.
#[derive(Default)]
struct Frame {
    keys: Vec<u8>,
    values: Vec<u8>,
    key_ends: Vec<u32>,
    value_ends: Vec<u32>,
    kinds: Vec<u8>,
    has_kinds: bool,
}

impl SpoolWriter {
    /// A writer of about `expected_bytes`.
    #[must_use]
    pub fn new(env: Arc<RunEnv>, codec: Codec, expected_bytes: u64) -> Self {
        Self {
            output: Output::new(Arc::clone(&env.space), Class::Merge, expected_bytes, false),
            env,
            trial: CodecTrial::new(codec),
            frame: Frame::default(),
            payload: Vec::new(),
            encoded: Vec::new(),
            frames: Vec::new(),
            entries: 0,
            raw_bytes: 0,
        }
    }

    /// Appends an entry: keys ascend, and none comes twice. Key and value keep the engine's limits.
    ///
    /// # Errors
    /// `NoSpace` or what the device reports; the writer is then good for dropping only.
    #[inline]
    pub fn add(&mut self, key: &[u8], kind: MessageKind, value: &[u8]) -> Result<()> {
        let frame = &mut self.frame;
        frame.keys.extend_from_slice(key);
        frame.values.extend_from_slice(value);
        frame.key_ends.push(frame.keys.len() as u32);
        frame.value_ends.push(frame.values.len() as u32);
        frame.kinds.push(kind as u8);
        frame.has_kinds |= kind != MessageKind::Put;
        if frame.keys.len() + frame.values.len() >= FRAME_BYTES {
            self.end_frame()?;
        }
        Ok(())
    }

    fn end_frame(&mut self) -> Result<()> {
        self.entries += self.frame.key_ends.len() as u64;
        self.raw_bytes += (self.frame.keys.len() + self.frame.values.len()) as u64;
        self.payload.clear();
        self.frame.encode(&mut self.payload);
        self.frame.clear();
        self.encoded.clear();
        let codec = self.trial.next();
        encode_frame(BlockKind::Spool, codec, &self.payload, &mut self.encoded)?;
        self.trial.done(self.payload.len(), self.encoded.len());
        self.frames.push((self.encoded.len() as u32, frame_checksum(&self.encoded)));
        self.output.write(&self.encoded)
    }

    /// Writes what is left; `None` if nothing was added.
    ///
    /// # Errors
    /// As [`add`](Self::add); the space is given back.
    pub fn finish(mut self) -> Result<Option<Spool>> {
        if !self.frame.key_ends.is_empty() {
            self.end_frame()?;
        }
        if self.frames.is_empty() {
            return Ok(None);
        }
        let extents = self.output.end_run();
        self.output.finish()?;
        let Self { env, frames, entries, raw_bytes, .. } = self;
        Ok(Some(Spool { env, extents, frames, entries, raw_bytes }))
    }
}

impl Frame {
    fn clear(&mut self) {
        self.keys.clear();
        self.values.clear();
        self.key_ends.clear();
        self.value_ends.clear();
        self.kinds.clear();
        self.has_kinds = false;
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.key_ends.len() as u32).to_le_bytes());
        out.extend_from_slice(&(self.keys.len() as u32).to_le_bytes());
        out.extend_from_slice(&u32::from(self.has_kinds).to_le_bytes());
        for ends in [&self.key_ends, &self.value_ends] {
            out.extend(ends.iter().flat_map(|end| end.to_le_bytes()));
        }
        if self.has_kinds {
            out.extend_from_slice(&self.kinds);
        }
        out.extend_from_slice(&self.keys);
        out.extend_from_slice(&self.values);
    }
}

/// Fills `chunk` with the entries of a decoded frame; `None` if the frame contradicts itself.
pub(crate) fn decode(payload: &Bytes, number: SeqNo, chunk: &mut Chunk) -> Option<()> {
    let mut reader = Reader::new(payload);
    let count = reader.u32().ok()? as usize;
    let (key_bytes, has_kinds) = (reader.u32().ok()?, reader.u32().ok()?);
    let ends_bytes = count.checked_mul(4)?;
    let (key_ends, value_ends) = (reader.take(ends_bytes).ok()?, reader.take(ends_bytes).ok()?);
    let kinds = reader.take(if has_kinds == 0 { 0 } else { count }).ok()?;
    let keys = reader.take(key_bytes as usize).ok()?;
    let values_start = (payload.len() - reader.rest().len()) as u32;

    chunk.clear();
    fill_ends(key_ends, 0, key_bytes, &mut chunk.key_ends)?;
    fill_ends(value_ends, values_start, payload.len() as u32, &mut chunk.value_ends)?;
    if has_kinds == 0 {
        chunk.kinds.resize(count, MessageKind::Put);
    } else {
        for &kind in kinds {
            chunk.kinds.push(MessageKind::from_u8(kind)?);
        }
    }
    chunk.seqs.resize(count, number);
    chunk.keys.extend_from_slice(keys);
    let mut start = 0;
    for &end in &chunk.key_ends {
        chunk.prefixes.push(key_prefix(&keys[start..end as usize]));
        start = end as usize;
    }
    chunk.values_start = values_start;
    chunk.values = Values::Shared(payload.clone());
    Some(())
}

/// Ends as they were stored, moved by `start`; they ascend and the last is `end`.
fn fill_ends(stored: &[u8], start: u32, end: u32, ends: &mut Vec<u32>) -> Option<()> {
    let (words, _) = stored.as_chunks::<4>();
    // What is too large wraps around and is below `start`, or above `end`.
    ends.extend(words.iter().map(|word| u32::from_le_bytes(*word).wrapping_add(start)));
    (*ends.first()? >= start && ends.is_sorted() && *ends.last()? == end).then_some(())
}

/// Sorted puts on the device; see the module's head. Any thread may read it. Its space goes with
/// the last holder.
pub struct Spool {
    env: Arc<RunEnv>,
    extents: Vec<Extent>,
    /// Length and checksum of each frame.
    frames: Vec<(u32, u64)>,
    entries: u64,
    raw_bytes: u64,
}

impl Spool {
    /// Entries.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Bytes of keys and values.
    #[must_use]
    pub fn raw_bytes(&self) -> u64 {
        self.raw_bytes
    }

    /// The entries in order, all with this number for a SeqNo.
    #[must_use]
    pub fn source(self: &Arc<Self>, number: SeqNo) -> SpoolSource {
        SpoolSource { spool: Arc::clone(self), number, next: 0, offset: 0 }
    }

    fn read(&self, next: usize, offset: u64) -> Result<Bytes> {
        let (len, checksum) = self.frames[next];
        let stats = &self.env.stats;
        stats.merge_reads.fetch_add(1, Ordering::Relaxed);
        stats.merge_read_bytes.fetch_add(u64::from(len), Ordering::Relaxed);
        let span = read_span(&self.env.space, &self.extents, offset, len as usize)?;
        let frame = span.bytes();
        if frame_checksum(frame) == checksum
            && let Ok(payload) = decode_frame(frame, BlockKind::Spool, &NOWHERE)
        {
            return Ok(payload);
        }
        // Once more, for an error that says what is wrong.
        let (file, at) = locate(&self.env.space, &self.extents, offset);
        decode_frame(frame, BlockKind::Spool, &Place { file: &file, offset: at })?;
        Err(self.corrupt(offset, "not the frame that was written here"))
    }

    fn corrupt(&self, offset: u64, message: &str) -> Error {
        let (file, at) = locate(&self.env.space, &self.extents, offset);
        Error::corruption(file, at, BlockKind::Spool.name(), message)
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        let space: &Space = &self.env.space;
        self.extents.iter().for_each(|extent| space.release(*extent));
    }
}

/// A walk over a [`Spool`], a frame a chunk.
pub struct SpoolSource {
    spool: Arc<Spool>,
    number: SeqNo,
    next: usize,
    /// Logical offset of the next frame.
    offset: u64,
}

impl Source for SpoolSource {
    fn next_chunk(&mut self, chunk: &mut Chunk) -> Result<bool> {
        chunk.clear();
        if self.next == self.spool.frames.len() {
            return Ok(false);
        }
        let payload = self.spool.read(self.next, self.offset)?;
        decode(&payload, self.number, chunk)
            .ok_or_else(|| self.spool.corrupt(self.offset, "the frame contradicts itself"))?;
        self.offset += u64::from(self.spool.frames[self.next].0);
        self.next += 1;
        Ok(true)
    }
}
