//! Long stretches of deletes (rule 15): noticed in memtables and in new runs, and cleaned away at
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

use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_memtable::Memtable;
use frondb_trunk::install::Made;
use frondb_trunk::plan::DELETE_STRETCH;
use frondb_trunk::{Key, Node};

use crate::tree::TreeCore;

/// Deletes by which a memtable grows before it is looked through again.
const LOOK_EVERY: u64 = DELETE_STRETCH / 8;

/// A range of keys, `[lo, hi)`.
type KeyRange = (Key, Option<Key>);

/// Whether the tree's active memtable holds a stretch that is to be cleaned away. Cheap to ask
/// after every commit.
pub(crate) fn is_due(tree: &TreeCore) -> bool {
    let version = tree.version();
    let memtable = &version.active.memtable;
    if memtable.hidden() > DELETE_STRETCH && memtable.len() > DELETE_STRETCH {
        // What a range delete hides of runs is stepped over at once, of its own memtable one by one.
        return true;
    }
    // Counts all over the tree, so it is an upper bound.
    if memtable.delete_stretch() <= DELETE_STRETCH {
        // Of a new memtable, if there was a long one before.
        tree.stretch_looked.store(0, Ordering::Relaxed);
        return false;
    }
    let deletes = memtable.deletes();
    if deletes.saturating_sub(tree.stretch_looked.load(Ordering::Relaxed)) < LOOK_EVERY {
        return false;
    }
    tree.stretch_looked.store(deletes, Ordering::Relaxed);
    !Finder::find(&version.trunk.root, memtable).is_empty()
}

/// Asks the nodes below `root` that a flush of `memtable` brought a long stretch to for cleaning.
pub(crate) fn ask_after_flush(root: &Arc<Node>, memtable: &Memtable, made: &[Made]) {
    if memtable.delete_stretch() <= DELETE_STRETCH {
        return;
    }
    let stretches = Finder::find(root, memtable);
    for made in made {
        let meta = made.run.meta();
        let meets = |(lo, hi): &KeyRange| {
            **lo <= *meta.last_key && hi.as_ref().is_none_or(|hi| *meta.first_key < **hi)
        };
        if meta.deletes > 0 && stretches.iter().any(meets) {
            receivers(root, made).for_each(|node| node.heat.ask_clean());
        }
    }
}

/// An inner node that was to be cleaned was flushed: asks the children that the stretch went to.
pub(crate) fn ask_after_node_flush(node: &Arc<Node>, made: &[Made]) {
    for made in made {
        let meta = made.run.meta();
        for child in receivers(node, made) {
            // Its totals have the new run in them already.
            let dense =
                meta.deletes * 4 >= child.totals.entries || meta.deletes > DELETE_STRETCH / 2;
            if meta.deletes * 2 > meta.entries && dense {
                child.heat.ask_clean();
            }
        }
    }
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

/// Goes through the leaves in key order.
struct Finder<'a> {
    memtable: &'a Memtable,
    /// Where the stretch that goes on began, and its messages so far.
    lo: Key,
    messages: u64,
    found: Vec<KeyRange>,
}

impl<'a> Finder<'a> {
    fn find(root: &Node, memtable: &'a Memtable) -> Vec<KeyRange> {
        let mut finder =
            Self { memtable, lo: Arc::clone(&root.lo), messages: 0, found: Vec::new() };
        finder.visit(root, 0);
        finder.found
    }

    /// `from` is how many messages lie below the node. Returns how many lie below its end.
    fn visit(&mut self, node: &Node, from: u64) -> u64 {
        let rank = |key: &Key| self.memtable.approximate_rank(key);
        let end = node.hi.as_ref().map_or_else(|| self.memtable.len(), rank).max(from);
        if end == from || node.is_leaf() {
            self.add(node, end - from);
        } else {
            let mut from = from;
            for child in node.children() {
                from = self.visit(child, from);
            }
        }
        end
    }

    /// Takes a leaf, or a node without any messages, into the stretch.
    fn add(&mut self, node: &Node, messages: u64) {
        self.messages += messages;
        if self.messages > DELETE_STRETCH {
            match self.found.last_mut() {
                Some((lo, hi)) if *lo == self.lo => hi.clone_from(&node.hi),
                _ => self.found.push((Arc::clone(&self.lo), node.hi.clone())),
            }
        }
        if messages * 2 < node.totals.entries {
            // It ends inside this leaf, and another may begin there.
            self.lo = Arc::clone(&node.lo);
            self.messages = messages;
        }
    }
}
