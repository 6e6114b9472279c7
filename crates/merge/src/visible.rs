//! The merge of cursors: returns the entries that one snapshot sees, with updates applied, in
//! either direction.
//!
//! Forward, the messages of a key arrive newest first: the first message at or below the snapshot
//! decides unless it is an update, and older messages are skipped. Backward, the messages of a key
//! arrive oldest first, so each visible message replaces the previous one of its key, and the entry
//! is complete when the key changes. A backward entry is copied, because its source has moved on
//! when the key changes.
//!
//! For a reader of a transaction, the transaction's own messages are newer than all others: they
//! have SeqNos from [`OwnMessages::from`] on, whatever the snapshot is. The messages of the
//! transaction's overlay are older than its own messages and newer than committed ones.

use frondb_core::chunk::Entries;
use frondb_core::message::SharedUpdateFn;
use frondb_core::range_delete::{RangeDeleteCursor, RangeDeletes};
use frondb_core::sync::Arc;
use frondb_core::{Direction, MessageKind, Result, SeqNo, Source};

use crate::merger::Merger;
use crate::stats::VisibleStats;
use crate::update::{Existing, ValueReader, VisibleValue, resolve};

/// The uncommitted messages of the reader's transaction.
#[derive(Clone)]
pub struct OwnMessages {
    /// SeqNo of own message 0; own message `n` has `from + n`. Above all committed SeqNos.
    pub from: SeqNo,
    /// Messages with SeqNos from this one on are visible, whatever the snapshot is. Equal to
    /// `from`, or lower if the transaction has an overlay.
    pub seen_from: SeqNo,
    /// Largest number of an own message that the reader sees. The merge applies this limit only to
    /// `range_deletes`; the caller applies it to the sources.
    pub upto: u64,
    /// Own range deletes. Their SeqNos are numbers of own messages.
    pub range_deletes: Arc<[RangeDeletes]>,
}

/// The options of a reader.
#[derive(Clone)]
pub struct VisibleOptions {
    /// Messages above this SeqNo do not exist for the reader, except the messages of `own`.
    pub snapshot: SeqNo,
    /// Direction of the sources.
    pub direction: Direction,
    /// Range deletes over the sources, in any number of sets.
    pub range_deletes: Vec<RangeDeletes>,
    /// The tree's update function.
    pub update: Option<SharedUpdateFn>,
    /// Reads large values to which updates apply.
    pub values: Option<Arc<dyn ValueReader>>,
    /// The uncommitted messages of the reader's transaction.
    pub own: Option<OwnMessages>,
}

impl VisibleOptions {
    /// Returns the options of a forward reader at `snapshot` of a tree without range deletes and
    /// updates.
    #[must_use]
    pub fn new(snapshot: SeqNo) -> Self {
        Self {
            snapshot,
            direction: Direction::Forward,
            range_deletes: Vec::new(),
            update: None,
            values: None,
            own: None,
        }
    }
}

/// The position up to which a merge has read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LastRead<'a> {
    /// The last key of which the merge has read a message.
    pub key: &'a [u8],
    /// Whether the merge needs no further message of the key.
    pub is_complete: bool,
}

/// Merges sources into the entries that one snapshot sees. Used by one thread at a time.
pub struct VisibleMerge<S: Source = Box<dyn Source>> {
    merger: Merger<S>,
    options: VisibleOptions,
    range_deletes: RangeDeleteCursor,
    /// Messages with SeqNos from this one on belong to the reader's transaction or its overlay;
    /// `MAX` if there are none.
    seen_from: SeqNo,
    own_range_deletes: RangeDeleteCursor,
    /// Whether a range delete may hide any message.
    hides: bool,
    /// In a forward merge, whether the current key is decided, so that its older messages are
    /// skipped.
    decided: bool,
    /// Whether the current entry of the merger still has to be processed.
    held: bool,
    /// Whether the current entry is in `key`, `kind` and `value`, and not in the merger.
    copied: bool,
    key: Vec<u8>,
    kind: MessageKind,
    value: Vec<u8>,
    /// Operands collected for the current key.
    operands: Vec<Vec<u8>>,
    ended: bool,
    /// Whether the updates of `key` could not be applied.
    unresolved: bool,
    /// Key of the first delete that was skipped before the first entry.
    first_passed: Option<Vec<u8>>,
    stats: VisibleStats,
}

impl<S: Source> VisibleMerge<S> {
    /// Creates a merge of `sources`, newest first, which run in the options' direction from the
    /// positions to which the caller has moved them. Reads nothing yet.
    #[must_use]
    pub fn new(sources: Vec<S>, mut options: VisibleOptions) -> Self {
        let range_deletes = RangeDeleteCursor::new(std::mem::take(&mut options.range_deletes));
        let own = options.own.as_ref();
        let own_sets = own.map(|own| own.range_deletes.iter().cloned());
        let own_range_deletes = RangeDeleteCursor::new(own_sets.into_iter().flatten());
        Self {
            merger: Merger::new(sources, options.direction),
            seen_from: own.map_or(SeqNo::MAX, |own| own.seen_from),
            hides: !range_deletes.is_empty() || !own_range_deletes.is_empty(),
            range_deletes,
            own_range_deletes,
            options,
            decided: false,
            held: false,
            copied: false,
            key: Vec::new(),
            kind: MessageKind::Put,
            value: Vec::new(),
            operands: Vec::new(),
            ended: false,
            unresolved: false,
            first_passed: None,
            stats: VisibleStats::default(),
        }
    }

    /// Moves to the next entry that the snapshot sees; returns `false` if there is none.
    ///
    /// # Errors
    /// The error of a source or of reading a large value, once; or Invalid if the update function
    /// is missing or fails for a key. The merge has then ended.
    #[inline]
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<bool> {
        if self.ended {
            return Ok(false);
        }
        let moved = match self.options.direction {
            Direction::Forward => self.next_forward(),
            Direction::Backward => self.next_backward(),
        };
        if matches!(moved, Ok(true)) {
            self.stats.entries_out += 1;
        } else {
            self.ended = true;
        }
        moved
    }

    /// Moves over entries that need no resolving, and returns them: puts of different keys that the
    /// snapshot sees, all from one source. At most `max` entries with at most `bytes` bytes of keys
    /// and `bytes` bytes of values. Returns none if the caller must call [`next`](Self::next)
    /// instead, and none in a backward merge.
    #[inline]
    pub fn next_entries(&mut self, max: usize, bytes: usize) -> Entries<'_> {
        if self.ended || self.held || self.hides || !self.decided {
            return Entries::default();
        }
        let (snapshot, seen_from) = (self.options.snapshot, self.seen_from);
        let entries = self.merger.next_from_one_source(max, bytes, |chunk, i| {
            let seq = chunk.seqs[i];
            chunk.kinds[i] == MessageKind::Put && (seq <= snapshot || seq >= seen_from)
        });
        if !entries.is_empty() {
            self.copied = false;
            let count = entries.len() as u64;
            self.stats.entries_in += count;
            self.stats.entries_out += count;
        }
        entries
    }

    /// Skips the entries before `key`: forward, entries with keys below `key`; backward, entries
    /// with keys at or above `key`. REQUIRES: `key` lies after the current entry's key in the
    /// direction of the merge; backward, the two may be equal. The next entry is the first of the
    /// rest that the snapshot sees.
    ///
    /// # Errors
    /// The error of a source, once; the merge has then ended.
    pub fn skip(&mut self, key: &[u8]) -> Result<()> {
        if self.ended {
            return Ok(());
        }
        self.decided = false;
        self.held = false;
        self.copied = false;
        self.range_deletes.reset();
        self.own_range_deletes.reset();
        let skipped = self.merger.skip(key);
        self.ended = skipped.is_err();
        skipped
    }

    /// Key of the current entry.
    #[inline]
    #[must_use]
    pub fn key(&self) -> &[u8] {
        if self.copied { &self.key } else { self.merger.key() }
    }

    /// `Put` if [`value`](Self::value) is the value itself; `PutRef` if it is a reference to the
    /// value.
    #[inline]
    #[must_use]
    pub fn kind(&self) -> MessageKind {
        if self.copied { self.kind } else { self.merger.kind() }
    }

    /// Value of the current entry.
    #[inline]
    #[must_use]
    pub fn value(&self) -> &[u8] {
        if self.copied { &self.value } else { self.merger.value() }
    }

    /// Returns the key whose updates could not be applied, if the merge failed because of them.
    #[must_use]
    pub fn unresolved_key(&self) -> Option<&[u8]> {
        self.unresolved.then_some(&*self.key)
    }

    /// Returns the position that the merge had reached when a source failed in
    /// [`next`](Self::next); `None` if none failed there after it had delivered an entry. A new
    /// merge can continue from this position.
    #[must_use]
    pub fn last_read(&self) -> Option<LastRead<'_>> {
        let key = self.merger.last_key()?;
        Some(LastRead { key, is_complete: self.decided })
    }

    /// Returns the key of the first delete that the merge skipped before it returned an entry.
    #[must_use]
    pub fn first_passed(&self) -> Option<&[u8]> {
        self.first_passed.as_deref()
    }

    /// Returns the last key of the sources once the merge has ended; `None` if they had no entries.
    #[must_use]
    pub fn end_key(&self) -> Option<&[u8]> {
        self.merger.end_key()
    }

    /// Counters so far.
    #[must_use]
    pub fn stats(&self) -> VisibleStats {
        self.stats
    }

    /// Moves to the merger's next entry. Inlined at its only call per entry in a usual scan; see
    /// [`take_another`](Self::take_another).
    #[inline(always)]
    fn take(&mut self) -> Result<bool> {
        let taken = self.merger.next()?;
        self.stats.entries_in += u64::from(taken);
        Ok(taken)
    }

    /// As [`take`](Self::take), where inlining does not pay off.
    #[inline(never)]
    fn take_another(&mut self) -> Result<bool> {
        self.take()
    }

    /// Whether a message at `seq` exists for this reader.
    #[inline(always)]
    fn sees(&self, seq: SeqNo) -> bool {
        seq <= self.options.snapshot || seq >= self.seen_from
    }

    /// Whether a range delete hides the merger's entry, which has this SeqNo.
    fn hidden(&mut self, seq: SeqNo) -> bool {
        self.hidden_by_own(seq) || self.hidden_by_committed(seq)
    }

    fn hidden_by_own(&mut self, seq: SeqNo) -> bool {
        let Some(own) = &self.options.own else { return false };
        let key = self.merger.key();
        let newest = self.own_range_deletes.newest_covering(key, SeqNo(own.upto)).get();
        newest > 0 && seq.get() < own.from.get() + newest
    }

    fn hidden_by_committed(&mut self, seq: SeqNo) -> bool {
        self.range_deletes.hides(self.merger.key(), seq, self.options.snapshot)
    }

    /// Whether the merger's entry, a delete or hidden, is deleted only by the reader's transaction
    /// or its overlay, so that it gives no reason for a compaction.
    fn is_own_delete(&mut self, seq: SeqNo) -> bool {
        seq > self.options.snapshot
            || self.options.own.is_some()
                && self.merger.kind() != MessageKind::Delete
                && !self.hidden_by_committed(seq)
    }

    /// Counts a skipped delete; `is_own` as [`is_own_delete`](Self::is_own_delete) returns it.
    fn pass_delete(&mut self, is_own: bool) {
        if self.stats.entries_out == 0 && self.first_passed.is_none() {
            let backward = self.options.direction == Direction::Backward;
            let key = if backward { &*self.key } else { self.merger.key() };
            self.first_passed = Some(key.to_vec());
        }
        if is_own {
            self.stats.own_deletes_passed += 1;
        } else {
            self.stats.deletes_passed += 1;
        }
    }

    #[inline]
    fn next_forward(&mut self) -> Result<bool> {
        self.copied = false;
        loop {
            if !self.held && !self.take()? {
                return Ok(false);
            }
            self.held = false;
            if self.merger.same_key() {
                if self.decided {
                    continue;
                }
            } else {
                self.decided = false;
            }
            let seq = self.merger.seq();
            if !self.sees(seq) {
                continue;
            }
            self.decided = true;
            if self.hides && self.hidden(seq) {
                let is_own = self.is_own_delete(seq);
                self.pass_delete(is_own);
                continue;
            }
            match self.merger.kind() {
                MessageKind::Put | MessageKind::PutRef => return Ok(true),
                MessageKind::Delete => self.pass_delete(seq > self.options.snapshot),
                MessageKind::Update => {
                    self.gather_forward()?;
                    return Ok(true);
                }
            }
        }
    }

    /// Collects the older updates of the current entry, which is the newest visible update of its
    /// key, and applies them all.
    #[inline(never)]
    fn gather_forward(&mut self) -> Result<()> {
        self.key.clear();
        self.key.extend_from_slice(self.merger.key());
        self.operands.clear();
        self.operands.push(self.merger.value().to_vec());
        let mut kind = MessageKind::Delete;
        self.value.clear();
        // The key is decided only when all messages that the value needs have been read.
        self.decided = false;
        while self.take_another()? {
            if !self.merger.same_key() {
                self.held = true;
                break;
            }
            let seq = self.merger.seq();
            // Committed messages above the snapshot may lie between own messages and visible ones.
            if !self.sees(seq) {
                continue;
            }
            if self.hides && self.hidden(seq) {
                break;
            }
            if self.merger.kind() != MessageKind::Update {
                kind = self.merger.kind();
                self.value.extend_from_slice(self.merger.value());
                break;
            }
            self.operands.push(self.merger.value().to_vec());
        }
        self.decided = true;
        self.resolve(kind).map(|_| ())
    }

    /// Applies `operands` (newest first) to `value`, a value of kind `kind`, and stores the result
    /// as the copied entry. Returns `false` if the key is absent.
    fn resolve(&mut self, kind: MessageKind) -> Result<bool> {
        let below = match kind {
            MessageKind::Put => Existing::Value(&self.value),
            MessageKind::PutRef => Existing::Reference(&self.value),
            MessageKind::Delete | MessageKind::Update => Existing::Absent,
        };
        let operands = self.operands.iter().map(Vec::as_slice);
        let (update, values) = (self.options.update.as_deref(), self.options.values.as_deref());
        let found = resolve(update, values, &self.key, below, operands);
        let found = found.inspect_err(|_| self.unresolved = true)?;
        self.copied = true;
        (self.kind, self.value) = match found {
            Some(VisibleValue::Value(value)) => (MessageKind::Put, value),
            Some(VisibleValue::Reference(reference)) => (MessageKind::PutRef, reference),
            None => return Ok(false),
        };
        Ok(true)
    }

    fn next_backward(&mut self) -> Result<bool> {
        loop {
            if !self.held && !self.take_another()? {
                return Ok(false);
            }
            self.held = false;
            if self.gather_backward()? {
                return Ok(true);
            }
        }
    }

    /// Reads all messages of the current entry's key, oldest first. Returns `false` if the key is
    /// absent.
    fn gather_backward(&mut self) -> Result<bool> {
        self.key.clear();
        self.key.extend_from_slice(self.merger.key());
        self.operands.clear();
        // The result of the messages read so far is `operands` applied to `kind` and `value`.
        let mut kind = MessageKind::Delete;
        // Whether the newest message so far is a delete or hidden, and if so, whether the delete is
        // an own one.
        let mut deleted = None;
        loop {
            let seq = self.merger.seq();
            if self.sees(seq) {
                // Messages older than a hidden message are hidden, too, so there is no result to
                // discard.
                let is_delete = self.hides && self.hidden(seq) || self.apply_backward(&mut kind);
                deleted = is_delete.then(|| self.is_own_delete(seq));
            }
            if !self.take_another()? {
                break;
            }
            if !self.merger.same_key() {
                self.held = true;
                break;
            }
        }
        if let Some(is_own) = deleted {
            self.pass_delete(is_own);
        }
        if self.operands.is_empty() {
            // The usual case: as `resolve`, without copying the value again.
            (self.copied, self.kind) = (true, kind);
            return Ok(kind != MessageKind::Delete);
        }
        self.operands.reverse();
        self.resolve(kind)
    }

    /// Applies the merger's entry to the older messages of its key. Returns whether the entry is a
    /// delete.
    fn apply_backward(&mut self, kind: &mut MessageKind) -> bool {
        match self.merger.kind() {
            MessageKind::Update => self.operands.push(self.merger.value().to_vec()),
            other => {
                *kind = other;
                self.operands.clear();
                self.value.clear();
                self.value.extend_from_slice(self.merger.value());
            }
        }
        self.merger.kind() == MessageKind::Delete
    }
}
