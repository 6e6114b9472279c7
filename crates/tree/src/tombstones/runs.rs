//! Long found of deletes (rule 15): noticed in memtables and in new runs, and cleaned away at
//! once, so that the first and the last key are found without stepping over them.
//!
//! Deletes make a stretch where they are dense: a leaf of which they take the most, its neighbours
//! of which the same is true, and the part of the leaves at both ends. Deletes all over a tree leave
//! live keys between them, and cleaning for them would write the whole tree again and again: who
//! deletes the oldest rows of a table deletes their secondary entries at random.
//!
//! ```text
//!   leaves          | 200 | 210 | 190 | 220 | 230 |     thousands of entries
//!   deletes         |  40 | 205 | 190 |  60 |   1 |
//!   dense                    x     x                    -> one stretch of 40 + 205 + 190 + 60
//! ```
//!
//! A stretch that begins a leaf is trimmed off, which writes nothing, so it may be short
//! ([`TRUNCATION_RUN`]): that is what a table from whose beginning rows are deleted asks for. For any
//! other a leaf is written again, so it must be long ([`TOMBSTONE_RUN`]).

use std::ops::Bound;

use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_core::{Chunk, Direction, MessageKind, SeqNo, Source};
use frondb_memtable::Memtable;
use frondb_run::KeyAfter;
use frondb_trunk::install::Made;
use frondb_trunk::plan::{TOMBSTONE_RUN, TRUNCATION_RUN};
use frondb_trunk::{Key, Node, View};

use crate::tree::TreeCore;

/// Deletes by which a memtable grows before it is looked through again, at least.
const LOOK_EVERY: u64 = TRUNCATION_RUN / 4;

/// A range of keys, `[lo, hi)`.
type KeyRange = (Key, Option<Key>);

/// Whether the tree's active memtable holds a stretch that is to be cleaned away. Cheap to ask
/// after every commit.
pub fn is_due(tree: &TreeCore) -> bool {
    let version = tree.version();
    let memtable = &version.active.memtable;
    if memtable.hidden() > TOMBSTONE_RUN && memtable.len() > TOMBSTONE_RUN {
        // What a range delete hides of runs is stepped over at once, of its own memtable one by one.
        return true;
    }
    let deletes = memtable.deletes();
    // What else is in the memtable would be flushed early, too, in small runs: where rows come at
    // one end and go at the other, the base would be full of them.
    let mostly_deletes = deletes * 4 >= memtable.len() * 3;
    let shortest = if mostly_deletes { TRUNCATION_RUN } else { TOMBSTONE_RUN };
    // Counts all over the tree, so it is an upper bound.
    if memtable.tombstone_run() <= shortest {
        // Of a new memtable, if there was a long one before.
        tree.tombstones_searched.store(0, Ordering::Relaxed);
        return false;
    }
    let looked = tree.tombstones_searched.load(Ordering::Relaxed);
    // A look goes through all leaves: the more deletes are spread over them, the seldomer.
    if deletes.saturating_sub(looked) < (looked / 8).clamp(LOOK_EVERY, TOMBSTONE_RUN / 4) {
        return false;
    }
    tree.tombstones_searched.store(deletes, Ordering::Relaxed);
    let found = TombstoneRuns::find(&version.trunk.root, memtable);
    !found.long.is_empty() || mostly_deletes && !found.begin.is_empty()
}

/// Asks the nodes below `root` that a flush brought one of its memtable's `found` to for trimming
/// or cleaning.
pub fn request_after_flush(root: &Arc<Node>, found: &TombstoneRuns, made: &[Made]) {
    if found.long.is_empty() && found.begin.is_empty() {
        return;
    }
    let trims = !found.begin.is_empty();
    for made in made {
        let meta = made.run.meta();
        if meta.deletes == 0 {
            continue;
        }
        let meets = |(lo, hi): &KeyRange| {
            **lo <= *meta.last_key && hi.as_ref().is_none_or(|hi| *meta.first_key < **hi)
        };
        let begins = found.begin.iter().any(meets);
        let is_long = found.long.iter().any(meets);
        for node in receivers(root, made) {
            if begins && node.is_leaf() {
                node.hints.request_prefix_truncation();
            }
            // Other found of such a memtable were cut short.
            let is_long = is_long || trims && !begins && holds_many_deletes(node);
            if is_long || begins && !node.is_leaf() {
                node.hints.request_tombstone_compaction();
            }
        }
    }
}

/// An inner node that was to be cleaned was flushed: asks the children that the stretch went to.
pub fn request_after_node_flush(node: &Arc<Node>, made: &[Made]) {
    for made in made {
        let meta = made.run.meta();
        if meta.deletes * 2 <= meta.entries {
            continue;
        }
        for child in receivers(node, made) {
            // Its totals have the new run in them already.
            let dense =
                meta.deletes * 4 >= child.totals.entries || meta.deletes > TOMBSTONE_RUN / 2;
            let worth_trimming = meta.deletes > TRUNCATION_RUN / 8;
            if worth_trimming && child.is_leaf() {
                // What that leaves is cleaned.
                child.hints.request_prefix_truncation();
            }
            if dense || worth_trimming && !child.is_leaf() {
                child.hints.request_tombstone_compaction();
            }
        }
    }
}

/// Whether a node's runs hold enough deletes for a long stretch.
fn holds_many_deletes(node: &Node) -> bool {
    node.runs.iter().map(View::deletes).sum::<u64>() > TOMBSTONE_RUN
}

/// The children whose range the run reaches; a leaf takes it itself.
fn receivers<'a>(node: &'a Arc<Node>, made: &'a Made) -> impl Iterator<Item = &'a Arc<Node>> {
    let meta = made.run.meta();
    let reaches = |child: &&Arc<Node>| {
        *child.lo <= *meta.last_key && child.hi.as_ref().is_none_or(|hi| *meta.first_key < **hi)
    };
    let itself = node.is_leaf().then_some(node);
    node.children().iter().chain(itself).filter(reaches)
}

/// What a memtable's deletes make, by range.
#[derive(Default)]
pub struct TombstoneRuns {
    /// Longer than [`TOMBSTONE_RUN`].
    long: Vec<KeyRange>,
    /// Longer than [`TRUNCATION_RUN`], from the beginning of a leaf on.
    begin: Vec<KeyRange>,
}

impl TombstoneRuns {
    /// Reads block indexes that are not in the cache, so it is not for use under a lock.
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
}

/// Whether at least half of a short stretch lies before the first key from `lo` on that the
/// memtable gives a value: ranks count messages of every kind, and a trim would end there.
fn begins_with_deletes(memtable: &Memtable, lo: &[u8]) -> bool {
    let (from, to) = (Bound::Included(lo), Bound::Unbounded);
    let mut cursor = memtable.cursor(Direction::Forward, from, to, SeqNo::MAX);
    let (mut chunk, mut last, mut deletes) = (Chunk::new(), None::<Vec<u8>>, 0);
    while deletes < TRUNCATION_RUN / 2 && matches!(cursor.next_chunk(&mut chunk), Ok(true)) {
        for (i, &kind) in chunk.kinds.iter().enumerate() {
            if last.as_deref() == Some(chunk.key(i)) {
                // An older message of the same key.
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

/// Gathers a stretch leaf by leaf.
struct Gatherer {
    /// Where the stretch that goes on began, and its messages so far.
    lo: Key,
    messages: u64,
    found: Vec<KeyRange>,
}

impl Gatherer {
    /// The stretch reaches into `node`, or to its end.
    fn reaches(&mut self, node: &Node) {
        match self.found.last_mut() {
            Some((lo, hi)) if *lo == self.lo => hi.clone_from(&node.hi),
            _ => self.found.push((Arc::clone(&self.lo), node.hi.clone())),
        }
    }
}

/// Goes through the leaves in key order.
struct Finder<'a> {
    memtable: &'a Memtable,
    /// Its first key.
    first: Vec<u8>,
    long: Gatherer,
    begin: Gatherer,
}

impl Finder<'_> {
    /// `from` is how many messages lie below the node. Returns how many lie below its end.
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

    /// Takes a leaf, or a node without any messages, into the long stretch.
    fn add_long(&mut self, node: &Node, messages: u64) {
        let long = &mut self.long;
        long.messages += messages;
        if long.messages > TOMBSTONE_RUN {
            long.reaches(node);
        }
        if messages * 2 < node.totals.entries {
            // It ends inside this leaf, and another may begin there.
            long.lo = Arc::clone(&node.lo);
            long.messages = messages;
        }
    }

    /// Takes the same into the stretch that begins a leaf; `from` messages lie below it.
    fn add_begin(&mut self, node: &Node, from: u64, messages: u64) {
        let is_dense = messages * 2 >= self.entries_reached(node);
        let can_truncate_prefix = !node.is_leaf() || node.can_truncate_prefix();
        let before = self.begin.messages;
        self.begin.messages += messages;
        if self.begin.messages > TRUNCATION_RUN && can_truncate_prefix {
            let rest = TRUNCATION_RUN.saturating_sub(before);
            if is_dense || messages > 0 && self.is_dense_up_to(node, from, rest) {
                self.begin.reaches(node);
            }
        }
        if !is_dense || !can_truncate_prefix {
            // It ends inside this leaf; another may begin with the next.
            self.begin.lo = node.hi.clone().unwrap_or_else(|| Arc::clone(&node.lo));
            self.begin.messages = 0;
        }
    }

    /// Messages that a node has from the memtable's first key on: what lies before may be hidden by
    /// earlier deletes that are on their way down.
    fn entries_reached(&self, node: &Node) -> u64 {
        let all = node.totals.entries;
        if !node.is_leaf() || *node.lo >= *self.first || !node.covers(&self.first) {
            return all;
        }
        self.key_after(node, u64::MAX).map_or(all, |reached| reached.entries.min(all))
    }

    /// Whether most of the first `n` messages of a leaf's base seem to be deleted, those not counted
    /// that lie before the memtable's first key.
    fn is_dense_up_to(&self, leaf: &Node, from: u64, n: u64) -> bool {
        let Some(KeyAfter { key: Some(key), entries }) = self.key_after(leaf, n) else {
            return false;
        };
        let messages = self.memtable.approximate_rank(&key).saturating_sub(from);
        messages * 4 >= entries * 3
    }

    /// The key that about `n` messages of a leaf's base lie before, counted from the memtable's first
    /// key. `None` if an index cannot be read: who reads or merges the leaf will say why.
    fn key_after(&self, leaf: &Node, n: u64) -> Option<KeyAfter> {
        let mut passed = 0;
        for view in leaf.base() {
            let (lo, hi) = (view.first_key().max(&self.first), view.hi.as_deref());
            if hi.is_some_and(|hi| hi <= lo) {
                continue;
            }
            // A view may have passed more: what is counted is whole blocks.
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
