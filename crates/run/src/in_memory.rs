//! Point lookups that never read the device: they end in memory, or return that they need the
//! device. A caller that must not wait tries such a lookup first.
//!
//! ```text
//!   row cache -> part of the filter -> part of the block index -> block
//!                if it is in memory    '--- not in memory: the lookup needs the device
//! ```
//!
//! A lookup takes no lock for longer than a search in the cache, and never waits for a thread that
//! reads. Any thread may call it.

use frondb_cache::CacheKey;
use frondb_core::sync::Arc;
use frondb_core::{Result, SeqNo};

use crate::env::Cached;
use crate::index::{BlockIndex, TopIndex};
use crate::lookup::{AtBlock, Visit};
use crate::reader::Run;

impl Run {
    /// Works as [`get`](Self::get), but returns `None` if the lookup would have to read the device.
    /// Then it may have called `visit` for newer versions.
    ///
    /// # Errors
    /// An error of `visit`.
    pub fn get_in_memory(
        &self,
        key: &[u8],
        snapshot: SeqNo,
        visit: &mut Visit<'_>,
    ) -> Result<Option<bool>> {
        let meta = self.meta();
        if *key < *meta.first_key || *key > *meta.last_key || meta.min_seq > snapshot {
            return Ok(Some(true));
        }
        if let Some(answer) = self.visit_row(key, snapshot, visit) {
            return answer.map(Some);
        }
        let Some(mut index) = self.index_in_memory(|top| top.find(key)) else { return Ok(None) };
        if self.is_excluded(&index, key)? {
            self.presence.note(false);
            return Ok(Some(true));
        }
        let (mut number, mut is_first) = (index.find(key), true);
        loop {
            let Some((block, keeps_row)) = self.block_in_memory(number) else { return Ok(None) };
            let at = match is_first {
                true if keeps_row => AtBlock::FirstWithoutRoom,
                true => AtBlock::First,
                false => AtBlock::Later,
            };
            let continues = || index.continues(number + 1);
            let ended = self.visit_block(&block, at, continues, key, snapshot, visit)?;
            if ended.is_some() {
                return Ok(ended);
            }
            (number, is_first) = (number + 1, false);
            if index.separator(number) != *key {
                return Ok(Some(true));
            }
            if number == index.blocks().end {
                let Some(next) = self.index_in_memory(|top| top.part_of(number)) else {
                    return Ok(None);
                };
                index = next;
            }
        }
    }

    /// Returns whether a part of the filter that is in memory excludes `key`. The filter is not
    /// asked if almost all lookups of this run have found their key.
    fn is_excluded(&self, index: &BlockIndex, key: &[u8]) -> Result<bool> {
        if self.presence.is_almost_certain() {
            return Ok(false);
        }
        match self.filter_part_for(index, key) {
            Some(part) => Ok(self.probe_cached(part.part, key)? == Some(false)),
            None => Ok(false),
        }
    }

    /// Returns the part of the block index that `choose` names; `None` if it is not in memory. A
    /// run whose index has one part does not call `choose`.
    fn index_in_memory(&self, choose: impl FnOnce(&TopIndex) -> usize) -> Option<Arc<BlockIndex>> {
        let (id, cache) = (self.meta().id, &self.env().cache);
        if !self.in_parts() {
            return self.only_index_of(cache.get(CacheKey::index(id))?);
        }
        let top = match self.top_index.get() {
            Some((top, _)) => Arc::clone(top),
            None => match cache.get(CacheKey::index(id))? {
                Cached::TopIndex(top) => top,
                _ => return None,
            },
        };
        let part = choose(&top);
        self.index_part_of(cache.get(CacheKey::index_part(id, part as u32))?, &top, part)
    }
}
