//! Point lookups that read no block: they end in the cache, or return the block that they need.
//!
//! ```text
//!   get_cached -- Ended
//!        |------- Missing -- the caller reads the block, together with blocks of other lookups
//!                               |-- get_from_read -- Ended
//!                                        |---------- Continues -- get_cached_from -- ...
//! ```
//!
//! A lookup returns and counts the same as [`Run::get`]. If a part of an index or a filter is
//! missing, the lookup reads that part itself: such parts are missing far less often than blocks,
//! except right after an open.

use frondb_block::Block;
use frondb_core::sync::Arc;
use frondb_core::{Result, SeqNo};

use crate::index::BlockIndex;
use crate::lookup::{AtBlock, Begun, Candidate, Visit};
use crate::read::ReadMode;
use crate::reader::Run;

/// The answer of [`Run::get_cached`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CachedGet {
    /// The result of [`Run::get`].
    Ended(bool),
    /// The lookup needs this block.
    Missing(MissingBlock),
}

/// A block that a lookup needs and that is not in the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MissingBlock {
    pub(crate) number: usize,
    /// Logical offset in the run.
    pub(crate) offset: u64,
    pub(crate) len: usize,
    /// Whether this is the first block that can hold the key.
    is_first: bool,
    /// Whether the next block begins with the last key of this block.
    continues: bool,
}

/// A block that was read for a lookup.
#[derive(Debug)]
pub struct ReadBlock {
    pub(crate) block: Block,
    /// Whether the lookup should insert the row that it finds into the row cache, because the block
    /// cache has no room for the block.
    pub(crate) keeps_row: bool,
}

/// The result of continuing a lookup in a block that was missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterBlock {
    /// The result of [`Run::get`].
    Ended(bool),
    /// Older versions may follow in the block with this number.
    Continues(usize),
}

impl Run {
    /// Works as [`get`](Self::get), but ends when it would have to read a block.
    ///
    /// # Errors
    /// `Corruption` or a device error of the filter or the block index; an error of `visit`.
    pub fn get_cached(
        &self,
        key: &[u8],
        snapshot: SeqNo,
        visit: &mut Visit<'_>,
    ) -> Result<CachedGet> {
        let Candidate { index, unprobed } = match self.begin_get(key, snapshot, visit)? {
            Begun::Ended(wants_more) => return Ok(CachedGet::Ended(wants_more)),
            Begun::Candidate(candidate) => candidate,
        };
        let number = index.find(key);
        let found = self.visit_cached(index, number, true, key, snapshot, visit)?;
        let is_first = matches!(found, CachedGet::Missing(MissingBlock { is_first: true, .. }));
        if is_first && !self.passes_unprobed(unprobed, key)? {
            self.presence.note(false);
            return Ok(CachedGet::Ended(true));
        }
        Ok(found)
    }

    /// Continues a lookup in the block that [`AfterBlock::Continues`] named.
    ///
    /// # Errors
    /// As [`get_cached`](Self::get_cached).
    pub fn get_cached_from(
        &self,
        number: usize,
        key: &[u8],
        snapshot: SeqNo,
        visit: &mut Visit<'_>,
    ) -> Result<CachedGet> {
        let index = self.index_of(number, ReadMode::Scan)?;
        if index.separator(number) != *key {
            return Ok(CachedGet::Ended(true));
        }
        self.visit_cached(index, number, false, key, snapshot, visit)
    }

    /// Continues a lookup in a block that was missing and has now been read.
    ///
    /// # Errors
    /// An error of `visit`.
    pub fn get_from_read(
        &self,
        missing: &MissingBlock,
        read: &ReadBlock,
        key: &[u8],
        snapshot: SeqNo,
        visit: &mut Visit<'_>,
    ) -> Result<AfterBlock> {
        let at = match missing.is_first {
            true if read.keeps_row => AtBlock::FirstWithoutRoom,
            true => AtBlock::First,
            false => AtBlock::Later,
        };
        let continues = || missing.continues;
        let ended = self.visit_block(&read.block, at, continues, key, snapshot, visit)?;
        Ok(ended.map_or(AfterBlock::Continues(missing.number + 1), AfterBlock::Ended))
    }

    /// Visits the versions of `key` in block `number` and the blocks after it, until one is not in
    /// the cache.
    fn visit_cached(
        &self,
        mut index: Arc<BlockIndex>,
        mut number: usize,
        mut is_first: bool,
        key: &[u8],
        snapshot: SeqNo,
        visit: &mut Visit<'_>,
    ) -> Result<CachedGet> {
        loop {
            let continues = || index.continues(number + 1);
            let Some(block) = self.cached_block(number) else {
                let ((offset, len), continues) = (index.extent(number), continues());
                let missing = MissingBlock { number, offset, len, is_first, continues };
                return Ok(CachedGet::Missing(missing));
            };
            let at = if is_first { AtBlock::First } else { AtBlock::Later };
            let ended = self.visit_block(&block, at, continues, key, snapshot, visit)?;
            if let Some(wants_more) = ended {
                return Ok(CachedGet::Ended(wants_more));
            }
            (number, is_first) = (number + 1, false);
            if index.separator(number) != *key {
                return Ok(CachedGet::Ended(true));
            }
            if number == index.blocks().end {
                index = self.index_of(number, ReadMode::Scan)?;
            }
        }
    }
}
