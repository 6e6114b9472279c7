//! Reads the uncommitted writes of a transaction to one tree: few messages with a linear search,
//! many with an index, which is built when it is needed.

use frondb_core::budget::Budget;
use frondb_core::codec::Reader;
use frondb_core::sync::Arc;
use frondb_core::{Error, MessageKind, Result, SeqNo};
use frondb_memtable::{Entry, Memtable};
use frondb_merge::Lookup;
use frondb_space::Hold;

use super::{Index, MessagePosition, TreeWrites};
use crate::empty::OwnEmptyRanges;
use crate::env::SpillEnv;
use crate::op::{Op, decode_op};
use crate::own::{OwnWrites, own_seq};
use crate::writes::Excluded;

/// If at most this many messages are in memory, a lookup reads all of them; otherwise it uses an
/// index.
const SCAN_MESSAGES_MAX: u64 = 16;

/// Number of messages that are inserted into the index at a time.
const INDEX_ENTRIES: usize = 8192;

/// A position between two messages of a tree, with counts of the messages before it.
#[derive(Clone, Copy, Default, Debug)]
pub struct Place {
    bytes: usize,
    last: u64,
    written: u64,
    spills: u64,
}

impl TreeWrites {
    /// Passes the messages for `key` to the lookup, newest first, until the lookup needs no more.
    ///
    /// # Errors
    /// `Corruption` or a device error of a private run.
    pub fn get(&mut self, key: &[u8], lookup: &mut Lookup, budget: &Arc<Budget>) -> Result<()> {
        let is_small = self.index.is_none() && self.count <= SCAN_MESSAGES_MAX;
        if is_small && self.spills == 0 {
            return self.get_by_scan(key, lookup);
        }
        self.own_without_hold(budget)?.get(key, lookup)
    }

    /// Returns the approximate number of messages with keys in `[lo, hi)`: see
    /// [`OwnWrites::messages`].
    ///
    /// # Errors
    /// `Corruption` or a device error of a private run.
    pub fn messages(&mut self, lo: &[u8], hi: Option<&[u8]>, budget: &Arc<Budget>) -> Result<u64> {
        self.own_without_hold(budget)?.messages(lo, hi)
    }

    /// Returns the position after the last message.
    pub(crate) fn place(&self) -> Place {
        let Self { last, written, spills, .. } = *self;
        Place { bytes: self.bytes.len(), last, written, spills }
    }

    /// Calls `visit` for the keys of the point deletes since `place`. Returns `true` if the
    /// messages since `place` are only point deletes, at most `max`, and all in memory. REQUIRES:
    /// no rollback to a savepoint since `place`.
    pub(crate) fn deletes_since<'a>(
        &'a self,
        place: &Place,
        max: u64,
        visit: &mut dyn FnMut(&'a [u8]),
    ) -> bool {
        let count = self.last.wrapping_sub(place.last);
        let are_counted = self.written.wrapping_sub(place.written) == count && count <= max;
        if !are_counted || self.spills != place.spills || self.bytes.len() < place.bytes {
            return false;
        }
        let from = MessagePosition { bytes: place.bytes, next: place.last + 1 };
        let (mut visited, mut are_deletes) = (0, true);
        let decoded = self.for_each(from, &mut |_, _, op| match op {
            Op::Point { kind: MessageKind::Delete, key, .. } => {
                visited += 1;
                visit(key);
            }
            _ => are_deletes = false,
        });
        decoded.is_ok() && are_deletes && visited == count
    }

    /// Looks `key` up with a linear search. REQUIRES: no message was spilled.
    fn get_by_scan(&self, key: &[u8], lookup: &mut Lookup) -> Result<()> {
        let mut found = Vec::new();
        self.for_each(MessagePosition::default(), &mut |n, _, op| match op {
            Op::Point { kind, key: k, value } if k == key => found.push((n, kind, value)),
            Op::Point { .. } => {}
            Op::RangeDelete { lo, hi } => {
                if lo <= key && hi.is_none_or(|hi| key < hi) {
                    lookup.hide_below(own_seq(self.from, n));
                }
            }
        })?;
        for (n, kind, value) in found.into_iter().rev() {
            if !lookup.feed(own_seq(self.from, n), kind, value) {
                break;
            }
        }
        Ok(())
    }

    /// Returns the messages written so far, for a reader that may continue while the transaction
    /// writes more messages, or undoes these.
    ///
    /// # Errors
    /// `Internal` if the encoded messages cannot be decoded.
    pub fn own(&mut self, env: &SpillEnv) -> Result<OwnWrites> {
        if self.hold.is_none() && !self.values.is_empty() {
            self.hold = Some(Hold::new(&env.runs.space));
        }
        let own = self.own_without_hold(&env.index_budget)?;
        let last = self.last;
        let empty = self.empty.get_or_insert_with(|| Arc::new(OwnEmptyRanges::after(last)));
        let (rollbacks, empty) = (empty.rollbacks(), Some(Arc::clone(empty)));
        Ok(OwnWrites { _hold: self.hold.clone(), empty, rollbacks, ..own })
    }

    /// Returns the messages as [`own`](Self::own) does, but does not keep their large values. For a
    /// reader that ends before the write set changes.
    pub(super) fn own_without_hold(&mut self, budget: &Arc<Budget>) -> Result<OwnWrites> {
        self.update_index(budget)?;
        let index = self.index.as_ref().map(|index| Arc::clone(&index.memtable));
        let range_deletes = index.as_ref().map(|index| index.range_delete_sets());
        Ok(OwnWrites {
            from: self.from,
            index,
            upto: self.last,
            excluded: Excluded::from(&*self.excluded),
            runs: Arc::clone(&self.runs),
            base_upto: self.base_upto,
            range_deletes: range_deletes.unwrap_or_default(),
            empty: None,
            rollbacks: 0,
            _hold: None,
        })
    }

    /// Inserts the messages that are not yet in the index.
    pub(crate) fn update_index(&mut self, budget: &Arc<Budget>) -> Result<()> {
        let indexed_to =
            self.index.as_ref().map_or_else(MessagePosition::default, |index| index.indexed_to);
        let nothing_to_index = self.index.is_some() || self.range_deletes.is_empty();
        if indexed_to.bytes == self.bytes.len() && nothing_to_index {
            return Ok(());
        }
        let memtable = match &self.index {
            Some(index) => Arc::clone(&index.memtable),
            None => self.index_of_spilled(budget),
        };
        let mut entries: Vec<Entry<'_>> = Vec::new();
        let deletes = &self.range_deletes;
        self.for_each(indexed_to, &mut |n, _, op| match op {
            Op::Point { kind, key, value } => {
                entries.push(Entry { key, seq: SeqNo(n), kind, value });
                if entries.len() == INDEX_ENTRIES {
                    memtable.insert_batch(&entries);
                    entries.clear();
                }
            }
            Op::RangeDelete { .. } => {
                memtable.insert_batch(&entries);
                entries.clear();
                if let Ok(at) = deletes.binary_search_by_key(&SeqNo(n), |delete| delete.seq) {
                    memtable.add_range_delete(deletes[at].clone());
                }
            }
        })?;
        memtable.insert_batch(&entries);
        let indexed_to = MessagePosition { bytes: self.bytes.len(), next: self.last + 1 };
        self.index = Some(Index { memtable, indexed_to });
        Ok(())
    }

    /// Returns a new index with the range deletes that are not in memory any more, because readers
    /// find range deletes only in the index.
    fn index_of_spilled(&self, budget: &Arc<Budget>) -> Arc<Memtable> {
        let memtable = Memtable::new(Arc::clone(budget));
        let in_memory = self.pieces.first().map_or(u64::MAX, |piece| piece.first);
        for delete in self.range_deletes.iter().filter(|delete| delete.seq.get() < in_memory) {
            memtable.add_range_delete(delete.clone());
        }
        Arc::new(memtable)
    }

    /// Decodes the messages in memory from a position on. Calls `visit` with number, offset and
    /// message.
    pub(super) fn for_each<'a>(
        &'a self,
        from: MessagePosition,
        visit: &mut dyn FnMut(u64, usize, Op<'a>),
    ) -> Result<()> {
        let mut input = Reader::new(&self.bytes[from.bytes..]);
        let begun = self.pieces.partition_point(|piece| piece.at < from.bytes);
        let mut pieces = self.pieces[begun..].iter().peekable();
        let mut n = from.next;
        while !input.is_empty() {
            let at = self.bytes.len() - input.rest().len();
            if let Some(piece) = pieces.next_if(|piece| piece.at <= at) {
                n = piece.first;
            }
            let op = decode_op(&mut input)
                .map_err(|_| Error::internal("a message of a write set cannot be decoded"))?;
            visit(n, at, op);
            n += 1;
        }
        Ok(())
    }
}
