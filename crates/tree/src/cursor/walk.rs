//! [`Walk`]: the merge over one leaf that a cursor reads, and the cost of reading the leaf.
//!
//! A walk merges, newest first: the writes of the reader's transaction, the memtables and attached
//! runs, the runs that inner nodes buffer, the runs of the leaf, and its base
//! ([`frondb_trunk::segment`]). Its bounds are chosen so that it skips known-empty ranges.
//!
//! A walk adds its merging cost to the leaf's debts, and counts the deletes that it steps over. If
//! a debt passes its limit, or the walk has stepped over a tombstone run (rule 15), the walk posts
//! a hint, so that a worker plans the leaf. A walk never plans.

use std::ops::Bound;

use frondb_core::sync::Arc;
use frondb_core::{Direction, Result, SeqNo, Source};
use frondb_merge::{OwnMessages, VisibleMerge, VisibleOptions};
use frondb_trunk::plan::TOMBSTONE_RUN;
use frondb_trunk::{Key, Node, Scan, Segment, segment};
use frondb_writeset::{OVERLAY_SEQS, OWN_SEQS, OwnWrites};

use super::around::around;
use super::scope::Scope;
use crate::pins::{PinnedSource, Pins};
use crate::read_debt::{add_scan, ask_for_flush};
use crate::value::Values;
use crate::version::Version;

/// Messages in the first chunk that a reader takes from a memtable if the leaf has a base: most
/// entries that the reader needs are then in the base, and each message of the memtable costs a
/// cache miss.
const MEMTABLE_MESSAGES: usize = 4;

/// The merge over the range of one leaf, in one direction.
pub(super) struct Walk {
    pub(super) merge: VisibleMerge<PinnedSource>,
    pub(super) direction: Direction,
    leaf: Arc<Node>,
    /// The walk covers `[lo, hi)`.
    pub(super) lo: Key,
    pub(super) hi: Option<Key>,
    /// Whether the walk begins where a known-empty range ends.
    pub(super) begins_after_empty: bool,
    /// Deletes and own deletes that earlier calls of [`report`](Self::report) have counted.
    reported: (u64, u64),
}

impl Walk {
    /// Opens the walk at the leaf that holds `at`; without `at`, at the first or the last leaf. The
    /// first call of `merge.next()` goes to the first entry.
    ///
    /// # Errors
    /// `NotFound` if the tree was dropped before the cursor was listed; `Corruption` or a device
    /// error of an index.
    pub(super) fn open(
        scope: &Scope,
        pins: &Arc<Pins>,
        direction: Direction,
        at: Option<&[u8]>,
    ) -> Result<Self> {
        let version = pins.begin_move(scope.context.now())?;
        let seq = scope.snapshot.seq();
        // The version is at least as new as the snapshot, and a known-empty range stays empty in
        // all newer versions.
        let around = around(scope, direction, at);
        let begins_after_empty = around.at.is_some();
        let at = around.at.as_deref().or(at);
        let lower = around.lo.as_deref().map_or(&*scope.lower, |lo| lo.max(&scope.lower));
        let upper = match (around.hi.as_deref(), scope.upper.as_deref()) {
            (Some(empty), Some(upper)) => Some(empty.min(upper)),
            (empty, upper) => empty.or(upper),
        };
        // The range deletes are collected before the runs are opened, so that hidden parts of runs
        // are skipped without reading them.
        let mut deletes = Vec::new();
        for memtable in version.memtables() {
            deletes.extend(memtable.range_delete_sets().iter().cloned());
        }
        let (lo, hi, expected) = (lower, upper, scope.expected);
        let scan = Scan { direction, at, lo, hi, snapshot: seq, expected };
        let mut part = segment(&version.trunk, &scan, &deletes)?;
        if !scope.is_probe {
            add_scan(&scope.context, &scope.tree, &part.leaf, part.sources.len(), part.leaf_runs);
            ask_for_flush(&scope.context, &scope.tree, &part.leaf, &version.active);
        }
        let sources = open_sources(scope, &version, direction, seq, &mut part)?;
        let options = VisibleOptions {
            snapshot: seq,
            direction,
            range_deletes: part.range_deletes,
            update: scope.tree.update().cloned(),
            values: Some(Arc::new(Values(Arc::clone(&scope.context.runs)))),
            own: own_writes(scope),
        };
        let merge = VisibleMerge::new(pins.pin_sources(&scope.context.cursors, sources), options);
        let (leaf, lo, hi) = (part.leaf, part.lo, part.hi);
        Ok(Self { merge, direction, leaf, lo, hi, begins_after_empty, reported: (0, 0) })
    }

    /// Returns whether `key` lies ahead of the current entry of the walk, within its leaf.
    pub(super) fn is_ahead(&self, direction: Direction, key: &[u8]) -> bool {
        let is_ahead = match direction {
            Direction::Forward => {
                *key > *self.merge.key() && self.hi.as_ref().is_none_or(|hi| *key < **hi)
            }
            Direction::Backward => *key <= *self.merge.key() && *key > *self.lo,
        };
        is_ahead && self.direction == direction
    }

    /// Counts the deletes stepped over since the last report, and posts a hint if the walk has
    /// stepped over a tombstone run. Returns the number of committed deletes among them.
    pub(super) fn report(&mut self, scope: &Scope) -> u64 {
        let stats = self.merge.stats();
        let (passed, own) = (stats.deletes_passed, stats.own_deletes_passed);
        let (new, new_own) = (passed - self.reported.0, own - self.reported.1);
        self.reported = (passed, own);
        if new + new_own > 0 && !scope.is_probe {
            scope.context.counters.add_tombstones(new + new_own);
        }
        // The reader's own deletes give no reason for compaction.
        if new == 0 {
            return 0;
        }
        if passed > TOMBSTONE_RUN {
            self.leaf.hints.request_tombstone_compaction();
            scope.context.hints.post(&scope.tree, self.leaf.id);
        }
        new
    }
}

/// Returns the sources of a walk, newest first.
fn open_sources(
    scope: &Scope,
    version: &Version,
    direction: Direction,
    seq: SeqNo,
    part: &mut Segment,
) -> Result<Vec<Box<dyn Source>>> {
    let mut sources: Vec<Box<dyn Source>> = Vec::with_capacity(part.sources.len() + 2);
    let expecting = |mut source: Box<dyn Source>| {
        source.expect(scope.expected);
        source
    };
    for writes in scope.writes() {
        let writes = writes.sources(direction, &part.lo, part.hi.as_deref())?;
        sources.extend(writes.into_iter().map(expecting));
    }
    let from = Bound::Included(&*part.lo);
    let to = part.hi.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    let has_base = !part.leaf.base().is_empty();
    for source in version.sources() {
        if !source.memtable.is_empty() {
            let mut cursor = source.memtable.visible_cursor(direction, from, to, seq);
            if has_base {
                cursor.expect(MEMTABLE_MESSAGES);
                sources.push(Box::new(cursor));
            } else {
                sources.push(expecting(Box::new(cursor)));
            }
        }
        for run in source.runs() {
            sources.extend(part.source_of(run, direction, seq)?.map(expecting));
        }
    }
    sources.append(&mut part.sources);
    Ok(sources)
}

/// Returns the SeqNos by which the merge distinguishes the transaction's writes from committed
/// messages.
fn own_writes(scope: &Scope) -> Option<OwnMessages> {
    scope.writes().next()?;
    let own = scope.own.as_ref();
    Some(OwnMessages {
        from: OWN_SEQS,
        seen_from: if scope.overlay.is_some() { OVERLAY_SEQS } else { OWN_SEQS },
        upto: own.map_or(0, OwnWrites::upto),
        range_deletes: own.map(|own| Arc::clone(own.range_deletes())).unwrap_or_default(),
    })
}
