//! Writes one run: blocks, block index, filter, metadata.

use frondb_block::{BlockBuilder, BlockOptions, Codec, DictionaryEncoder, Verify};
use frondb_core::sync::Arc;
use frondb_core::{Error, MessageKind, Result, RunId, SeqNo, TreeId};
use frondb_filter::FilterKind;

use crate::cache_warmer::CacheWarmer;
use crate::dictionaries::HeldDictionary;
use crate::env::{RunEnv, filter_hash};
use crate::filter_writer::FilterWriter;
use crate::format::{RunDictionary, RunMeta};
use crate::index::IndexBuilder;
use crate::output::Output;
use crate::residency::handover::Handover;

/// The encoding of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunOptions {
    /// Codec of the data blocks.
    pub codec: Codec,
    /// Key and value bytes after which a block is closed.
    pub block_bytes: usize,
    /// The tree's option for the size of base blocks, in bytes; the metadata of a base records it.
    pub tree_block_bytes: usize,
    /// Kind of filter.
    pub filter: FilterKind,
    /// Number of first bytes of a key that the filter hashes; `None` hashes the whole key.
    pub filter_prefix: Option<u16>,
    /// Number of keys after which a part of the filter ends, with the current block.
    pub filter_part_keys: usize,
    /// Number of blocks after which a part of the block index ends, together with a part of the
    /// filter. The index of a run with fewer blocks has one part.
    pub index_part_blocks: u32,
    /// How often these messages were written, including this time; `u8::MAX` for a base.
    pub writes: u8,
}

/// Writes one run. The caller adds messages in order: keys ascend, and SeqNos descend within a key.
///
/// A block is closed when it holds [`RunOptions::block_bytes`]. An entry of that size gets a block
/// of its own (rule 17), so that a reader of its neighbours does not read the large entry.
pub struct RunWriter {
    options: RunOptions,
    builder: BlockBuilder,
    index: IndexBuilder,
    /// `None` if the run has no filter.
    filter: Option<FilterWriter>,
    frame: Vec<u8>,
    /// `None` if no block is cached as it is written.
    warmer: Option<CacheWarmer>,
    meta: RunMeta,
    /// Last key of the previous block, once a block was closed.
    boundary: Option<Vec<u8>>,
    /// The dictionary of the blocks; `None` if there is none.
    dictionary: Option<Arc<HeldDictionary>>,
}

impl RunWriter {
    /// Creates a writer for run `id` of `tree`. `per_entry_seqs` stores the SeqNo of each message,
    /// which is necessary if readers must tell messages apart by SeqNo, for example for a live
    /// snapshot between them.
    #[must_use]
    pub fn new(id: RunId, tree: TreeId, options: RunOptions, per_entry_seqs: bool) -> Self {
        let filter = match options.filter {
            FilterKind::None => None,
            kind => Some(FilterWriter::new(kind, options.filter_part_keys)),
        };
        Self {
            builder: BlockBuilder::new(BlockOptions {
                codec: options.codec,
                per_entry_seqs,
                ..BlockOptions::default()
            }),
            index: IndexBuilder::new(options.index_part_blocks),
            filter,
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
                filter_parts: 0,
                index_parts: 1,
                top_index_bytes: 0,
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
                codec: (options.writes == u8::MAX).then_some(options.codec),
                dictionary: None,
                tree_block_bytes: match options.writes {
                    u8::MAX => u32::try_from(options.tree_block_bytes).unwrap_or(0),
                    _ => 0,
                },
            },
            boundary: None,
            dictionary: None,
            options,
        }
    }

    /// Caches two kinds of blocks as they are written: blocks that replace cached blocks in use,
    /// which the cursors of `handover` have read; and other blocks, as long as the cache has room
    /// and fewer blocks were cached in this way than `reads`. `reads` is the number of seeks, and
    /// of lookups that found a value, since the engine was opened. Also charges the memory of the
    /// filter to the budget. REQUIRES: no message was added yet.
    #[must_use]
    pub fn warming_cache(
        mut self,
        env: &Arc<RunEnv>,
        reads: u64,
        handover: &Arc<Handover>,
    ) -> Self {
        self.filter = self.filter.map(|filter| filter.charging(&env.budget));
        let handover = Arc::clone(handover);
        self.warmer = Some(CacheWarmer::new(Arc::clone(env), self.meta.id, reads, handover));
        self
    }

    /// Sets which blocks are decoded and compared as soon as they are written.
    #[must_use]
    pub fn verifying(mut self, verify: Verify) -> Self {
        self.builder.set_verify(verify);
        self
    }

    /// Packs the blocks with a dictionary, at zstd level `level`, and stores the dictionary with
    /// the run. REQUIRES: no message was added yet.
    #[must_use]
    pub fn with_dictionary(mut self, held: &Arc<HeldDictionary>, level: u8) -> Self {
        let encoder = DictionaryEncoder::new(held.dictionary(), level);
        self.builder = self.builder.with_dictionary(encoder);
        self.dictionary = Some(Arc::clone(held));
        self
    }

    /// Returns the number of bytes of memory for packing with a dictionary.
    #[must_use]
    pub fn encoder_bytes(&self) -> u64 {
        self.builder.encoder().map_or(0, DictionaryEncoder::memory_bytes) as u64
    }

    /// Returns the number of messages so far.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.meta.entries
    }

    /// Returns the number of key and value bytes so far.
    #[must_use]
    pub fn raw_bytes(&self) -> u64 {
        self.meta.raw_bytes
    }

    /// Returns the key of the last message; empty if there is none.
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
            self.begin_block(key)?;
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

    fn begin_block(&mut self, key: &[u8]) -> Result<()> {
        if self.meta.entries == 0 {
            self.meta.first_key = key.into();
        }
        // An index part ends only when another block follows, so that the index of a small run has
        // one part and no top index.
        if self.index.is_full() && self.filter.as_ref().is_none_or(FilterWriter::is_between_parts) {
            self.index.end_part(self.filter.as_ref().map_or(&[], FilterWriter::parts))?;
        }
        self.index.begin_block(self.boundary.as_deref(), key);
        Ok(())
    }

    fn end_block(&mut self, output: &mut Output) -> Result<()> {
        let boundary = self.boundary.get_or_insert_default();
        boundary.clear();
        boundary.extend_from_slice(self.builder.last_key());
        let entries = self.builder.len() as u64;
        self.frame.clear();
        let (warmer, mut priority) = (&mut self.warmer, None);
        let (_, block) = self.builder.finish_keeping(&mut self.frame, |bytes| {
            priority = warmer.as_mut().and_then(|warmer| warmer.priority(bytes as u64));
            priority.is_some()
        })?;
        if let (Some(warmer), Some(priority), Some(block)) = (warmer, priority, block) {
            warmer.block(self.index.count(), priority, block, &self.frame);
        }
        self.index.end_block(self.frame.len() as u64, entries);
        if let Some(filter) = &mut self.filter
            && !filter.end_block(self.index.is_overdue())?
        {
            self.filter = None;
        }
        output.write(&self.frame)
    }

    /// Writes index, filter and dictionary and returns the metadata; `None` if nothing was added.
    ///
    /// # Errors
    /// As [`add`](Self::add); `Invalid` if the block index is longer than 4 GiB.
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

        let filters = self.filter.take().map(FilterWriter::finish).transpose()?.unwrap_or_default();
        self.meta.filter_parts = filters.parts().len() as u32;
        self.meta.filter_bytes = filters.parts().iter().map(|(_, bytes)| bytes).sum();
        let index = self.index.finish(filters.parts())?;
        self.meta.index_parts = index.parts.len() as u32;
        self.meta.top_index_bytes = index_bytes(index.top.iter().map(Vec::len))?;
        self.meta.index_bytes = index_bytes(index.frames().map(<[u8]>::len))?;
        index.frames().chain(filters.frames()).try_for_each(|frame| output.write(frame))?;
        if let Some(warmer) = self.warmer {
            warmer.index(&index, &self.meta)?;
            for (part, frame) in (0..).zip(filters.frames()) {
                warmer.filter(part, frame)?;
            }
            warmer.keep();
        }
        if let Some(held) = &self.dictionary {
            let dictionary = held.dictionary();
            let frame = dictionary.frame();
            output.write(frame)?;
            self.meta.dictionary =
                Some(RunDictionary { hash: dictionary.hash(), bytes: frame.len() as u32 });
        }
        self.meta.extents = output.end_run();
        self.meta.extents.shrink_to_fit();
        Ok(Some(self.meta))
    }
}

/// Returns the sum of the lengths of frames of the block index.
fn index_bytes(frames: impl Iterator<Item = usize>) -> Result<u32> {
    let too_long = |_| Error::invalid("the block index of a run is longer than 4 GiB");
    u32::try_from(frames.sum::<usize>()).map_err(too_long)
}
