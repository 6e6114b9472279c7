//! [`TreeWrites`]: the writes of one transaction to one tree.
//!
//! ```text
//!  bytes     | put a | put b | delete a |      the log's encoding, in order
//!  numbers       1       2        5            ascend; rolled-back numbers are never reused
//!  index     a 5, a 1, b 2                     built at the first read, up to `indexed_to`
//!  runs      newer | older                     spilled messages: smaller numbers than in `bytes`
//! ```

mod reading;

use frondb_core::budget::Budget;
use frondb_core::sync::Arc;
use frondb_core::{Error, MessageKind, RangeDelete, Result, SeqNo, TreeId};
use frondb_memtable::Memtable;
use frondb_run::Run;
use frondb_space::{Extent, Hold};

use crate::empty::OwnEmptyRanges;
use crate::op::{Op, encode_op, encode_range_delete};
use crate::savepoint::TreeMark;
use crate::sorted::{Slot, Sorted};

pub use reading::Place;

/// Intervals `(after, upto]` of message numbers that were rolled back.
pub(crate) type Excluded = Arc<[(u64, u64)]>;

/// Bytes that an empty `TreeWrites` may keep for reuse.
const KEPT_BYTES_MAX: usize = 4 << 10;

/// The index is rebuilt once it has this many more rolled-back messages than live ones.
const EXCLUDED_MAX: u64 = 1024;

/// The uncommitted writes of a transaction to one tree. One thread at a time may use it.
pub struct TreeWrites {
    pub(crate) tree: TreeId,
    /// The SeqNo that readers see for message number 0.
    from: SeqNo,
    pub(crate) bytes: Vec<u8>,
    /// The sequences of consecutive message numbers in `bytes`. If `bytes` is not empty, the first
    /// piece begins at offset 0.
    pieces: Vec<Piece>,
    /// Number of messages in `bytes`.
    pub(crate) count: u64,
    /// Number of messages that were written and not undone, in memory and on disk.
    written: u64,
    /// Bytes of these messages, encoded, and of the large values to which they refer.
    written_bytes: u64,
    /// The last number assigned.
    pub(crate) last: u64,
    /// Whether the messages that were written and not undone, in memory and on disk, include a put
    /// or an update.
    adds_data: bool,
    /// The range deletes among all messages, in memory and on disk, in ascending order of their
    /// message numbers, which they have as SeqNos.
    pub(crate) range_deletes: Vec<RangeDelete>,
    /// The extents of each large value, with the number of the value's message, ascending.
    pub(crate) values: Vec<(u64, Vec<Extent>)>,
    /// Keeps released large values while readers may still read them. Created for the first such
    /// reader.
    pub(crate) hold: Option<Arc<Hold>>,
    index: Option<Index>,
    excluded: Vec<(u64, u64)>,
    /// Private runs, newest first.
    pub(crate) runs: Arc<[Arc<Run>]>,
    /// Largest message number in the base runs that a bulk statement has added; 0 if there are
    /// none. Base runs are the oldest runs, and do not overlap.
    pub(crate) base_upto: u64,
    /// Number of spills.
    pub(crate) spills: u64,
    /// The ranges that cursors found empty. Created for the first cursor.
    empty: Option<Arc<OwnEmptyRanges>>,
}

/// A sequence of messages with consecutive numbers.
#[derive(Clone, Copy)]
struct Piece {
    at: usize,
    first: u64,
}

struct Index {
    memtable: Arc<Memtable>,
    /// The index contains the messages in memory that lie before this position.
    indexed_to: MessagePosition,
}

/// A position between two messages in memory.
#[derive(Clone, Copy, Default)]
struct MessagePosition {
    bytes: usize,
    /// Number of the next message, unless a piece begins there.
    next: u64,
}

impl TreeWrites {
    pub(crate) fn new(tree: TreeId, from: SeqNo) -> Self {
        Self {
            tree,
            from,
            bytes: Vec::new(),
            pieces: Vec::new(),
            count: 0,
            written: 0,
            written_bytes: 0,
            last: 0,
            adds_data: false,
            range_deletes: Vec::new(),
            values: Vec::new(),
            hold: None,
            index: None,
            excluded: Vec::new(),
            runs: Arc::default(),
            base_upto: 0,
            spills: 0,
            empty: None,
        }
    }

    /// Whether the memory is small enough to keep for another transaction.
    pub(crate) fn is_small(&self) -> bool {
        self.bytes.capacity() <= KEPT_BYTES_MAX && self.spills == 0 && self.index.is_none()
    }

    /// Removes the messages and keeps the memory.
    pub(crate) fn emptied(mut self) -> Self {
        self.bytes.clear();
        self.pieces.clear();
        self.pieces.shrink_to(1);
        Self { bytes: self.bytes, pieces: self.pieces, ..Self::new(self.tree, self.from) }
    }

    /// Returns this empty `TreeWrites` as the writes to another tree.
    pub(crate) fn reused(self, tree: TreeId) -> Self {
        Self { tree, ..self }
    }

    /// Returns the tree to which the writes belong.
    #[must_use]
    pub fn tree(&self) -> TreeId {
        self.tree
    }

    /// Returns the encoded messages in memory, in the order of writing.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the number of messages in memory.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the number of messages that were written and not undone, in memory and on disk.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Returns the bytes of the messages that were written and not undone, and of their large
    /// values.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Whether there are no messages, neither in memory nor on disk.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.runs.is_empty() && self.range_deletes.is_empty()
    }

    /// Whether a part of the writes was spilled: to private runs, or as range deletes that will not
    /// be in the log record.
    #[must_use]
    pub fn has_spilled(&self) -> bool {
        self.spills > 0 && !self.is_empty()
    }

    /// Returns the last number that was assigned to a message, even if the message was undone.
    #[must_use]
    pub fn last_number(&self) -> u64 {
        self.last
    }

    /// Whether the messages that were written and not undone include a put or an update.
    #[must_use]
    pub fn adds_data(&self) -> bool {
        self.adds_data
    }

    /// Returns the estimated bytes of memory of these writes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let index = self.index.as_ref().map_or(0, |index| index.memtable.bytes());
        self.bytes.capacity() as u64 + index
    }

    /// Writes a message. Key and value must respect the engine's limits; an update requires a tree
    /// with an update function.
    #[inline]
    pub fn write(&mut self, kind: MessageKind, key: &[u8], value: &[u8]) {
        self.number();
        if kind != MessageKind::Delete {
            self.adds_data = true;
            if let Some(empty) = &self.empty {
                empty.note_put(key, self.last);
            }
        }
        let begin = self.bytes.len();
        encode_op(&mut self.bytes, kind, key, value);
        self.count_message(begin);
    }

    /// Writes a put of a large value of `value_bytes` bytes. The value is in `extents`, and
    /// `reference` refers to it. The write set owns the extents from now on.
    pub fn write_large(
        &mut self,
        key: &[u8],
        reference: &[u8],
        value_bytes: u64,
        extents: Vec<Extent>,
    ) {
        self.write(MessageKind::PutRef, key, reference);
        self.written_bytes += value_bytes;
        self.values.push((self.last, extents));
    }

    /// Writes a range delete. REQUIRES: the range is not empty.
    pub fn write_range_delete(&mut self, lo: &[u8], hi: Option<&[u8]>) {
        self.number();
        let begin = self.bytes.len();
        encode_range_delete(&mut self.bytes, lo, hi);
        self.count_message(begin);
        let (lo, hi, seq) = (lo.into(), hi.map(Into::into), SeqNo(self.last));
        self.range_deletes.push(RangeDelete { lo, hi, seq });
    }

    /// Counts the puts of a bulk statement, and their bytes, as written.
    pub(crate) fn add_written(&mut self, puts: u64, bytes: u64) {
        self.written += puts;
        self.written_bytes += bytes;
        self.adds_data |= puts > 0;
        if let Some(empty) = &self.empty {
            empty.note_puts_anywhere(self.last);
        }
    }

    #[inline]
    fn number(&mut self) {
        self.last += 1;
        self.written += 1;
        if self.pieces.is_empty() {
            self.pieces.push(Piece { at: self.bytes.len(), first: self.last });
        }
    }

    /// Counts the message in memory whose encoding begins at `begin`.
    #[inline]
    fn count_message(&mut self, begin: usize) {
        self.count += 1;
        self.written_bytes += (self.bytes.len() - begin) as u64;
    }

    // --- Savepoints ---

    pub(crate) fn mark(&self) -> TreeMark {
        TreeMark {
            number: self.last,
            bytes: self.bytes.len(),
            count: self.count,
            spills: self.spills,
            written: self.written,
            written_bytes: self.written_bytes,
            adds_data: self.adds_data,
        }
    }

    /// Removes the messages in memory that were written after `mark`. Returns the extents of all
    /// large values that were written after `mark`. The caller must undo the spilled messages after
    /// the mark separately.
    pub(crate) fn cut(&mut self, mark: TreeMark) -> Vec<Extent> {
        if self.last == mark.number {
            return Vec::new();
        }
        if let Some(empty) = &self.empty {
            empty.note_rollback(self.last);
        }
        let (bytes, count) = if mark.spills == self.spills {
            (mark.bytes, mark.count)
        } else {
            // After a spill, all messages in memory are newer than the mark.
            (0, 0)
        };
        self.bytes.truncate(bytes);
        self.count = count;
        self.written = mark.written;
        self.written_bytes = mark.written_bytes;
        self.adds_data = mark.adds_data;
        if self.base_upto > mark.number {
            self.base_upto = 0;
        }
        self.pieces.retain(|piece| piece.at < bytes);
        let deletes = self.range_deletes.len();
        self.range_deletes
            .truncate(self.range_deletes.partition_point(|delete| delete.seq.get() <= mark.number));
        self.cut_index(mark.number, deletes != self.range_deletes.len());
        // The next message begins a new piece, because rolled-back numbers are not reused.
        if bytes > 0 {
            self.pieces.push(Piece { at: bytes, first: self.last + 1 });
        }
        let values = self.values.partition_point(|&(n, _)| n <= mark.number);
        self.values.drain(values..).flat_map(|(_, extents)| extents).collect()
    }

    fn cut_index(&mut self, upto: u64, deletes_gone: bool) {
        let Some(index) = &mut self.index else { return };
        index.indexed_to.bytes = index.indexed_to.bytes.min(self.bytes.len());
        let stale = index.memtable.len().saturating_sub(self.count);
        // The index can exclude rolled-back point messages by their numbers, but not range deletes.
        if deletes_gone || stale > self.count + EXCLUDED_MAX {
            self.drop_index();
            return;
        }
        while self.excluded.last().is_some_and(|&(after, _)| after >= upto) {
            self.excluded.pop();
        }
        self.excluded.push((upto, self.last));
    }

    /// Frees the memory for messages. REQUIRES: there are no messages in memory.
    pub(crate) fn free_memory(&mut self) {
        debug_assert_eq!(self.count, 0, "messages would be lost");
        self.bytes = Vec::new();
        self.pieces.clear();
        self.drop_index();
    }

    fn drop_index(&mut self) {
        self.index = None;
        self.excluded.clear();
    }

    // --- Spilling ---

    /// Takes the messages in memory, and sorts them. `None` if there is an index, a range delete in
    /// memory, or 4 GiB of messages. After `Some`, the caller must call
    /// [`put_back`](Self::put_back) or [`spilled`](Self::spilled).
    pub(crate) fn take_unread(&mut self) -> Result<Option<Sorted>> {
        let (first, last) = self.numbers();
        let deletes = self.range_deletes.last().is_some_and(|delete| delete.seq.get() >= first);
        let fits = u32::try_from(self.bytes.len()).is_ok() && u32::try_from(last - first).is_ok();
        if self.index.is_some() || deletes || !fits {
            return Ok(None);
        }
        let mut slots = Vec::with_capacity(usize::try_from(self.count).unwrap_or(0));
        self.for_each(MessagePosition::default(), &mut |n, at, op| {
            if let Op::Point { key, .. } = op {
                slots.push(Slot::new(key, at as u32, (n - first) as u32));
            }
        })?;
        Ok(Some(Sorted::new(std::mem::take(&mut self.bytes), slots, first)))
    }

    /// Puts the messages back after a failed spill.
    pub(crate) fn put_back(&mut self, sorted: Arc<Sorted>) {
        if let Some(sorted) = Arc::into_inner(sorted) {
            self.bytes = sorted.into_bytes();
        }
    }

    /// Returns the index of all messages in memory and the rolled-back numbers in it, for a spill.
    pub(crate) fn sorted(&mut self, budget: &Arc<Budget>) -> Result<(Arc<Memtable>, Excluded)> {
        let own = self.own_without_hold(budget)?;
        let memtable = own.index.ok_or_else(|| Error::internal("the write set has no index"))?;
        Ok((memtable, own.excluded))
    }

    /// Returns the smallest and the largest message number in memory.
    pub(crate) fn numbers(&self) -> (u64, u64) {
        (self.pieces.first().map_or(self.last, |piece| piece.first), self.last)
    }

    /// Records that the messages in memory are now in `run`. `run` is `None` if the fold left no
    /// message.
    pub(crate) fn spilled(&mut self, run: Option<Arc<Run>>) {
        self.count = 0;
        self.free_memory();
        self.spills += 1;
        self.runs = run.into_iter().chain(self.runs.iter().cloned()).collect();
    }

    /// Removes a large value to which no message refers any more, and returns its extents. `first`
    /// is its first extent.
    pub(crate) fn forget_value(&mut self, first: Extent) -> Option<Vec<Extent>> {
        let at = self.values.iter().position(|(_, extents)| extents.first() == Some(&first))?;
        Some(self.values.remove(at).1)
    }
}
