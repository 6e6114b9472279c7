//! Tombstone runs (rule 15): finds long runs of deletes in memtables and in new runs, and requests
//! that they are compacted immediately, so that a reader finds the first and the last key without
//! stepping over them.
//!
//! Deletes make a tombstone run where they are dense: in adjacent leaves in which they delete most
//! entries, and in the neighbouring parts of the leaves before and after these. Deletes that are
//! spread over a tree leave live keys between them. To compact because of such deletes would
//! rewrite the whole tree again and again: a client that deletes the oldest rows of a table deletes
//! entries of its secondary indexes at random.
//!
//! ```text
//!   leaves          | 200 | 210 | 190 | 220 | 230 |     thousands of entries
//!   deletes         |  40 | 205 | 190 |  60 |   1 |
//!   dense                    x     x                    -> one run of 40 + 205 + 190 + 60
//! ```
//!
//! For a run at the beginning of a leaf, a prefix truncation is enough. The truncation writes no
//! data, so the run may be short ([`TRUNCATION_RUN`]); a table whose first rows are deleted has
//! such runs. For any other run a leaf is rewritten, so the run must be long ([`TOMBSTONE_RUN`]).

use std::ops::Bound;

use frondb_core::sync::Arc;
use frondb_core::{Chunk, Direction, MessageKind, SeqNo, Source};
use frondb_memtable::Memtable;
use frondb_run::KeyAfter;
use frondb_trunk::install::PlacedRun;
use frondb_trunk::plan::{TOMBSTONE_RUN, TRUNCATION_RUN};
use frondb_trunk::{Key, Node, View};

/// A range of keys, `[lo, hi)`.
type KeyRange = (Key, Option<Key>);

/// Requests prefix truncation or tombstone compaction of the nodes below `root` to which a flush
/// has brought tombstone runs. `found` has the tombstone runs of the flushed memtable, `new_runs`
/// the slices that the flush wrote.
pub fn request_after_flush(root: &Arc<Node>, found: &TombstoneRuns, new_runs: &[PlacedRun]) {
    if found.long.is_empty() && found.begin.is_empty() {
        return;
    }
    let truncates = !found.begin.is_empty();
    for placed in new_runs {
        let meta = placed.run.meta();
        if meta.deletes == 0 {
            continue;
        }
        let meets = |(lo, hi): &KeyRange| {
            **lo <= *meta.last_key && hi.as_ref().is_none_or(|hi| *meta.first_key < **hi)
        };
        let begins = found.begin.iter().any(meets);
        let is_long = found.long.iter().any(meets);
        for node in receivers(root, placed) {
            if begins && node.is_leaf() {
                node.hints.request_prefix_truncation();
            }
            // The memtable was flushed early because of a tombstone run at the beginning of a leaf,
            // so its other tombstone runs may be shorter than they would have become.
            let is_long = is_long || truncates && !begins && holds_many_deletes(node);
            if is_long || begins && !node.is_leaf() {
                node.hints.request_tombstone_compaction();
            }
        }
    }
}

/// After a flush of an inner node, passes the node's request for tombstone compaction to the
/// children that received the tombstone run. `new_runs` has the slices that the flush wrote.
pub fn request_after_node_flush(node: &Arc<Node>, new_runs: &[PlacedRun]) {
    for placed in new_runs {
        let meta = placed.run.meta();
        if meta.deletes * 2 <= meta.entries {
            continue;
        }
        for child in receivers(node, placed) {
            // The totals of the child include the new slice.
            let is_dense =
                meta.deletes * 4 >= child.totals.entries || meta.deletes > TOMBSTONE_RUN / 2;
            let is_worth_truncating = meta.deletes > TRUNCATION_RUN / 8;
            if is_worth_truncating && child.is_leaf() {
                // If the deletes are dense, a tombstone compaction also removes the deletes that
                // the truncation leaves.
                child.hints.request_prefix_truncation();
            }
            if is_dense || is_worth_truncating && !child.is_leaf() {
                child.hints.request_tombstone_compaction();
            }
        }
    }
}

/// Returns whether a node's runs hold enough deletes for a long tombstone run.
fn holds_many_deletes(node: &Node) -> bool {
    node.runs.iter().map(View::deletes).sum::<u64>() > TOMBSTONE_RUN
}

/// Returns the nodes that have a view of a new slice: the children whose ranges the slice overlaps,
/// or a leaf itself.
fn receivers<'a>(
    node: &'a Arc<Node>,
    placed: &'a PlacedRun,
) -> impl Iterator<Item = &'a Arc<Node>> {
    let meta = placed.run.meta();
    let reaches = |child: &&Arc<Node>| {
        *child.lo <= *meta.last_key && child.hi.as_ref().is_none_or(|hi| *meta.first_key < **hi)
    };
    let itself = node.is_leaf().then_some(node);
    node.children().iter().chain(itself).filter(reaches)
}

/// The tombstone runs of a memtable, as key ranges.
#[derive(Default)]
pub struct TombstoneRuns {
    /// Runs longer than [`TOMBSTONE_RUN`].
    long: Vec<KeyRange>,
    /// Runs longer than [`TRUNCATION_RUN`] at the beginning of a leaf.
    begin: Vec<KeyRange>,
}

impl TombstoneRuns {
    /// Finds the tombstone runs that the deletes of a memtable make in the leaves below `root`. May
    /// read block indexes from disk, so the caller must hold no lock.
    pub fn find(root: &Node, memtable: &Memtable) -> Self {
        if memtable.tombstone_run() <= TRUNCATION_RUN {
            return Self::default();
        }
        let gatherer = || Gatherer { lo: Arc::clone(&root.lo), messages: 0, found: Vec::new() };
        let first = memtable.first_key().unwrap_or_default();
        let mut finder = Finder { memtable, first, long: gatherer(), begin: gatherer() };
        finder.visit(root, 0);
        let (long, mut begin) = (finder.long.found, finder.begin.found);
        begin.retain(|(lo, _)| begins_with_deletes(memtable, lo));
        Self { long, begin }
    }

    /// Returns whether the memtable should be flushed immediately. A run that is long enough only
    /// for a prefix truncation counts only if the memtable holds little else (`mostly_deletes`).
    pub(super) fn should_flush(&self, mostly_deletes: bool) -> bool {
        !self.long.is_empty() || mostly_deletes && !self.begin.is_empty()
    }
}

/// Returns whether the memtable deletes its first `TRUNCATION_RUN / 2` keys from `lo` on. A prefix
/// truncation would end at the first key to which the memtable gives a value, and the ranks by
/// which the run was found count messages of every kind.
fn begins_with_deletes(memtable: &Memtable, lo: &[u8]) -> bool {
    let (from, to) = (Bound::Included(lo), Bound::Unbounded);
    let mut cursor = memtable.cursor(Direction::Forward, from, to, SeqNo::MAX);
    let (mut chunk, mut last, mut deletes) = (Chunk::new(), None::<Vec<u8>>, 0);
    while deletes < TRUNCATION_RUN / 2 && matches!(cursor.next_chunk(&mut chunk), Ok(true)) {
        for (i, &kind) in chunk.kinds.iter().enumerate() {
            if last.as_deref() == Some(chunk.key(i)) {
                // This is an older message of the same key.
                continue;
            }
            if kind != MessageKind::Delete {
                return false;
            }
            deletes += 1;
            let last = last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(chunk.key(i));
        }
    }
    deletes >= TRUNCATION_RUN / 2
}

/// Gathers tombstone runs leaf by leaf.
struct Gatherer {
    /// Where the open run begins.
    lo: Key,
    /// Messages of the open run.
    messages: u64,
    /// Runs that are long enough.
    found: Vec<KeyRange>,
}

impl Gatherer {
    /// Extends the open run, which is long enough, to the end of `node`.
    fn extend_to(&mut self, node: &Node) {
        match self.found.last_mut() {
            Some((lo, hi)) if *lo == self.lo => hi.clone_from(&node.hi),
            _ => self.found.push((Arc::clone(&self.lo), node.hi.clone())),
        }
    }
}

/// Visits the leaves in key order.
struct Finder<'a> {
    memtable: &'a Memtable,
    /// The first key of the memtable.
    first: Vec<u8>,
    long: Gatherer,
    begin: Gatherer,
}

impl Finder<'_> {
    /// Visits a node. `from` is the number of memtable messages below the node's first key. Returns
    /// the number below the node's end.
    fn visit(&mut self, node: &Node, from: u64) -> u64 {
        let rank = |key: &Key| self.memtable.approximate_rank(key);
        let end = node.hi.as_ref().map_or_else(|| self.memtable.len(), rank).max(from);
        if end == from || node.is_leaf() {
            self.add_long(node, end - from);
            self.add_begin(node, from, end - from);
        } else {
            let mut from = from;
            for child in node.children() {
                from = self.visit(child, from);
            }
        }
        end
    }

    /// Adds a leaf, or a node without messages, to the open long run.
    fn add_long(&mut self, node: &Node, messages: u64) {
        let long = &mut self.long;
        long.messages += messages;
        if long.messages > TOMBSTONE_RUN {
            long.extend_to(node);
        }
        if messages * 2 < node.totals.entries {
            // The open run ends inside this leaf, and another may begin inside the leaf.
            long.lo = Arc::clone(&node.lo);
            long.messages = messages;
        }
    }

    /// Adds a node to the open run at the beginning of a leaf. `from` is the number of memtable
    /// messages below the node's first key.
    fn add_begin(&mut self, node: &Node, from: u64, messages: u64) {
        let is_dense = messages * 2 >= self.entries_reached(node);
        let can_truncate_prefix = !node.is_leaf() || node.can_truncate_prefix();
        let before = self.begin.messages;
        self.begin.messages += messages;
        if self.begin.messages > TRUNCATION_RUN && can_truncate_prefix {
            let rest = TRUNCATION_RUN.saturating_sub(before);
            if is_dense || messages > 0 && self.is_dense_up_to(node, from, rest) {
                self.begin.extend_to(node);
            }
        }
        if !is_dense || !can_truncate_prefix {
            // The run ends inside this leaf; another may begin with the next leaf.
            self.begin.lo = node.hi.clone().unwrap_or_else(|| Arc::clone(&node.lo));
            self.begin.messages = 0;
        }
    }

    /// Returns the number of messages of a node from the memtable's first key on. Messages before
    /// that key may be hidden by earlier deletes that inner nodes still buffer.
    fn entries_reached(&self, node: &Node) -> u64 {
        let all = node.totals.entries;
        if !node.is_leaf() || *node.lo >= *self.first || !node.covers(&self.first) {
            return all;
        }
        self.key_after(node, u64::MAX).map_or(all, |reached| reached.entries.min(all))
    }

    /// Returns whether the memtable seems to delete at least 3/4 of the first `n` messages of a
    /// leaf's base. Messages before the memtable's first key do not count.
    fn is_dense_up_to(&self, leaf: &Node, from: u64, n: u64) -> bool {
        let Some(KeyAfter { key: Some(key), entries }) = self.key_after(leaf, n) else {
            return false;
        };
        let messages = self.memtable.approximate_rank(&key).saturating_sub(from);
        messages * 4 >= entries * 3
    }

    /// Returns the key that follows about `n` messages of a leaf's base, counted from the
    /// memtable's first key, and the number of messages passed; no key if the base has fewer.
    /// `None` if a block index cannot be read; a read or a merge of the leaf will report the error.
    fn key_after(&self, leaf: &Node, n: u64) -> Option<KeyAfter> {
        let mut passed = 0;
        for view in leaf.base() {
            let (lo, hi) = (view.first_key().max(&self.first), view.hi.as_deref());
            if hi.is_some_and(|hi| hi <= lo) {
                continue;
            }
            // Earlier views may have passed more than `n`, because whole blocks are counted.
            let rest = n.saturating_sub(passed);
            let KeyAfter { key, entries } = view.run.key_after(lo, hi, rest).ok()?;
            passed += entries;
            if key.is_some() {
                return Some(KeyAfter { key, entries: passed });
            }
        }
        Some(KeyAfter { key: None, entries: passed })
    }
}
