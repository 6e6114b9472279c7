//! [`ViewCounts`]: the number of views of each run in the newest trunk of a tree.

use std::collections::HashMap;

use frondb_core::RunId;
use frondb_trunk::Trunk;

type Counts = HashMap<RunId, u32>;

/// The number of views of each run in the newest trunk. Most trees are idle, and a database may
/// have very many, so the counts exist only from recovery, or the first install after the tree was
/// created or stowed, until the tree is stowed.
#[derive(Default)]
pub struct ViewCounts(Option<Box<Counts>>);

impl ViewCounts {
    /// Returns the counts, which the caller may change. If the counts do not exist yet, first
    /// counts the views of `trunk`, the newest trunk.
    pub fn of(&mut self, trunk: &Trunk) -> &mut Counts {
        self.0.get_or_insert_with(|| {
            let mut counts = Counts::new();
            trunk.for_each(&mut |node| {
                for view in node.views() {
                    *counts.entry(view.run.meta().id).or_insert(0) += 1;
                }
            });
            Box::new(counts)
        })
    }
}

impl From<Counts> for ViewCounts {
    fn from(counts: Counts) -> Self {
        Self(Some(Box::new(counts)))
    }
}
