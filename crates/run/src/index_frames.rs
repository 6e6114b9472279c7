//! Parts of block indexes in the cache as they are on disk, while the decoded parts do not fit.
//!
//! A decoded part takes half as much memory again as its frame. Where the parts of all indexes take
//! more than the cache, each missing one costs a read of the device, and a lookup that finds a frame
//! decodes it for less ([decision 0067]).
//!
//! [decision 0067]: ../../../docs/decisions/0067-frames-of-index-parts.md

use frondb_block::{BlockKind, decode_frame};
use frondb_cache::{CacheKey, Priority};
use frondb_core::codec::Truncated;
use frondb_core::mem::Bytes;
use frondb_core::sync::Arc;

use crate::env::Cached;
use crate::index::{BlockIndex, TopIndex};
use crate::reader::{NO_PLACE, Run};

/// Of the hits of frames, one in so many puts the decoded part in the frame's place: once the parts
/// fit, the frames go within a few hundred hits of each.
const FRAME_HITS: u64 = 256;

impl Run {
    /// Inserts an index, or a part of one, that was read from the device into the cache: as its frame
    /// if the parts do not fit. There is no frame if a salvage has rebuilt it.
    pub(crate) fn cache_index(&self, key: CacheKey, index: &Arc<BlockIndex>, frame: &[u8]) {
        let (env, bytes) = (self.env(), index.memory_bytes() as u64);
        env.index_pressure.note_part();
        env.rows.note_index_read(bytes);
        if env.index_pressure.is_high() && !self.has_much_room() && !frame.is_empty() {
            let frame = Bytes::copy_from(frame);
            let bytes = frame.footprint() as u64;
            env.cache.insert(key, Cached::IndexFrame(frame), bytes, Priority::Meta);
        } else {
            env.cache.insert(key, Cached::Index(Arc::clone(index)), bytes, Priority::Meta);
        }
    }

    /// A part of the index, if the cache has it, decoded or not.
    #[inline]
    pub(crate) fn cached_index_part(&self, top: &TopIndex, part: usize) -> Option<Arc<BlockIndex>> {
        let key = CacheKey::index_part(self.meta().id, part as u32);
        match self.env().cache.get(key)? {
            Cached::Index(index) => Some(index),
            Cached::IndexFrame(frame) => {
                let decode = |payload: &[u8]| BlockIndex::decode_part(payload, &top.place(part));
                self.decode_index_of(key, &frame, &decode)
            }
            _ => None,
        }
    }

    /// The index of a run whose index has one part, if the cache has it, decoded or not.
    #[inline]
    pub(crate) fn cached_only_index(&self) -> Option<Arc<BlockIndex>> {
        let key = CacheKey::index(self.meta().id);
        match self.env().cache.get(key)? {
            Cached::Index(index) => Some(index),
            Cached::IndexFrame(frame) => {
                let decode = |payload: &[u8]| BlockIndex::decode(payload, self.meta());
                self.decode_index_of(key, &frame, &decode)
            }
            _ => None,
        }
    }

    /// The part of a frame that was found in the cache; one of many takes its place. `None` if the
    /// frame cannot be decoded: it was intact when it was read, so the device still has the part.
    #[cold]
    fn decode_index_of(
        &self,
        key: CacheKey,
        frame: &Bytes,
        decode: &dyn Fn(&[u8]) -> Result<BlockIndex, Truncated>,
    ) -> Option<Arc<BlockIndex>> {
        let env = self.env();
        let payload = decode_frame(frame, BlockKind::Index, &NO_PLACE).ok();
        let index = payload.and_then(|payload| decode(&payload).map(Arc::new).ok());
        let Some(index) = index else {
            drop(env.cache.remove(key));
            return None;
        };
        let hits = env.index_pressure.note_frame_hit();
        let bytes = index.memory_bytes() as u64;
        if hits.is_multiple_of(FRAME_HITS) || self.has_much_room() {
            env.cache.insert(key, Cached::Index(Arc::clone(&index)), bytes, Priority::Meta);
        }
        Some(index)
    }
}
