//! Writes one run: blocks, block index, filter, metadata.

use frondb_block::{
    BlockBuilder, BlockKind, BlockOptions, Codec, FRAME_HEADER_BYTES, encode_frame, seal_frame,
};
use frondb_core::budget::{Budget, Part, Reservation};
use frondb_core::sync::Arc;
use frondb_core::{MessageKind, Result, RunId, SeqNo, TreeId};
use frondb_filter::{FilterBuilder, FilterKind};

use crate::cache_warmer::CacheWarmer;
use crate::env::{RunEnv, filter_hash};
use crate::format::RunMeta;
use crate::index::IndexBuilder;
use crate::output::Output;

/// The encoding of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunOptions {
    /// Codec of the data blocks.
    pub codec: Codec,
    /// Key and value bytes after which a block is closed.
    pub block_bytes: usize,
    /// Kind of filter.
    pub filter: FilterKind,
    /// How many bytes of a key the filter hashes; `None` hashes all of it.
    pub filter_prefix: Option<u16>,
    /// How often these messages were written, including this time.
    pub writes: u8,
}

/// Bytes by which a run's hashes grow before the charge on the budget is updated.
const FILTER_CHARGE_BYTES: u64 = 64 << 10;
/// Maximum memory for the key hashes of a run's filter: the memory budget divided by this. A run
/// with more keys has no filter.
const HASHES_DIVISOR: u64 = 8;
/// Maximum additional memory for building the filter from the hashes: the memory budget divided by
/// this.
const FILTER_WORK_DIVISOR: u64 = 128;

/// Memory of a large run while its filter is built: the hashes, the filter, and scratch space.
fn filter_build_bytes(filter: &FilterBuilder, budget: &Budget) -> u64 {
    filter.memory_bytes() as u64 * 3 / 2 + budget.total() / FILTER_WORK_DIVISOR
}

/// Writes one run. The caller adds messages in order: keys ascend, and SeqNos descend within a key.
///
/// A block is closed when it holds [`RunOptions::block_bytes`]. An entry of that size gets a block
/// of its own (rule 17), so that reading its neighbours does not read the large entry.
pub struct RunWriter {
    options: RunOptions,
    builder: BlockBuilder,
    index: IndexBuilder,
    filter: Option<FilterBuilder>,
    /// Memory of a large run's hashes, charged from time to time.
    filter_memory: Option<Reservation>,
    frame: Vec<u8>,
    /// `None` if no block is cached as it is written.
    warmer: Option<CacheWarmer>,
    meta: RunMeta,
    /// Last key of the previous block, once a block was closed.
    boundary: Option<Vec<u8>>,
}

impl RunWriter {
    /// A writer for run `id` of `tree`. `per_entry_seqs` stores the SeqNo of each message, which is
    /// necessary if a live snapshot lies below the largest SeqNo of the run.
    #[must_use]
    pub fn new(id: RunId, tree: TreeId, options: RunOptions, per_entry_seqs: bool) -> Self {
        let filter = match options.filter {
            FilterKind::None => None,
            kind => Some(FilterBuilder::new(kind)),
        };
        Self {
            builder: BlockBuilder::new(BlockOptions {
                codec: options.codec,
                per_entry_seqs,
                ..BlockOptions::default()
            }),
            index: IndexBuilder::default(),
            filter,
            filter_memory: None,
            frame: Vec::new(),
            warmer: None,
            meta: RunMeta {
                id,
                tree,
                extents: Vec::new(),
                blocks_bytes: 0,
                blocks: 0,
                index_bytes: 0,
                filter_bytes: 0,
                entries: 0,
                deletes: 0,
                updates: 0,
                refs: 0,
                raw_bytes: 0,
                min_seq: SeqNo::MAX,
                max_seq: SeqNo::MIN,
                per_entry_seqs,
                unique_keys: true,
                seq_shift: 0,
                writes: options.writes,
                first_key: Box::default(),
                last_key: Box::default(),
            },
            boundary: None,
            options,
        }
    }

    /// Caches the blocks as they are written, while the cache has room and fewer blocks were cached
    /// in this way than reads were made: `reads` is the number of lookups that found something
    /// since the engine was opened. Call it before the first message.
    #[must_use]
    pub fn warming_cache(mut self, env: &Arc<RunEnv>, reads: u64) -> Self {
        let work_bytes = (env.budget.total() / FILTER_WORK_DIVISOR) as usize;
        self.filter = self.filter.map(|filter| filter.with_work_bytes(work_bytes));
        self.warmer = Some(CacheWarmer::new(Arc::clone(env), self.meta.id, reads));
        self
    }

    /// Number of messages so far.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.meta.entries
    }

    /// Key and value bytes so far.
    #[must_use]
    pub fn raw_bytes(&self) -> u64 {
        self.meta.raw_bytes
    }

    /// Key of the last message; empty if there is none.
    #[must_use]
    pub fn last_key(&self) -> &[u8] {
        if self.builder.is_empty() {
            self.boundary.as_deref().unwrap_or_default()
        } else {
            self.builder.last_key()
        }
    }

    /// Appends a message.
    ///
    /// # Errors
    /// `NoSpace` or an error of the device. After an error the writer can only be dropped.
    #[inline]
    pub fn add(
        &mut self,
        output: &mut Output,
        key: &[u8],
        seq: SeqNo,
        kind: MessageKind,
        value: &[u8],
    ) -> Result<()> {
        if key.len() + value.len() >= self.options.block_bytes && !self.builder.is_empty() {
            self.end_block(output)?;
        }
        if self.meta.per_entry_seqs && self.meta.entries > 0 && self.last_key() == key {
            self.meta.unique_keys = false;
        }
        if self.builder.is_empty() {
            self.begin_block(key);
        }
        self.builder.add(key, seq, kind, value);
        self.count(key, seq, kind, value);
        if self.builder.raw_bytes() >= self.options.block_bytes {
            self.end_block(output)?;
        }
        Ok(())
    }

    #[inline]
    fn count(&mut self, key: &[u8], seq: SeqNo, kind: MessageKind, value: &[u8]) {
        let meta = &mut self.meta;
        meta.entries += 1;
        meta.raw_bytes += (key.len() + value.len()) as u64;
        meta.min_seq = meta.min_seq.min(seq);
        meta.max_seq = meta.max_seq.max(seq);
        match kind {
            MessageKind::Put => {}
            MessageKind::Delete => meta.deletes += 1,
            MessageKind::Update => meta.updates += 1,
            MessageKind::PutRef => meta.refs += 1,
        }
        if let Some(filter) = &mut self.filter {
            filter.push(filter_hash(key, self.options.filter_prefix));
        }
    }

    fn begin_block(&mut self, key: &[u8]) {
        if self.meta.entries == 0 {
            self.meta.first_key = key.into();
        }
        self.index.begin_block(self.boundary.as_deref(), key);
    }

    fn end_block(&mut self, output: &mut Output) -> Result<()> {
        let boundary = self.boundary.get_or_insert_default();
        boundary.clear();
        boundary.extend_from_slice(self.builder.last_key());
        let entries = self.builder.len() as u64;
        self.frame.clear();
        self.builder.finish(&mut self.frame)?;
        if let Some(warmer) = &self.warmer {
            warmer.block(self.index.count(), &self.frame)?;
        }
        self.index.end_block(self.frame.len() as u64, entries);
        self.charge_filter();
        output.write(&self.frame)
    }

    /// Charges the filter's memory: millions of keys have tens of megabytes of hashes until their
    /// filter is built. The run gets no filter if the hashes would take a large part of the memory:
    /// no cache could keep such filters, and reading one costs far more than the block that it
    /// saves.
    fn charge_filter(&mut self) {
        let (Some(filter), Some(warmer)) = (&self.filter, &self.warmer) else { return };
        let bytes = filter.memory_bytes() as u64;
        if bytes > warmer.budget().total() / HASHES_DIVISOR {
            (self.filter, self.filter_memory) = (None, None);
            return;
        }
        let charged = self.filter_memory.as_ref().map_or(0, Reservation::bytes);
        if bytes >= charged + FILTER_CHARGE_BYTES {
            let memory =
                self.filter_memory.get_or_insert_with(|| warmer.budget().reserve(Part::Work, 0));
            memory.resize(bytes);
        }
    }

    /// Writes index and filter and returns the metadata; `None` if nothing was added.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn finish(mut self, output: &mut Output) -> Result<Option<RunMeta>> {
        if self.meta.entries == 0 {
            return Ok(None);
        }
        if !self.builder.is_empty() {
            self.end_block(output)?;
        }
        self.meta.last_key = self.boundary.take().unwrap_or_default().into();
        self.meta.blocks = self.index.count();
        self.meta.blocks_bytes = self.index.blocks_bytes();

        self.frame.clear();
        encode_frame(BlockKind::Index, Codec::Zstd(1), &self.index.finish(), &mut self.frame)?;
        self.meta.index_bytes = self.frame.len() as u32;
        output.write(&self.frame)?;
        if let Some(warmer) = &self.warmer {
            warmer.index(&self.frame, self.meta.blocks, self.meta.blocks_bytes)?;
        }
        if let Some(filter) = self.filter.take() {
            if let (Some(memory), Some(warmer)) = (&mut self.filter_memory, &self.warmer) {
                memory.resize(filter_build_bytes(&filter, warmer.budget()));
            }
            let mut frame = filter.finish_behind(FRAME_HEADER_BYTES);
            seal_frame(BlockKind::Filter, &mut frame)?;
            self.meta.filter_bytes = frame.len() as u32;
            output.write(&frame)?;
            if let Some(warmer) = &self.warmer {
                warmer.filter(&frame)?;
            }
        }
        self.meta.extents = output.end_run();
        Ok(Some(self.meta))
    }
}
