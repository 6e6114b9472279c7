//! Reads a whole run and checks the checksum of every block, the order of the messages, and whether
//! the index, the filter and the metadata agree with the messages.

use frondb_block::BlockKind;
use frondb_core::{Chunk, Error, MessageKind, Result, SeqNo};
use frondb_filter::FilterReader;

use crate::env::filter_hash;
use crate::format::RunMeta;
use crate::index::{BlockIndex, FilterPart, Separator, TopIndex};
use crate::reader::Run;

/// Counts of a pass over blocks, to compare with the metadata.
#[derive(Default)]
pub(crate) struct Tally {
    entries: u64,
    deletes: u64,
    updates: u64,
    refs: u64,
    raw_bytes: u64,
    first_key: Vec<u8>,
    /// Key and SeqNo of the last message.
    pub(crate) last: Option<(Vec<u8>, SeqNo)>,
}

impl Tally {
    /// Counts the messages of a block. Returns `false` if they are out of order.
    pub(crate) fn add(&mut self, chunk: &Chunk) -> bool {
        let mut ordered = true;
        for i in 0..chunk.len() {
            let (key, seq) = (chunk.key(i), chunk.seqs[i]);
            ordered &= match (i, &self.last) {
                (0, None) => true,
                (0, Some((last, last_seq))) => (&**last, seq) < (key, *last_seq),
                _ => (chunk.key(i - 1), seq) < (key, chunk.seqs[i - 1]),
            };
            self.entries += 1;
            self.raw_bytes += (key.len() + chunk.value(i).len()) as u64;
            match chunk.kinds[i] {
                MessageKind::Put => {}
                MessageKind::Delete => self.deletes += 1,
                MessageKind::Update => self.updates += 1,
                MessageKind::PutRef => self.refs += 1,
            }
        }
        if self.last.is_none() && !chunk.is_empty() {
            self.first_key = chunk.key(0).to_vec();
        }
        if let Some(end) = chunk.len().checked_sub(1) {
            self.last = Some((chunk.key(end).to_vec(), chunk.seqs[end]));
        }
        ordered
    }

    /// Returns the numbers of messages of each kind, and of bytes, in the order of the metadata.
    fn counts(&self) -> [u64; 5] {
        [self.entries, self.deletes, self.updates, self.refs, self.raw_bytes]
    }

    /// Returns whether the counted messages are all messages of the metadata.
    pub(crate) fn is_all_of(&self, meta: &RunMeta) -> bool {
        self.counts() == counts_of(meta)
            && *self.first_key == *meta.first_key
            && self.has_last_of(meta)
    }

    /// Returns whether the last key equals the last key of the metadata.
    pub(crate) fn has_last_of(&self, meta: &RunMeta) -> bool {
        self.last.as_ref().is_some_and(|(last, _)| **last == *meta.last_key)
    }

    /// Returns whether the counted messages may be some, but not all, messages of the metadata.
    pub(crate) fn is_part_of(&self, meta: &RunMeta) -> bool {
        self.entries < meta.entries
            && self.counts().iter().zip(counts_of(meta)).all(|(found, all)| *found <= all)
    }
}

/// Returns the counts in the metadata, in the order of [`Tally::counts`].
fn counts_of(meta: &RunMeta) -> [u64; 5] {
    [meta.entries, meta.deletes, meta.updates, meta.refs, meta.raw_bytes]
}

/// A part of a run that cannot be read: its keys from `lo` on, up to and including `hi`.
#[derive(Clone, Debug)]
pub struct DamagedPart {
    /// First key that the part may contain.
    pub lo: Vec<u8>,
    /// Last key that the part may contain; `None` if there is no upper bound.
    pub hi: Option<Vec<u8>>,
    /// The fault, with file and offset.
    pub error: Error,
}

impl Run {
    /// Reads every block, bypassing the cache, and returns the damaged parts. Passes every
    /// reference to a large value in the other parts to `visit`, with its key. Filters are not
    /// checked. A block index, or a part of it, that cannot be read is rebuilt if possible; the
    /// rebuilt one serves all later reads of the run.
    pub fn damaged_parts(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Vec<DamagedPart> {
        let meta = self.meta();
        let whole = |error| {
            vec![DamagedPart {
                lo: meta.first_key.to_vec(),
                hi: Some(meta.last_key.to_vec()),
                error,
            }]
        };
        let top = match self.top_index_or_rebuilt() {
            Ok(top) => top,
            Err(error) => return whole(error),
        };
        let (mut parts, mut found, mut chunk) = (Vec::new(), Tally::default(), Chunk::new());
        for part in 0..top.as_ref().map_or(1, TopIndex::len) {
            let index = match (self.index_part_or_rebuilt(top.as_ref(), part), &top) {
                (Ok(index), _) => index,
                (Err(error), None) => return whole(error),
                (Err(error), Some(top)) => {
                    let place = top.place(part);
                    let lo = place.separator.to_vec().max(meta.first_key.to_vec());
                    let hi = place.next.map_or(&*meta.last_key, |(separator, _)| separator);
                    parts.push(DamagedPart { lo, hi: Some(hi.to_vec()), error });
                    continue;
                }
            };
            for number in index.blocks() {
                let next = index.separator_after(number).map(Separator::to_vec);
                let hi = next.or_else(|| Some(meta.last_key.to_vec()));
                let lo = index.separator(number).to_vec().max(meta.first_key.to_vec());
                let is_read = self.sound_block(&index, number, &mut chunk).and_then(|()| {
                    let offset = index.extent(number).0;
                    let wrong = || self.corrupt_block(offset, "the messages are out of order");
                    if found.add(&chunk) { Ok(()) } else { Err(wrong()) }
                });
                if let Err(error) = is_read {
                    parts.push(DamagedPart { lo, hi, error });
                    continue;
                }
                visit_refs(&chunk, visit);
            }
        }
        if parts.is_empty() && found.entries != meta.entries {
            return whole(self.corrupt(
                0,
                "run",
                "the messages do not match the counts in the manifest",
            ));
        }
        parts
    }

    /// Fills `chunk` from a block. Fails unless the block agrees with the index and the metadata.
    fn sound_block(&self, index: &BlockIndex, number: usize, chunk: &mut Chunk) -> Result<()> {
        let meta = self.meta();
        let (offset, len) = index.extent(number);
        let block = self.decode(self.read_for_merge(offset, len)?.bytes(), offset)?;
        self.fill(&block, 0..block.len(), chunk);
        let above = |key: &[u8]| index.separator_after(number).is_none_or(|after| after >= *key);
        let is_sound = index.rank(number + 1) - index.rank(number) == block.len() as u64
            && index.separator(number) <= *chunk.key(0)
            && above(chunk.key(chunk.len() - 1))
            && chunk.seqs.iter().all(|s| (meta.min_seq..=meta.max_seq).contains(s));
        if is_sound {
            return Ok(());
        }
        Err(self.corrupt_block(offset, "the block does not match the block index"))
    }

    /// Reads every block, the index, the filter and the dictionary, bypassing the cache, and checks
    /// order, counts and ranges.
    ///
    /// # Errors
    /// The first fault found: `Corruption` with file and offset, or a device error.
    pub fn verify(&self) -> Result<()> {
        self.verify_with(&mut |_, _| {})
    }

    /// Works as [`verify`](Self::verify); passes every reference to a large value to `visit`, with
    /// its key. If there is a fault, `visit` gets the references before the fault.
    ///
    /// # Errors
    /// As [`verify`](Self::verify).
    pub fn verify_with(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let meta = self.meta();
        if let Some(named) = meta.dictionary {
            self.read_dictionary(named)?;
        }
        let (mut found, mut filter) = (Tally::default(), None);
        for index in self.index_parts() {
            let index = index?;
            for number in index.blocks() {
                self.verify_block(&index, number, &mut found, &mut filter, visit)?;
            }
        }
        if found.is_all_of(meta) {
            Ok(())
        } else {
            Err(self.corrupt(0, "run", "the messages do not match the counts in the manifest"))
        }
    }
    /// Checks one block. REQUIRES: all earlier blocks were checked. `filter` is the part of the
    /// filter that covers the previous block, and is replaced if another part covers this block.
    fn verify_block(
        &self,
        index: &BlockIndex,
        number: usize,
        found: &mut Tally,
        filter: &mut Option<(FilterPart, FilterReader)>,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<()> {
        let (meta, mut chunk) = (self.meta(), Chunk::new());
        let (offset, len) = index.extent(number);
        let block = self.decode(self.read_for_merge(offset, len)?.bytes(), offset)?;
        self.fill(&block, 0..block.len(), &mut chunk);
        let fault = |message| Err(self.corrupt_block(offset, message));
        let separator = index.separator(number);
        let continues = found.last.as_ref().is_some_and(|(last, _)| **last == *chunk.key(0));
        let below = found.last.as_ref().is_none_or(|(last, _)| separator > **last);
        if separator > *chunk.key(0) || continues != index.continues(number) {
            return fault("the block's first key does not match the block index");
        }
        if !below && !continues {
            return fault("the block's separator is not above the previous block");
        }
        if index.rank(number + 1) - index.rank(number) != block.len() as u64 {
            return fault("the block's message count does not match the block index");
        }
        if !found.add(&chunk) {
            return fault("the messages are out of order");
        }
        if !chunk.seqs.iter().all(|s| (meta.min_seq..=meta.max_seq).contains(s)) {
            return fault("a SeqNo is outside the range in the manifest");
        }
        let part = index.filter_part(number);
        if part != filter.as_ref().map(|(part, _)| *part) {
            let read = |part| Ok::<_, Error>((part, self.read_filter(part)?));
            *filter = part.map(read).transpose()?;
        }
        let passes = |i| {
            let hash = filter_hash(chunk.key(i), self.filter_prefix);
            filter.as_ref().is_none_or(|(_, filter)| filter.may_contain(hash))
        };
        if !(0..chunk.len()).all(passes) {
            return fault("the filter excludes a key of the block");
        }
        visit_refs(&chunk, visit);
        Ok(())
    }

    fn corrupt_block(&self, offset: u64, message: &str) -> Error {
        self.corrupt(offset, BlockKind::Data.name(), message)
    }
}

/// Passes every reference to a large value to `visit`, with its key.
fn visit_refs(chunk: &Chunk, visit: &mut dyn FnMut(&[u8], &[u8])) {
    for i in (0..chunk.len()).filter(|&i| chunk.kinds[i] == MessageKind::PutRef) {
        visit(chunk.key(i), chunk.value(i));
    }
}
