//! Parts of block indexes cached as they are on disk, while the decoded parts do not fit.
//!
//! A decoded part takes 1.5 times the memory of its frame. If the parts of all indexes exceed the
//! cache, each missing part costs a read of the device, which takes longer than decoding a cached
//! frame. With frames, and 953 times as much data as memory, a point read takes 1.08 reads of the
//! device instead of 1.55.

use frondb_block::{BlockKind, decode_frame};
use frondb_cache::{CacheKey, Priority};
use frondb_core::codec::Truncated;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;

use crate::env::Cached;
use crate::index::{BlockIndex, TopIndex};
use crate::reader::{NO_PLACE, Run};
use crate::residency::frames::{self, Frame};

impl Run {
    /// Inserts an index, or a part of an index, into the cache after a read from the device: as its
    /// frame if the parts of all indexes do not fit, else decoded.
    pub(crate) fn cache_index(&self, key: CacheKey, index: &Arc<BlockIndex>, frame: &[u8]) {
        let env = self.env();
        env.index_pressure.note_part();
        if env.wants_index_frames() {
            let (frame, bytes) = frames::copy_of(frame);
            env.rows.note_index_read(bytes);
            env.cache.insert(key, Cached::IndexFrame(frame), bytes, Priority::Meta);
        } else {
            env.rows.note_index_read(index.memory_bytes() as u64);
            self.insert_index(key, index);
        }
    }

    /// Inserts a decoded index, or a part of one, into the cache.
    pub(crate) fn insert_index(&self, key: CacheKey, index: &Arc<BlockIndex>) {
        let bytes = index.memory_bytes() as u64;
        self.env().cache.insert(key, Cached::Index(Arc::clone(index)), bytes, Priority::Meta);
    }

    /// Returns the part of the index that a cached object holds, decoded if the object is a frame.
    /// `None` if the frame cannot be decoded: it was intact when it was read, so the device still
    /// has the part.
    #[inline]
    pub(crate) fn index_part_of(
        &self,
        cached: Cached,
        top: &TopIndex,
        part: usize,
    ) -> Option<Arc<BlockIndex>> {
        match cached {
            Cached::Index(index) => Some(index),
            Cached::IndexFrame(frame) => {
                let key = CacheKey::index_part(self.meta().id, part as u32);
                let decode = |payload: &[u8]| BlockIndex::decode_part(payload, &top.place(part));
                self.decode_index_of(key, &frame, &decode)
            }
            _ => None,
        }
    }

    /// Works as [`index_part_of`](Self::index_part_of), for a run whose index has one part.
    #[inline]
    pub(crate) fn only_index_of(&self, cached: Cached) -> Option<Arc<BlockIndex>> {
        match cached {
            Cached::Index(index) => Some(index),
            Cached::IndexFrame(frame) => {
                let key = CacheKey::index(self.meta().id);
                let decode = |payload: &[u8]| BlockIndex::decode(payload, self.meta());
                self.decode_index_of(key, &frame, &decode)
            }
            _ => None,
        }
    }

    #[cold]
    fn decode_index_of(
        &self,
        key: CacheKey,
        frame: &Frame,
        decode: &dyn Fn(&[u8]) -> Result<BlockIndex, Truncated>,
    ) -> Option<Arc<BlockIndex>> {
        let env = self.env();
        let payload = decode_frame(frame, BlockKind::Index, &NO_PLACE).ok();
        let index = payload.and_then(|payload| decode(&payload).map(Arc::new).ok());
        let Some(index) = index else {
            drop(env.cache.remove(key));
            return None;
        };
        let hits = env.stats.index_frame_hits.fetch_add(1, Ordering::Relaxed);
        if env.replaces_frame(&env.index_frames, hits, env.index_pressure.is_high()) {
            self.insert_index(key, &index);
        }
        Some(index)
    }
}
