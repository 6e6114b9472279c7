//! The runs that a point lookup visits below the memtables, one at a time, for a lookup that pauses
//! when it has to read a block. [`Trunk::get`] visits the same runs in the same order.

use frondb_core::SeqNo;
use frondb_core::sync::Arc;
use frondb_merge::Lookup;
use frondb_run::Run;

use crate::lookup::Asked;
use crate::node::{Node, Trunk};

/// The position of a lookup on its way down from the root.
#[derive(Clone, Copy, Debug)]
pub struct LookupPath<'a> {
    node: &'a Arc<Node>,
    /// Number of the node's views that were already visited.
    views: usize,
    /// Number of the node's visited runs above a base that may have the key.
    asked: usize,
}

impl Trunk {
    /// Returns a path at the root, before the first run.
    #[must_use]
    pub fn lookup_path(&self) -> LookupPath<'_> {
        LookupPath { node: &self.root, views: 0, asked: 0 }
    }
}

impl<'a> LookupPath<'a> {
    /// Returns the next older run that may have `key`; `None` at the end. Passes to `lookup`, for
    /// each visited node, the newest range delete over `key` that `snapshot` sees.
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
                    self.asked += usize::from(self.views <= self.node.runs.len());
                    return Some(&view.run);
                }
            }
            *self = Self { node: self.node.child_for(key)?, views: 0, asked: 0 };
        }
    }

    /// Returns the leaf that the lookup is in, and its cost there; `None` while it is in an inner
    /// node.
    #[must_use]
    pub fn asked(&self) -> Option<Asked<'a>> {
        self.node.is_leaf().then_some(Asked { leaf: self.node, runs: self.asked })
    }
}
