//! The fold of jobs: keeps only the messages of a key that some present or later reader needs.
//!
//! Live snapshots cut the SeqNos into *stripes*: two messages are in one stripe if no snapshot sees
//! the older one without the newer one. Of each key, readers need only the newest message of a
//! stripe, or its newest updates and the message that they apply to.
//!
//! ```text
//!   snapshots            20            35
//!   SeqNo    ...  15 18 | 25 30 33    | 40 44  ->     44 | 33 | 18 stay
//!            oldest stripe              newest
//! ```
//!
//! What happens to the newest message of a stripe (rules 13, 14):
//! - Hidden by a range delete that every reader of the stripe sees: dropped, with all older
//!   messages of the stripe.
//! - Put: kept. Delete: kept, except at the base in the oldest stripe, where no older message is
//!   left for it to hide.
//! - Update: the fold gathers the update and the next older updates of the stripe. These operands
//!   become one put if the next older message of the stripe is a put (but not a reference), a
//!   delete, or hidden by a range delete, or if the operands are at the base and no older message
//!   exists. Otherwise, or if the update function fails or its result is longer than a value may
//!   be, the fold combines neighbouring operands where the function can combine them, and treats
//!   the next older message as if no updates were above it.
//!
//! Messages of a stripe are decided as they arrive, newest first, without lookahead; only operands,
//! and the next older message, are copied. The range deletes of a fold must include all range
//! deletes on the path from the trunk's root to the inputs. Otherwise operands might be combined
//! across a range delete of an upper node.

use frondb_core::message::SharedUpdateFn;
use frondb_core::range_delete::{RangeDeleteCursor, RangeDeletes};
use frondb_core::sync::Arc;
use frondb_core::{Direction, MessageKind, Result, SeqNo, Source};

use crate::merger::Merger;
use crate::stats::FoldStats;
use crate::update::{apply_all, combine};

/// The constraints of a fold.
#[derive(Clone, Debug)]
pub struct FoldOptions {
    /// Live snapshots, ascending. A snapshot taken later must be at or above every message of the
    /// inputs.
    pub snapshots: Arc<[SeqNo]>,
    /// Range deletes that cover keys of the inputs: all on the path from the root that are newer
    /// than the oldest input.
    pub range_deletes: RangeDeletes,
    /// Whether the inputs hold all older data of their keys. Then no older data may be attached
    /// below the inputs later (rule 13).
    pub at_base: bool,
    /// The tree's update function.
    pub update: Option<SharedUpdateFn>,
}

/// A message that the fold computed or copied, and that is no longer in a source.
struct Queued {
    seq: SeqNo,
    kind: MessageKind,
    value: Vec<u8>,
}

/// Merges and folds sources, newest first, forward. Used by one thread at a time.
///
/// ```text
///   while merge.next()? { builder.add(merge.key(), merge.seq(), merge.kind(), merge.value()) }
/// ```
pub struct FoldMerge {
    merger: Merger,
    options: FoldOptions,
    range_deletes: RangeDeleteCursor,
    /// Lowest SeqNo of the stripe that was decided last, for the current key.
    stripe_floor: SeqNo,
    /// Whether the current entry of the merger still has to be processed.
    held: bool,
    queue: Vec<Queued>,
    queue_key: Vec<u8>,
    /// Number of queued messages returned so far. While the queue is not empty, the last of these
    /// messages is current.
    queue_at: usize,
    dropped_refs: Vec<Box<[u8]>>,
    first_dropped: Option<Box<[u8]>>,
    stats: FoldStats,
}

impl FoldMerge {
    /// Creates a fold of `sources`, which all run forward; index 0 is the newest. Reads nothing
    /// yet.
    ///
    /// # Errors
    /// None today; opening a source may fail in the future.
    pub fn new(sources: Vec<Box<dyn Source>>, options: FoldOptions) -> Result<Self> {
        debug_assert!(options.snapshots.is_sorted(), "snapshots must ascend");
        Ok(Self {
            merger: Merger::new(sources, Direction::Forward),
            range_deletes: RangeDeleteCursor::new([options.range_deletes.clone()]),
            options,
            stripe_floor: SeqNo(0),
            held: false,
            queue: Vec::new(),
            queue_key: Vec::new(),
            queue_at: 0,
            dropped_refs: Vec::new(),
            first_dropped: None,
            stats: FoldStats::default(),
        })
    }

    /// Moves to the next message that is kept; returns `false` when none is left.
    ///
    /// # Errors
    /// The error of a source, once; the fold has then ended.
    #[inline]
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<bool> {
        if !self.queue.is_empty() && self.next_queued() {
            return Ok(true);
        }
        loop {
            if !self.held && !self.take()? {
                return Ok(false);
            }
            self.held = false;
            let seq = self.merger.seq();
            if self.merger.same_key() && seq >= self.stripe_floor {
                self.drop_current();
                continue;
            }
            self.stripe_floor = self.floor_of(seq);
            if !self.range_deletes.is_empty() && self.hidden(seq) {
                self.drop_current();
                continue;
            }
            match self.merger.kind() {
                MessageKind::Put | MessageKind::PutRef => {}
                MessageKind::Delete => {
                    if self.in_oldest_stripe() && self.options.at_base {
                        self.drop_current();
                        continue;
                    }
                }
                MessageKind::Update => {
                    self.fold_updates()?;
                    if !self.next_queued() {
                        continue;
                    }
                    return Ok(true);
                }
            }
            self.stats.entries_out += 1;
            return Ok(true);
        }
    }

    /// Key of the current message.
    #[inline]
    #[must_use]
    pub fn key(&self) -> &[u8] {
        if self.queue.is_empty() { self.merger.key() } else { &self.queue_key }
    }

    /// First eight bytes of the key, as in [`Chunk::prefixes`](frondb_core::Chunk::prefixes).
    #[inline]
    #[must_use]
    pub fn prefix(&self) -> u64 {
        if self.queue.is_empty() {
            self.merger.prefix()
        } else {
            frondb_core::chunk::key_prefix(&self.queue_key)
        }
    }

    /// SeqNo of the current message.
    #[inline]
    #[must_use]
    pub fn seq(&self) -> SeqNo {
        self.queued().map_or_else(|| self.merger.seq(), |queued| queued.seq)
    }

    /// Kind of the current message.
    #[inline]
    #[must_use]
    pub fn kind(&self) -> MessageKind {
        self.queued().map_or_else(|| self.merger.kind(), |queued| queued.kind)
    }

    /// Value of the current message.
    #[inline]
    #[must_use]
    pub fn value(&self) -> &[u8] {
        match self.queued() {
            Some(queued) => &queued.value,
            None => self.merger.value(),
        }
    }

    /// Counters so far.
    #[must_use]
    pub fn stats(&self) -> FoldStats {
        self.stats
    }

    /// Takes the values of the references dropped since the last call. The extents to which they
    /// refer can be freed once the job is installed (rule 17).
    pub fn take_dropped_refs(&mut self) -> Vec<Box<[u8]>> {
        std::mem::take(&mut self.dropped_refs)
    }

    /// Takes the key of the first message that was dropped without being folded into another
    /// message. If the keys of the input must be unique, this key is a duplicate.
    pub fn take_first_dropped(&mut self) -> Option<Box<[u8]>> {
        self.first_dropped.take()
    }

    #[inline(always)]
    fn queued(&self) -> Option<&Queued> {
        self.queue.get(self.queue_at.wrapping_sub(1))
    }

    /// Moves to the next queued message. Empties the queue and returns `false` when there is none.
    fn next_queued(&mut self) -> bool {
        if self.queue_at < self.queue.len() {
            self.queue_at += 1;
            self.stats.entries_out += 1;
            return true;
        }
        self.queue.clear();
        self.queue_at = 0;
        false
    }

    #[inline(always)]
    fn take(&mut self) -> Result<bool> {
        let taken = self.merger.next()?;
        self.stats.entries_in += u64::from(taken);
        Ok(taken)
    }

    /// Returns the smallest SeqNo in the stripe of `seq`.
    #[inline(always)]
    fn floor_of(&self, seq: SeqNo) -> SeqNo {
        let snapshots = &*self.options.snapshots;
        if snapshots.is_empty() {
            return SeqNo(0);
        }
        let below = snapshots.partition_point(|&snapshot| snapshot < seq);
        below.checked_sub(1).map_or(SeqNo(0), |i| snapshots[i].next())
    }

    #[inline(always)]
    fn in_oldest_stripe(&self) -> bool {
        self.stripe_floor == SeqNo(0)
    }

    /// Whether a range delete hides the current entry from all readers of its stripe.
    fn hidden(&mut self, seq: SeqNo) -> bool {
        let snapshots = &*self.options.snapshots;
        let above = snapshots.partition_point(|&snapshot| snapshot < seq);
        let first_reader = snapshots.get(above).copied().unwrap_or(SeqNo::MAX);
        self.range_deletes.hides(self.merger.key(), seq, first_reader)
    }

    /// Drops the merger's current entry, and counts it.
    #[inline(never)]
    fn drop_current(&mut self) {
        if self.first_dropped.is_none() {
            self.first_dropped = Some(self.merger.key().into());
        }
        match self.merger.kind() {
            MessageKind::Put => self.stats.dropped_puts += 1,
            MessageKind::PutRef => {
                self.stats.dropped_puts += 1;
                self.dropped_refs.push(self.merger.value().into());
            }
            MessageKind::Delete => self.stats.dropped_deletes += 1,
            MessageKind::Update => self.stats.dropped_updates += 1,
        }
    }

    /// Gathers the current update and the next older messages of its stripe, up to the first that
    /// is no update, and queues the result of the fold.
    #[inline(never)]
    fn fold_updates(&mut self) -> Result<()> {
        self.queue_key.clear();
        self.queue_key.extend_from_slice(self.merger.key());
        let mut operands = vec![self.queued_current()];
        // The next older message after the operands, if it is in the stripe: a put, reference or
        // delete.
        let mut end: Option<Queued> = None;
        let mut hidden_below = false;
        let mut older_left = false;
        loop {
            if !self.take()? {
                break;
            }
            let seq = self.merger.seq();
            if !self.merger.same_key() || seq < self.stripe_floor {
                older_left = self.merger.same_key();
                self.held = true;
                break;
            }
            if !self.range_deletes.is_empty() && self.hidden(seq) {
                self.drop_current();
                hidden_below = true;
                break;
            }
            let message = self.queued_current();
            if message.kind != MessageKind::Update {
                end = Some(message);
                break;
            }
            operands.push(message);
        }
        let at_bottom = self.options.at_base && end.is_none() && !older_left;
        if !self.fold_into_put(&operands, end.as_ref(), hidden_below || at_bottom) {
            self.combine(operands);
            self.queue_end(end);
        }
        Ok(())
    }

    fn queued_current(&self) -> Queued {
        Queued {
            seq: self.merger.seq(),
            kind: self.merger.kind(),
            value: self.merger.value().to_vec(),
        }
    }

    /// Queues one put in place of the operands and of `end`, the next older message. `nothing` says
    /// that the key is known to have no older value if there is no `end`. Returns `false` if the
    /// older value is unknown or a reference, or if the function is missing or fails.
    fn fold_into_put(&mut self, operands: &[Queued], end: Option<&Queued>, nothing: bool) -> bool {
        let existing = match end {
            Some(end) if end.kind == MessageKind::Put => Some(&end.value[..]),
            Some(end) if end.kind == MessageKind::Delete => None,
            None if nothing => None,
            _ => return false,
        };
        let Some(update) = &self.options.update else { return false };
        let values = operands.iter().map(|operand| &operand.value[..]);
        let Ok(Some(value)) = apply_all(&**update, &self.queue_key, existing, values) else {
            return false;
        };
        self.stats.dropped_updates += operands.len() as u64 - 1;
        match end.map(|end| end.kind) {
            Some(MessageKind::Put) => self.stats.dropped_puts += 1,
            Some(MessageKind::Delete) => self.stats.dropped_deletes += 1,
            _ => {}
        }
        self.queue.push(Queued { seq: operands[0].seq, kind: MessageKind::Put, value });
        true
    }

    /// Queues operands; combines neighbours where the function can combine them.
    fn combine(&mut self, operands: Vec<Queued>) {
        let before = operands.len();
        let mut operands = operands.into_iter();
        let Some(mut newer) = operands.next() else { return };
        let mut kept = 0;
        for older in operands {
            let combined =
                self.options.update.as_ref().and_then(|update| {
                    combine(&**update, &self.queue_key, &older.value, &newer.value)
                });
            match combined {
                Some(value) => newer.value = value,
                None => {
                    self.queue.push(std::mem::replace(&mut newer, older));
                    kept += 1;
                }
            }
        }
        self.queue.push(newer);
        self.stats.dropped_updates += (before - kept - 1) as u64;
    }

    /// Queues `end`, the next older message after operands that could not become a put. Drops `end`
    /// if it is a delete in the oldest stripe at the base (rule 13).
    fn queue_end(&mut self, end: Option<Queued>) {
        let Some(end) = end else { return };
        let vanishes =
            end.kind == MessageKind::Delete && self.in_oldest_stripe() && self.options.at_base;
        if vanishes {
            self.stats.dropped_deletes += 1;
        } else {
            self.queue.push(end);
        }
    }
}
