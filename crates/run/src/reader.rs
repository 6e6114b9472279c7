//! A run as readers see it: its life cycle, and access to its parts in the cache or on the device.

use std::ops::Range;

use frondb_block::{Block, BlockKind, Place, decode_frame, decode_frame_with_dictionary};
use frondb_cache::{CacheKey, Priority};
use frondb_core::budget::Part;
use frondb_core::error::CorruptionPlace;
use frondb_core::events::Event;
use frondb_core::mem::Bytes;
use frondb_core::profile;
use frondb_core::sync::atomic::{AtomicBool, Ordering};
use frondb_core::sync::{Arc, OnceLock};
use frondb_core::{Chunk, Error, ErrorKind, Result, SeqNo};
use frondb_filter::{FilterError, FilterReader};

use crate::block_reads::BlockRead;
use crate::charge::Charge;
use crate::dictionaries::HeldDictionary;
use crate::env::{Cached, RunEnv};
use crate::format::RunMeta;
use crate::index::{BlockIndex, FilterPart, TopIndex};
use crate::read::{Span, holds, locate, read_span};
use crate::residency::presence::Presence;

/// A top index that a run keeps, and its charge.
pub(crate) type KeptTopIndex = (Arc<TopIndex>, Charge);

/// The position given to the first attempt to decode a block. If decoding fails, the block is
/// decoded once more with its real file and offset, so that the error names them.
pub(crate) const NO_PLACE: Place<'static> = Place { file: "", offset: 0 };

/// An immutable run. Thread-safe; freed with its last reference.
///
/// Life cycle: 1 written, 2 named by a durable manifest edit, 3 dropped from the trunk by an edit,
/// 4 [`kill`](Self::kill)ed once that edit is durable, 5 released: the last version or cursor that
/// pinned it has been dropped, and its extents are free.
///
/// The private run of a transaction has local numbers instead of SeqNos;
/// [`attached`](Self::attached) returns the same run with SeqNos. Both handles refer to the same
/// bytes, which are released once.
pub struct Run {
    meta: RunMeta,
    pub(crate) filter_prefix: Option<u16>,
    env: Arc<RunEnv>,
    dead: AtomicBool,
    pub(crate) presence: Presence,
    /// The top index of a block index with several parts, once it was read, if there was memory for
    /// it.
    pub(crate) top_index: OnceLock<KeptTopIndex>,
    /// The dictionary of the blocks, once it was needed, if there was memory for it.
    pub(crate) dictionary: OnceLock<Arc<HeldDictionary>>,
    /// The handle with local numbers, which owns the extents; `None` if this handle owns them.
    private: Option<Arc<Run>>,
}

impl Run {
    /// Creates a handle to the run that `meta` describes.
    #[must_use]
    pub fn new(meta: RunMeta, filter_prefix: Option<u16>, env: Arc<RunEnv>) -> Arc<Self> {
        let (dead, presence) = (AtomicBool::new(false), Presence::default());
        let (top_index, dictionary, private) = (OnceLock::new(), OnceLock::new(), None);
        Arc::new(Self { meta, filter_prefix, env, dead, presence, top_index, dictionary, private })
    }

    /// Returns the run with its local numbers turned into SeqNos ([`RunMeta::attached`]): the same
    /// bytes, and the same blocks in the cache. If the returned handle is killed, its drop kills
    /// `self`; the extents are released when the last reference to either handle is dropped.
    #[must_use]
    pub fn attached(self: Arc<Self>, base: SeqNo) -> Arc<Self> {
        Arc::new(Self {
            meta: self.meta.attached(base),
            filter_prefix: self.filter_prefix,
            env: Arc::clone(&self.env),
            dead: AtomicBool::new(false),
            presence: Presence::default(),
            top_index: OnceLock::new(),
            dictionary: OnceLock::new(),
            private: Some(self),
        })
    }

    /// Returns the run's metadata in the manifest.
    #[must_use]
    pub fn meta(&self) -> &RunMeta {
        &self.meta
    }

    /// Returns whether the position of a corruption is in this run.
    #[must_use]
    pub fn holds(&self, place: &CorruptionPlace) -> bool {
        holds(&self.env.space, &self.meta.extents, &place.file, place.offset)
    }

    /// Returns the environment through which the run is read.
    #[must_use]
    pub fn env(&self) -> &Arc<RunEnv> {
        &self.env
    }

    /// Returns whether a new handle from the same metadata ([`new`](Self::new)) can replace this
    /// handle: there are exactly `references` references to this handle and no other ones to the
    /// handle with local numbers, the run is not dead, and this handle has nothing in memory that
    /// would have to be read again.
    #[must_use]
    pub fn can_be_made_again(self: &Arc<Self>, references: usize) -> bool {
        let is_shared = |run: &Arc<Self>| Arc::strong_count(run) > 1;
        Arc::strong_count(self) == references
            && !self.private.as_ref().is_some_and(is_shared)
            && !self.dead.load(Ordering::Acquire)
            && self.top_index.get().is_none()
            && self.dictionary.get().is_none()
    }

    /// Returns the length of the key prefixes in the run's filter; `None` for a filter over whole
    /// keys.
    #[must_use]
    pub fn filter_prefix(&self) -> Option<u16> {
        self.filter_prefix
    }

    /// Marks the run as dead: no durable manifest names it. Its extents are released with the last
    /// reference to it.
    pub fn kill(&self) {
        self.dead.store(true, Ordering::Release);
    }

    /// Returns a part of a filter that is not in the cache: calls `read` and inserts the result
    /// into the cache, or waits for a thread that is doing so; see [`Loads`](crate::loads::Loads).
    #[cold]
    pub(crate) fn load(
        &self,
        key: CacheKey,
        takes: (Part, u64),
        read: &dyn Fn() -> Result<(Cached, u64)>,
    ) -> Result<Cached> {
        let RunEnv { cache, budget, loads, .. } = &*self.env;
        loads.load(
            key,
            takes,
            budget,
            || cache.get(key),
            || {
                let (value, bytes) = read()?;
                cache.insert(key, value.clone(), bytes, Priority::Meta);
                Ok(value)
            },
        )
    }

    /// Reads a part of the filter, bypassing the cache.
    pub(crate) fn read_filter(&self, part: FilterPart) -> Result<FilterReader> {
        let filters = self.meta.blocks_bytes + u64::from(self.meta.index_bytes);
        let offset = filters + u64::from(part.offset);
        let span = self.read(offset, part.bytes as usize)?;
        let payload = self.frame(&span, offset, BlockKind::Filter)?;
        FilterReader::open(payload).map_err(|error| match error {
            FilterError::Malformed => {
                self.corrupt(offset, BlockKind::Filter.name(), "the filter is malformed")
            }
            FilterError::UnknownKind(kind) => {
                let id = self.meta.id;
                let message =
                    format!("run {id}: unknown filter kind {kind}: written by a newer version");
                Error::new(ErrorKind::Unsupported, message)
            }
        })
    }

    /// Returns data block `number` from the cache, or reads the block from the device and inserts
    /// it into the cache.
    pub(crate) fn block(&self, index: &BlockIndex, number: usize) -> Result<Block> {
        match self.cached_block(number) {
            Some(block) => Ok(block),
            None => Ok(self.read_block(index, number)?.0),
        }
    }

    /// Reads data block `number`, which is not in the cache, and inserts it. Also returns whether
    /// the cache has room for more such blocks; `true` if another thread has read this block
    /// meanwhile.
    pub(crate) fn read_block(&self, index: &BlockIndex, number: usize) -> Result<(Block, bool)> {
        let read = self.begin_read(&self.env, index, number);
        if read.has_waited()
            && let Some(block) = self.cached_block(number)
        {
            return Ok((block, true));
        }
        let (offset, len) = index.extent(number);
        let mut timed = self.env.pace.begin();
        let span = self.read(offset, len)?;
        if let Some(timed) = &mut timed {
            timed.end();
        }
        let block = self.decode(span.bytes(), offset)?;
        if let Some(timed) = timed {
            timed.decoded();
        }
        let has_room = self.cache_block(number, &block, span.bytes());
        Ok((block, has_room))
    }

    /// Waits until there is room for data block `number` besides the blocks that other threads are
    /// reading, and begins its read.
    pub(crate) fn begin_read<'a>(
        &self,
        env: &'a RunEnv,
        index: &BlockIndex,
        number: usize,
    ) -> BlockRead<'a> {
        env.block_reads.begin(&env.budget, self.read_memory(index.extent(number).1))
    }

    /// Returns the number of bytes of memory for reading and decoding a block that has `len` bytes
    /// on disk.
    pub(crate) fn read_memory(&self, len: usize) -> u64 {
        // The bytes on disk, the decompressed bytes, and the bytes laid out for searching.
        len as u64 + 2 * self.raw_block_bytes().max(len as u64)
    }

    /// Returns the average raw bytes of a block.
    pub(crate) fn raw_block_bytes(&self) -> u64 {
        self.meta.raw_bytes / u64::from(self.meta.blocks.max(1))
    }

    /// Decodes the block whose frame is `frame`, at logical `offset`, for a lookup or a scan.
    pub(crate) fn decode(&self, frame: &[u8], offset: u64) -> Result<Block> {
        if self.wants_rows() {
            return self.decode_rows(frame, offset);
        }
        profile::count(|profile| profile.blocks += 1);
        let held = self.dictionary()?;
        let dictionary = held.as_deref().map(|held| &**held.dictionary());
        Block::decode_columns(frame, dictionary, &NO_PLACE).or_else(|_| {
            self.decode_at(offset, |place| Block::decode_columns(frame, dictionary, place))
        })
    }

    /// Works as [`decode`](Self::decode), but the block always has rows.
    pub(crate) fn decode_rows(&self, frame: &[u8], offset: u64) -> Result<Block> {
        profile::count(|profile| profile.blocks += 1);
        let held = self.dictionary()?;
        let dictionary = held.as_deref().map(|held| &**held.dictionary());
        // Only a failed decode needs the file name, which costs an allocation.
        Block::decode_with(frame, dictionary, &NO_PLACE).or_else(|_| {
            self.decode_at(offset, |place| Block::decode_with(frame, dictionary, place))
        })
    }

    /// Returns the decompressed payload of the data block whose frame is `frame`, at logical
    /// `offset`.
    pub(crate) fn payload(&self, frame: &[u8], offset: u64) -> Result<Bytes> {
        let held = self.dictionary()?;
        let dictionary = held.as_deref().map(|held| &**held.dictionary());
        let decode = |place: &Place<'_>| {
            decode_frame_with_dictionary(frame, BlockKind::Data, dictionary, place)
        };
        decode(&NO_PLACE).or_else(|_| self.decode_at(offset, decode))
    }

    /// Removes the blocks, the filter and the index from the cache.
    pub(crate) fn uncache(&self) {
        let RunMeta { id, blocks, filter_parts, index_parts, .. } = self.meta;
        self.env.cache.remove_run(id, blocks, filter_parts, index_parts);
    }

    pub(crate) fn frame(&self, span: &Span, offset: u64, kind: BlockKind) -> Result<Bytes> {
        let frame = span.bytes();
        decode_frame(frame, kind, &NO_PLACE)
            .or_else(|_| self.decode_at(offset, |place| decode_frame(frame, kind, place)))
    }

    /// Decodes again after a failure, so that the error names the file, the offset and this run.
    /// Reports a corruption to the listener.
    pub(crate) fn decode_at<T>(
        &self,
        offset: u64,
        decode: impl FnOnce(&Place<'_>) -> Result<T>,
    ) -> Result<T> {
        let (file, offset) = locate(&self.env.space, &self.meta.extents, offset);
        decode(&Place { file: &file, offset }).map_err(|error| {
            let error = error.context(format_args!("run {}", self.meta.id));
            if error.kind() == ErrorKind::Corruption {
                self.env.events.tell(Event::Corruption(&error));
            }
            error
        })
    }

    /// Reads a span for a lookup or a scan.
    pub(crate) fn read(&self, offset: u64, len: usize) -> Result<Span> {
        self.note_read(len);
        let extents = &self.meta.extents;
        let read = self.env.profiled(|| read_span(&self.env.space, extents, offset, len));
        self.env.events.note_damage(read)
    }

    /// Counts a read for a lookup or a scan.
    pub(crate) fn note_read(&self, len: usize) {
        self.env.stats.reads.fetch_add(1, Ordering::Relaxed);
        self.env.stats.read_bytes.fetch_add(len as u64, Ordering::Relaxed);
        profile::count(|profile| {
            profile.reads += 1;
            profile.read_bytes += len as u64;
        });
    }

    pub(crate) fn read_for_merge(&self, offset: u64, len: usize) -> Result<Span> {
        self.env.stats.merge_reads.fetch_add(1, Ordering::Relaxed);
        self.env.stats.merge_read_bytes.fetch_add(len as u64, Ordering::Relaxed);
        let read = read_span(&self.env.space, &self.meta.extents, offset, len);
        self.env.events.note_damage(read)
    }

    /// Decodes entries of one of the run's blocks.
    #[inline]
    pub(crate) fn fill(&self, block: &Block, entries: Range<usize>, chunk: &mut Chunk) {
        block.fill(entries, self.meta.max_seq, chunk);
        if self.meta.seq_shift != 0 {
            for seq in chunk.seqs.iter_mut() {
                *seq = SeqNo(seq.get().wrapping_add(self.meta.seq_shift));
            }
        }
    }

    /// Reports a corruption at logical `offset` to the listener, and returns the error.
    pub(crate) fn corrupt(&self, offset: u64, what: &'static str, message: &str) -> Error {
        let (file, offset) = locate(&self.env.space, &self.meta.extents, offset);
        let message = format!("run {}: {message}", self.meta.id);
        let error = Error::corruption(file, offset, what, message);
        self.env.events.tell(Event::Corruption(&error));
        error
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.dead.load(Ordering::Acquire) {
            return;
        }
        if let Some(private) = &self.private {
            private.kill();
        } else {
            self.uncache();
            for extent in &self.meta.extents {
                self.env.space.release(*extent);
            }
        }
    }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Run({})", self.meta.id)
    }
}
