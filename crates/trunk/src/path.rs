//! The runs that a point lookup visits below the memtables, one at a time: for a lookup that pauses
//! where a block has to be read. [`Trunk::get`] visits the same runs in the same order.

use frondb_core::SeqNo;
use frondb_core::sync::Arc;
use frondb_merge::Lookup;
use frondb_run::Run;

use crate::node::{Node, Trunk};

/// The position of a lookup on its way down from the root.
#[derive(Clone, Copy, Debug)]
pub struct LookupPath<'a> {
    node: &'a Node,
    /// Views of the node that were visited.
    views: usize,
}

impl Trunk {
    /// The way of a lookup, before its first run.
    #[must_use]
    pub fn lookup_path(&self) -> LookupPath<'_> {
        LookupPath { node: &self.root, views: 0 }
    }
}

impl<'a> LookupPath<'a> {
    /// The next older run that may have `key`; `None` at the end. Tells `lookup` the range deletes of
    /// the nodes on the way that `snapshot` sees.
    pub fn next_run(
        &mut self,
        key: &[u8],
        snapshot: SeqNo,
        lookup: &mut Lookup,
    ) -> Option<&'a Arc<Run>> {
        loop {
            if self.views == 0 && !self.node.range_deletes.is_empty() {
                lookup.hide_below(self.node.range_deletes.newest_covering(key, snapshot));
            }
            for view in self.node.views().skip(self.views) {
                self.views += 1;
                if view.covers(key) {
                    return Some(&view.run);
                }
            }
            *self = Self { node: self.node.child_for(key)?, views: 0 };
        }
    }
}
