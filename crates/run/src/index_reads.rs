//! How readers get the parts of a run's block index.
//!
//! ```text
//!   lookup -- one part? --> the index, from the cache or the device
//!                | no
//!                +-- top index, kept by the run --> one part, from the cache or the device
//! ```
//!
//! A run keeps its top index once it was read: otherwise each lookup would search the cache for two
//! objects, and the top index would have to stay in the cache anyway. The kept top indexes of all
//! runs take at most a fraction of the memory; other top indexes are in the cache.
//!
//! Any thread may read. If the index has several parts, a merge reads the parts that are not in the
//! cache without inserting them: it reads each part once, and then its run is dropped.

use std::ops::Deref;

use frondb_block::BlockKind;
use frondb_cache::{CacheKey, Priority};
use frondb_core::budget::Part;
use frondb_core::sync::Arc;
use frondb_core::{Error, Result};

use crate::charge::{Charge, Sum};
use crate::env::Cached;
use crate::index::{BlockIndex, TopIndex};
use crate::read::ReadMode;
use crate::reader::Run;

/// Approximate memory for reading a part of a block index, as a multiple of its size on disk: the
/// part is compressed, and its arrays coexist with the bytes from which they are decoded.
const INDEX_FACTOR: u64 = 6;

/// The top indexes that runs keep take at most the memory budget divided by this.
const TOP_INDEX_DIVISOR: u64 = 32;

/// The budget part and the sum in which a charge for a top index is counted.
const TOP_INDEXES: (Part, Sum) = (Part::Index, |env| &env.top_index_bytes);

/// A top index for a reader.
enum HeldTopIndex<'a> {
    Kept(&'a TopIndex),
    Cached(Arc<TopIndex>),
}

impl Deref for HeldTopIndex<'_> {
    type Target = TopIndex;

    #[inline]
    fn deref(&self) -> &TopIndex {
        match self {
            Self::Kept(top) => top,
            Self::Cached(top) => top,
        }
    }
}

impl Run {
    /// Returns the part of the block index in which a search for `key` ends.
    #[inline]
    pub(crate) fn index_for(&self, key: &[u8], mode: ReadMode) -> Result<Arc<BlockIndex>> {
        match self.top_index()? {
            None => self.only_index(),
            Some(top) => self.index_part(&top, top.find(key), mode),
        }
    }

    /// Returns the part of the block index that lists `block`; the last part if there is no such
    /// block.
    pub(crate) fn index_of(&self, block: usize, mode: ReadMode) -> Result<Arc<BlockIndex>> {
        match self.top_index()? {
            None => self.only_index(),
            Some(top) => self.index_part(&top, top.part_of(block), mode),
        }
    }

    /// Returns the first part of the block index that has, together with the parts before it, at
    /// least `entries` entries; the last part if the run has fewer.
    pub(crate) fn index_behind(&self, entries: u64) -> Result<Arc<BlockIndex>> {
        match self.top_index()? {
            None => self.only_index(),
            Some(top) => self.index_part(&top, top.part_behind(entries), ReadMode::Scan),
        }
    }

    /// Returns a block number such that all entries with a key below `key` (all entries, if `key`
    /// is `None`) are in earlier blocks: the end of an index part, or `usize::MAX` if the index has
    /// one part. Reads no part.
    pub(crate) fn blocks_before(&self, key: Option<&[u8]>) -> Result<usize> {
        Ok(match (self.top_index()?, key) {
            // Not the metadata's number of blocks: a rebuilt index may have more.
            (None, _) => usize::MAX,
            (Some(top), Some(key)) => top.end_before(key),
            (Some(_), None) => self.meta().blocks as usize,
        })
    }

    /// Returns a block number such that no entry in earlier blocks has a key at or above `key`: the
    /// first block of an index part, or 0 if `key` is `None` or the index has one part. Reads no
    /// part.
    pub(crate) fn blocks_left_of(&self, key: Option<&[u8]>) -> Result<usize> {
        let Some(key) = key else { return Ok(0) };
        Ok(self.top_index()?.map_or(0, |top| top.begin_of(key)))
    }

    /// Returns the whole block index as one object, for tests and tools. An index with several
    /// parts is read from the device; an index with one part may come from the cache.
    ///
    /// # Errors
    /// `Corruption` or a device error of the index.
    pub fn index(&self) -> Result<Arc<BlockIndex>> {
        if !self.in_parts() {
            return self.only_index();
        }
        let parts = self.index_parts().collect::<Result<Vec<_>>>()?;
        let joined = BlockIndex::join(&parts);
        joined.map(Arc::new).map_err(|_| self.malformed_index(self.meta().blocks_bytes))
    }

    /// Returns the parts of the block index in order, bypassing the cache. Parts that a salvage has
    /// rebuilt replace those on the device.
    pub(crate) fn index_parts(&self) -> impl Iterator<Item = Result<Arc<BlockIndex>>> {
        let top = match self.in_parts() {
            true => self.read_top_index().map(Some),
            false => Ok(None),
        };
        let parts = top.as_ref().map_or(1, |top| top.as_ref().map_or(1, TopIndex::len));
        (0..parts).map(move |part| match &top {
            Ok(None) => self.read_only_index(|_, _| ()),
            Ok(Some(top)) => self.read_index_part(top, part, ReadMode::Merge),
            Err(error) => Err(error.clone()),
        })
    }

    /// Returns whether the block index has several parts; a rebuilt index has one.
    #[inline]
    pub(crate) fn in_parts(&self) -> bool {
        let key = CacheKey::index(self.meta().id);
        self.meta().index_parts > 1 && self.env().rebuilt.get(key).is_none()
    }

    /// Returns the top index; `None` if the index has one part.
    #[inline]
    fn top_index(&self) -> Result<Option<HeldTopIndex<'_>>> {
        if !self.in_parts() {
            return Ok(None);
        }
        Ok(Some(match self.top_index.get() {
            Some((top, _)) => HeldTopIndex::Kept(top),
            None => HeldTopIndex::Cached(self.load_top_index()?),
        }))
    }

    #[cold]
    fn load_top_index(&self) -> Result<Arc<TopIndex>> {
        let (env, key) = (self.env(), CacheKey::index(self.meta().id));
        let held = || match self.top_index.get() {
            Some((top, _)) => Some(Cached::TopIndex(Arc::clone(top))),
            None => env.cache.get(key),
        };
        let cached = match env.cache.get(key) {
            Some(cached) => cached,
            None => {
                let takes = (Part::Index, u64::from(self.meta().top_index_bytes) * INDEX_FACTOR);
                env.loads.load(key, takes, &env.budget, held, || {
                    let top = Arc::new(self.read_top_index()?);
                    let bytes = top.memory_bytes() as u64;
                    env.rows.note_index_read(bytes);
                    if !self.keep_top_index(&top) {
                        let value = Cached::TopIndex(Arc::clone(&top));
                        env.cache.insert(key, value, bytes, Priority::Meta);
                    }
                    Ok(Cached::TopIndex(top))
                })?
            }
        };
        let Cached::TopIndex(top) = cached else {
            return Err(Error::internal("the cache entry of a top index is not a top index"));
        };
        // The run may not keep the top index yet: a job may have cached it, or there was no room.
        if self.top_index.get().is_none() && self.keep_top_index(&top) {
            drop(env.cache.remove(key));
        }
        Ok(top)
    }

    /// Keeps the top index if there is memory for it. Returns whether the run now keeps one.
    fn keep_top_index(&self, top: &Arc<TopIndex>) -> bool {
        let (env, bytes) = (self.env(), top.memory_bytes() as u64);
        let most = env.budget.total() / TOP_INDEX_DIVISOR;
        let charge = Charge::within(env, TOP_INDEXES, bytes, most);
        charge.is_some_and(|charge| {
            // If another thread was faster, that thread's object and charge stay.
            let _ = self.top_index.set((Arc::clone(top), charge));
            true
        })
    }

    pub(crate) fn read_top_index(&self) -> Result<TopIndex> {
        let meta = self.meta();
        let end = meta.blocks_bytes + u64::from(meta.index_bytes);
        let (offset, len) = (end - u64::from(meta.top_index_bytes), meta.top_index_bytes as usize);
        let payload = self.frame(&self.read(offset, len)?, offset, BlockKind::Index)?;
        TopIndex::decode(&payload, meta).map_err(|_| self.malformed_index(offset))
    }

    /// Returns a part of the index, from the cache or the device.
    #[inline]
    fn index_part(&self, top: &TopIndex, part: usize, mode: ReadMode) -> Result<Arc<BlockIndex>> {
        let cached = self.env().cache.get(CacheKey::index_part(self.meta().id, part as u32));
        match cached.and_then(|cached| self.index_part_of(cached, top, part)) {
            Some(index) => Ok(index),
            None => self.load_index_part(top, part, mode),
        }
    }

    #[cold]
    fn load_index_part(
        &self,
        top: &TopIndex,
        part: usize,
        mode: ReadMode,
    ) -> Result<Arc<BlockIndex>> {
        if mode == ReadMode::Merge {
            return self.read_index_part(top, part, mode);
        }
        let (env, key) = (self.env(), CacheKey::index_part(self.meta().id, part as u32));
        let takes = (Part::Index, u64::from(top.place(part).frame_bytes) * INDEX_FACTOR);
        let loaded = env.loads.load(
            key,
            takes,
            &env.budget,
            || env.cache.get(key),
            || {
                self.read_part_into(top, part, mode, |index, frame| match frame {
                    Some(frame) => self.cache_index(key, index, frame),
                    None => self.insert_index(key, index),
                })
                .map(Cached::Index)
            },
        )?;
        // Another thread may have cached the part as a frame meanwhile.
        match self.index_part_of(loaded, top, part) {
            Some(index) => Ok(index),
            None => self.read_index_part(top, part, mode),
        }
    }

    /// Reads a part of the index, bypassing the cache; returns the rebuilt part if a salvage made
    /// one.
    pub(crate) fn read_index_part(
        &self,
        top: &TopIndex,
        part: usize,
        mode: ReadMode,
    ) -> Result<Arc<BlockIndex>> {
        self.read_part_into(top, part, mode, |_, _| ())
    }

    /// Works as [`read_index_part`](Self::read_index_part); also passes the part to `keep`, with
    /// its frame, or with `None` if the part was rebuilt and has no frame.
    fn read_part_into(
        &self,
        top: &TopIndex,
        part: usize,
        mode: ReadMode,
        keep: impl FnOnce(&Arc<BlockIndex>, Option<&[u8]>),
    ) -> Result<Arc<BlockIndex>> {
        let key = CacheKey::index_part(self.meta().id, part as u32);
        if let Some(index) = self.env().rebuilt.get(key) {
            keep(&index, None);
            return Ok(index);
        }
        let place = top.place(part);
        let offset = self.meta().blocks_bytes + u64::from(place.frame);
        let len = place.frame_bytes as usize;
        let span = match mode {
            ReadMode::Scan => self.read(offset, len)?,
            ReadMode::Merge => self.read_for_merge(offset, len)?,
        };
        let payload = self.frame(&span, offset, BlockKind::Index)?;
        let index = BlockIndex::decode_part(&payload, &place);
        let index = index.map(Arc::new).map_err(|_| self.malformed_index(offset))?;
        keep(&index, Some(span.bytes()));
        Ok(index)
    }

    /// Returns the index of a run whose index has one part, from the cache or the device.
    #[inline]
    pub(crate) fn only_index(&self) -> Result<Arc<BlockIndex>> {
        let cached = self.env().cache.get(CacheKey::index(self.meta().id));
        match cached.and_then(|cached| self.only_index_of(cached)) {
            Some(index) => Ok(index),
            None => self.load_only_index(),
        }
    }

    #[cold]
    fn load_only_index(&self) -> Result<Arc<BlockIndex>> {
        let (env, key) = (self.env(), CacheKey::index(self.meta().id));
        let takes = (Part::Index, u64::from(self.meta().index_bytes) * INDEX_FACTOR);
        let cached = || env.cache.get(key);
        let loaded = env.loads.load(key, takes, &env.budget, cached, || {
            let keep = |index: &Arc<BlockIndex>, frame: Option<&[u8]>| match frame {
                Some(frame) => self.cache_index(key, index, frame),
                None => self.insert_index(key, index),
            };
            self.read_only_index(keep).map(Cached::Index)
        })?;
        // Another thread may have cached the index as a frame meanwhile.
        match self.only_index_of(loaded) {
            Some(index) => Ok(index),
            None => self.read_only_index(|_, _| ()),
        }
    }

    /// Reads the index of a run whose index has one part, bypassing the cache; returns the rebuilt
    /// index if a salvage made one. Also passes the index to `keep`, with its frame, or with `None`
    /// if the index was rebuilt.
    fn read_only_index(
        &self,
        keep: impl FnOnce(&Arc<BlockIndex>, Option<&[u8]>),
    ) -> Result<Arc<BlockIndex>> {
        if let Some(index) = self.env().rebuilt.get(CacheKey::index(self.meta().id)) {
            keep(&index, None);
            return Ok(index);
        }
        let offset = self.meta().blocks_bytes;
        let span = self.read(offset, self.meta().index_bytes as usize)?;
        let payload = self.frame(&span, offset, BlockKind::Index)?;
        let index = BlockIndex::decode(&payload, self.meta());
        let index = index.map(Arc::new).map_err(|_| self.malformed_index(offset))?;
        keep(&index, Some(span.bytes()));
        Ok(index)
    }

    fn malformed_index(&self, offset: u64) -> Error {
        self.corrupt(offset, BlockKind::Index.name(), "the block index is malformed")
    }
}
