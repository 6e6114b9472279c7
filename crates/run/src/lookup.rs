//! Point lookups in a run.
//!
//! ```text
//!   key range -> row cache (1) -> part of the filter -> block index -> block -> row cache (2)
//!                                 if it is cached       from the cache or the device
//!
//!   (1) before the filter if most lookups of the run find their key; else after the filter, which
//!       excludes most keys at less cost
//!   (2) inserts the row if the cache has no room for its block
//! ```

use frondb_block::Block;
use frondb_cache::{CacheKey, Row};
use frondb_core::budget::Part;
use frondb_core::profile;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_core::{Error, MessageKind, Result, SeqNo};
use frondb_filter::FilterReader;

use crate::env::{Cached, filter_hash};
use crate::index::{BlockIndex, FilterPart};
use crate::read::ReadMode;
use crate::reader::Run;

/// Largest part of a filter that is read: the memory budget divided by this. Larger parts exist in
/// runs of earlier versions, whose filters have one part, and where one block has very many keys.
const FILTER_DIVISOR: u64 = 32;

/// Receives a message and returns whether the lookup needs older messages.
pub type Visit<'a> = dyn FnMut(SeqNo, MessageKind, &[u8]) -> Result<bool> + 'a;

/// A lookup whose key no cached part of the filter has excluded.
pub(crate) struct Candidate {
    /// The part of the block index in which the search for the key ends.
    pub(crate) index: Arc<BlockIndex>,
    /// The part of the filter that covers the key, if it is not in the cache and may have to be
    /// read and asked before a block is read.
    pub(crate) unprobed: Option<FilterPart>,
}

/// The state of a lookup at its first block.
pub(crate) enum Begun {
    /// The lookup has ended; the value is what [`Run::get`] returns.
    Ended(bool),
    /// The blocks of the run decide.
    Candidate(Candidate),
}

/// The position of a block in a lookup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AtBlock {
    /// The first block that can hold the key.
    First,
    /// The first block, if the cache had no room for it or has only its frame: the lookup inserts
    /// the row into the row cache.
    FirstWithoutRoom,
    /// A later block, with older versions of the key.
    Later,
}

impl Run {
    /// Calls `visit` with the versions of `key` that `snapshot` sees, newest first, until `visit`
    /// returns `false`. Returns `true` if `visit` never returned `false`.
    ///
    /// # Errors
    /// `Corruption` or a device error of the filter, the block index or a block that has to be
    /// read; an error of `visit`.
    pub fn get(&self, key: &[u8], snapshot: SeqNo, visit: &mut Visit<'_>) -> Result<bool> {
        match self.begin_get(key, snapshot, visit)? {
            Begun::Ended(wants_more) => Ok(wants_more),
            Begun::Candidate(candidate) => self.get_from_blocks(candidate, key, snapshot, visit),
        }
    }

    /// Begins [`get`](Self::get): checks the key range, the row cache and the filter.
    #[inline]
    pub(crate) fn begin_get(
        &self,
        key: &[u8],
        snapshot: SeqNo,
        visit: &mut Visit<'_>,
    ) -> Result<Begun> {
        let meta = self.meta();
        if *key < *meta.first_key || *key > *meta.last_key || meta.min_seq > snapshot {
            return Ok(Begun::Ended(true));
        }
        let is_likely = self.presence.is_likely();
        if is_likely && let Some(answer) = self.visit_row(key, snapshot, visit) {
            return answer.map(Begun::Ended);
        }
        let Some(candidate) = self.candidate(key)? else {
            self.presence.note(false);
            return Ok(Begun::Ended(true));
        };
        if !is_likely && let Some(answer) = self.visit_row(key, snapshot, visit) {
            return answer.map(Begun::Ended);
        }
        Ok(Begun::Candidate(candidate))
    }

    /// Continues [`get`](Self::get) in the blocks of the run.
    fn get_from_blocks(
        &self,
        mut candidate: Candidate,
        key: &[u8],
        snapshot: SeqNo,
        visit: &mut Visit<'_>,
    ) -> Result<bool> {
        let mut number = candidate.index.find(key);
        let Some((mut block, keeps_row)) = self.first_block(&candidate, number, key)? else {
            self.presence.note(false);
            return Ok(true);
        };
        let mut at = if keeps_row { AtBlock::FirstWithoutRoom } else { AtBlock::First };
        loop {
            let index = &candidate.index;
            let continues = || index.continues(number + 1);
            if let Some(wants_more) =
                self.visit_block(&block, at, continues, key, snapshot, visit)?
            {
                return Ok(wants_more);
            }
            number += 1;
            // Older versions may continue in blocks that begin with the key.
            if index.separator(number) != *key {
                return Ok(true);
            }
            if number == index.blocks().end {
                candidate.index = self.index_of(number, ReadMode::Scan)?;
            }
            block = self.block(&candidate.index, number)?;
            at = AtBlock::Later;
        }
    }

    /// Calls `visit` with the versions of `key` in a block, and returns the result of
    /// [`get`](Self::get). Returns `None` if older versions may follow in the next block: the key
    /// is the block's last one, and `continues` returns true.
    #[inline]
    pub(crate) fn visit_block(
        &self,
        block: &Block,
        at: AtBlock,
        continues: impl FnOnce() -> bool,
        key: &[u8],
        snapshot: SeqNo,
        visit: &mut Visit<'_>,
    ) -> Result<Option<bool>> {
        let meta = self.meta();
        let versions = block.find(key);
        if at != AtBlock::Later {
            self.presence.note(!versions.is_empty());
        }
        let continues = versions.end == block.len() && continues();
        let keeps_row = at == AtBlock::FirstWithoutRoom && versions.len() == 1 && !continues;
        let mut gathered = Vec::new();
        for i in versions {
            let (kind, value) = (block.kind(i), block.value(i, &mut gathered));
            if keeps_row {
                // A message without a SeqNo of its own has the run's SeqNo. That depends on the
                // handle (`Run::attached`), so the row cache does not store it.
                let seq = block.seq(i, SeqNo::MIN);
                self.env().rows.insert(&Row { run: meta.id, key, seq, kind, value });
            }
            let seq = SeqNo(block.seq(i, meta.max_seq).get().wrapping_add(meta.seq_shift));
            if seq <= snapshot && !visit(seq, kind, value)? {
                return Ok(Some(false));
            }
        }
        Ok((!continues).then_some(true))
    }

    /// Calls `visit` with the version of `key` in the row cache if `snapshot` sees it, and returns
    /// what [`get`](Self::get) returns; `None` if the row cache does not have the key.
    #[inline]
    pub(crate) fn visit_row(
        &self,
        key: &[u8],
        snapshot: SeqNo,
        visit: &mut Visit<'_>,
    ) -> Option<Result<bool>> {
        let (meta, rows) = (self.meta(), &self.env().rows);
        if rows.is_empty() {
            return None;
        }
        let answer = rows.get(meta.id, key, |row| {
            let seq = match meta.per_entry_seqs {
                true => SeqNo(row.seq.get().wrapping_add(meta.seq_shift)),
                false => meta.max_seq,
            };
            if seq > snapshot { Ok(true) } else { visit(seq, row.kind, row.value) }
        });
        if answer.is_some() {
            self.presence.note(true);
        }
        answer
    }

    /// Asks the part of the filter that covers `key`, if that part is in the cache. `None` if the
    /// part excludes the key.
    ///
    /// If almost all lookups of this run have found their key, as in the base of a leaf, the filter
    /// is not asked.
    fn candidate(&self, key: &[u8]) -> Result<Option<Candidate>> {
        let asks = !self.presence.is_almost_certain();
        let whole = (asks && self.meta().filter_parts == 1).then_some(0);
        // A filter with one part needs no index.
        let mut answer = whole.map_or(Ok(None), |part| self.probe_cached(part, key))?;
        if answer == Some(false) {
            return Ok(None);
        }
        let index = self.index_for(key, ReadMode::Scan)?;
        let part = if asks { self.filter_part_for(&index, key) } else { None };
        if let Some(part) = part.filter(|_| whole.is_none()) {
            answer = self.probe_cached(part.part, key)?;
        }
        let unprobed = part.filter(|_| answer.is_none());
        Ok((answer != Some(false)).then_some(Candidate { index, unprobed }))
    }

    /// Returns the first block that can hold `key`, and whether to insert the row found in it into
    /// the row cache; `None` if the filter excludes the key.
    fn first_block(
        &self,
        candidate: &Candidate,
        number: usize,
        key: &[u8],
    ) -> Result<Option<(Block, bool)>> {
        if let Some(cached) = self.cached_for_lookup(number) {
            return Ok(Some(cached));
        }
        if !self.passes_unprobed(candidate.unprobed, key)? {
            return Ok(None);
        }
        let (block, has_room) = self.read_block(&candidate.index, number)?;
        Ok(Some((block, !has_room)))
    }

    /// Returns whether a filter part that is not in the cache admits `key`, whose block is not in
    /// the cache either.
    ///
    /// Reads the part only if this probably saves the read of a block. Returns `true` without
    /// reading the part if most lookups of this run have found their key.
    pub(crate) fn passes_unprobed(&self, part: Option<FilterPart>, key: &[u8]) -> Result<bool> {
        match part {
            Some(part) if !self.presence.is_likely() => Ok(self.passes(&*self.filter(part)?, key)),
            _ => Ok(true),
        }
    }

    /// Returns whether a part of the filter admits `key`; `None` if the part is not in the cache.
    #[inline]
    pub(crate) fn probe_cached(&self, part: u32, key: &[u8]) -> Result<Option<bool>> {
        match self.env().cache.get(CacheKey::filter(self.meta().id, part)) {
            Some(cached) => Ok(Some(self.passes(&*filter_of(cached)?, key))),
            None => Ok(None),
        }
    }

    /// Returns the part of the filter that contains `key` if any part does; `None` if there is no
    /// filter, or if the part is so large that reading it would empty the cache for a single
    /// lookup.
    pub(crate) fn filter_part_for(&self, index: &BlockIndex, key: &[u8]) -> Option<FilterPart> {
        let most = self.env().budget.total() / FILTER_DIVISOR;
        index.filter_part_for(key).filter(|part| u64::from(part.bytes) <= most)
    }

    /// Returns whether a part of the filter admits `key`; counts the answer.
    pub(crate) fn passes(&self, filter: &FilterReader, key: &[u8]) -> bool {
        let passes = filter.may_contain(filter_hash(key, self.filter_prefix));
        let stats = &self.env().stats;
        let counter = if passes { &stats.filter_positives } else { &stats.filter_negatives };
        counter.fetch_add(1, Ordering::Relaxed);
        profile::count(|profile| {
            profile.filter_positives += u64::from(passes);
            profile.filter_negatives += u64::from(!passes);
        });
        passes
    }

    /// Reads a part of the filter that is not in the cache, and inserts it into the cache.
    pub(crate) fn filter(&self, part: FilterPart) -> Result<Arc<FilterReader>> {
        // The bytes on disk and the decoded bytes.
        let takes = (Part::Filter, u64::from(part.bytes) * 2);
        let key = CacheKey::filter(self.meta().id, part.part);
        filter_of(self.load(key, takes, &|| {
            let filter = self.read_filter(part)?;
            let bytes = filter.memory_bytes() as u64;
            Ok((Cached::Filter(Arc::new(filter)), bytes))
        })?)
    }
}

fn filter_of(cached: Cached) -> Result<Arc<FilterReader>> {
    match cached {
        Cached::Filter(filter) => Ok(filter),
        _ => Err(Error::internal("the cache entry of a filter is not a filter")),
    }
}
