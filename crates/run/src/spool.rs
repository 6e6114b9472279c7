//! Spools: sorted messages that are written once, read once from end to end, and freed with the
//! last reference to their spool. Spools are the temporary files of an external sort.
//!
//! A run would also work, but costs twice the processor time: byte-transposed columns, prefix
//! compression and a block index pay off only when blocks are searched often. The frames of a spool
//! hold keys and values as arrays that a reader uses without decoding; frames are written and read
//! in batches.
//!
//! ```text
//!  frame  | count | key bytes | has kinds | key ends | value ends | kinds | keys | values |
//!          4       4           4           4 each     4 each       1 each
//! ```
//!
//! A spool is never in the manifest: the lengths of batches and their checksums are in memory only,
//! so after a crash its space is free. Life cycle: [`SpoolWriter::add`] ...,
//! [`finish`](SpoolWriter::finish), [`Spool::source`].

use frondb_block::{
    BlockKind, Codec, CodecTrial, Place, decode_frame, encode_frame_with, frame_checksum, frame_len,
};
use frondb_core::chunk::{Values, key_prefix};
use frondb_core::codec::Reader;
use frondb_core::mem::{Array, Bytes};
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_core::wear::WriteCause;
use frondb_core::{Chunk, Error, MessageKind, Result, SeqNo, Source};
use frondb_space::{Class, Extent, Space};

use crate::env::RunEnv;
use crate::output::Output;
use crate::read::{Span, locate, read_span};

/// Key and value bytes after which a frame is closed. A merge has one frame of each spool in use,
/// and they must stay in the processor's cache.
const FRAME_BYTES: usize = 16 * 1024;
/// Bytes of frames written or read in one request: more than elsewhere, because the loading thread
/// waits for each batch.
const BATCH_BYTES: usize = 512 * 1024;
/// The position given to the first attempt to decode a frame; only an error message needs the real
/// position.
const NO_PLACE: Place<'static> = Place { file: "", offset: 0 };

/// Writes a [`Spool`]. If dropped before [`finish`](Self::finish), it releases its space. Used by
/// one thread at a time.
pub struct SpoolWriter {
    output: Output,
    env: Arc<RunEnv>,
    trial: CodecTrial,
    frame: Frame,
    /// Encoded frames that are not written yet.
    encoded: Vec<u8>,
    batches: Vec<(u32, u64)>,
    entries: u64,
    raw_bytes: u64,
}

/// The entries of the frame being filled.
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
    /// Creates a writer that expects about `expected_bytes`.
    #[must_use]
    pub fn new(env: Arc<RunEnv>, codec: Codec, expected_bytes: u64) -> Self {
        Self {
            output: Output::new(
                Arc::clone(&env.space),
                WriteCause::PrivateRuns,
                Class::Merge,
                expected_bytes,
                false,
            )
            .with_buffer(BATCH_BYTES),
            env,
            trial: CodecTrial::new(codec),
            frame: Frame::default(),
            encoded: Vec::new(),
            batches: Vec::new(),
            entries: 0,
            raw_bytes: 0,
        }
    }

    /// Appends an entry. REQUIRES: keys ascend and are unique; key and value are within the
    /// engine's limits.
    ///
    /// # Errors
    /// `NoSpace` or an error of the device. After an error the writer can only be dropped.
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
        let (start, codec) = (self.encoded.len(), self.trial.next());
        let raw = encode_frame_with(
            BlockKind::Spool,
            codec,
            self.env.verify(),
            &mut self.encoded,
            |out| self.frame.encode(out),
        )?;
        self.frame.clear();
        self.trial.record(raw, self.encoded.len() - start);
        if self.encoded.len() >= BATCH_BYTES { self.end_batch() } else { Ok(()) }
    }

    fn end_batch(&mut self) -> Result<()> {
        self.batches.push((self.encoded.len() as u32, frame_checksum(&self.encoded)));
        self.output.write(&self.encoded)?;
        self.encoded.clear();
        Ok(())
    }

    /// Writes the remaining entries; returns `None` if nothing was added.
    ///
    /// # Errors
    /// As [`add`](Self::add); the space is released.
    pub fn finish(mut self) -> Result<Option<Spool>> {
        if !self.frame.key_ends.is_empty() {
            self.end_frame()?;
        }
        if !self.encoded.is_empty() {
            self.end_batch()?;
        }
        if self.batches.is_empty() {
            return Ok(None);
        }
        let extents = self.output.end_run();
        self.output.finish()?;
        let Self { env, batches, entries, raw_bytes, .. } = self;
        Ok(Some(Spool { env, extents, batches, entries, raw_bytes }))
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
    for end in &chunk.key_ends {
        chunk.prefixes.push(key_prefix(&keys[start..end as usize]));
        start = end as usize;
    }
    chunk.values_start = values_start;
    chunk.values = Values::Shared(payload.clone());
    Some(())
}

/// Appends the stored ends, shifted by `start`. The ends must ascend, and the last shifted end must
/// be `end`.
fn fill_ends(stored: &[u8], start: u32, end: u32, ends: &mut Array<u32>) -> Option<()> {
    let (words, _) = stored.as_chunks::<4>();
    // A stored end that is too large wraps around and is then below `start`, or above `end`.
    let moved = ends.append(words.len(), 0).iter_mut().zip(words);
    moved.for_each(|(end, word)| *end = u32::from_le_bytes(*word).wrapping_add(start));
    (*ends.first()? >= start && ends.is_sorted() && *ends.last()? == end).then_some(())
}

/// Sorted messages on the device; see the module documentation. Any thread may read a spool.
/// Dropping the last reference releases its space.
pub struct Spool {
    env: Arc<RunEnv>,
    extents: Vec<Extent>,
    /// Length of each batch, and the checksum of its first frame.
    batches: Vec<(u32, u64)>,
    entries: u64,
    raw_bytes: u64,
}

impl Spool {
    /// Returns the number of entries.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Returns the number of key and value bytes of all entries.
    #[must_use]
    pub fn raw_bytes(&self) -> u64 {
        self.raw_bytes
    }

    /// Returns a source of the entries in order, all with the SeqNo `number`.
    #[must_use]
    pub fn source(self: &Arc<Self>, number: SeqNo) -> SpoolSource {
        SpoolSource { spool: Arc::clone(self), number, next: 0, offset: 0, batch: None, at: 0 }
    }

    /// Reads batch `next` at logical `offset`.
    fn read(&self, next: usize, offset: u64) -> Result<Span> {
        let (len, checksum) = self.batches[next];
        let stats = &self.env.stats;
        stats.merge_reads.fetch_add(1, Ordering::Relaxed);
        stats.merge_read_bytes.fetch_add(u64::from(len), Ordering::Relaxed);
        let span = read_span(&self.env.space, &self.extents, offset, len as usize);
        let span = self.env.events.note_damage(span)?;
        if frame_checksum(span.bytes()) != checksum {
            return Err(self.corrupt(offset, "the frame is not the one that was written here"));
        }
        Ok(span)
    }

    /// Decodes the payload of a frame at logical `offset`.
    fn frame(&self, frame: &[u8], offset: u64) -> Result<Bytes> {
        decode_frame(frame, BlockKind::Spool, &NO_PLACE).or_else(|_| {
            // Decode again, for an error that names the file and offset.
            let (file, at) = locate(&self.env.space, &self.extents, offset);
            decode_frame(frame, BlockKind::Spool, &Place { file: &file, offset: at })
        })
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

/// A source over a [`Spool`], one frame per chunk.
pub struct SpoolSource {
    spool: Arc<Spool>,
    number: SeqNo,
    /// The next batch, and its logical offset.
    next: usize,
    offset: u64,
    /// The current batch, and the position of its next frame.
    batch: Option<Span>,
    at: usize,
}

impl Source for SpoolSource {
    fn next_chunk(&mut self, chunk: &mut Chunk) -> Result<bool> {
        chunk.clear();
        if self.batch.as_ref().is_none_or(|batch| self.at == batch.bytes().len()) {
            // Frees the old batch first, so that the next batch can reuse its memory.
            self.batch = None;
            if self.next == self.spool.batches.len() {
                return Ok(false);
            }
            let batch = self.spool.read(self.next, self.offset)?;
            self.offset += batch.bytes().len() as u64;
            self.next += 1;
            self.at = 0;
            self.batch = Some(batch);
        }
        let batch = self.batch.as_ref().map_or(&[][..], Span::bytes);
        let offset = self.offset - (batch.len() - self.at) as u64;
        let rest = &batch[self.at..];
        let frame = frame_len(rest).and_then(|len| rest.get(..len));
        let frame = frame.ok_or_else(|| self.spool.corrupt(offset, "the frame is cut short"))?;
        let payload = self.spool.frame(frame, offset)?;
        decode(&payload, self.number, chunk)
            .ok_or_else(|| self.spool.corrupt(offset, "the frame is malformed"))?;
        self.at += frame.len();
        Ok(true)
    }
}
