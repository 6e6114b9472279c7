//! [`ViewCounts`]: how many views the newest trunk of a tree has of each run.

use std::collections::HashMap;

use frondb_core::RunId;
use frondb_trunk::Trunk;

type Counts = HashMap<RunId, u32>;

/// How many views the newest trunk has of each run. Most trees are idle, and a database may have very
/// many of them, so the counts exist from the first install on, and until the tree is stowed.
#[derive(Default)]
pub struct ViewCounts(Option<Box<Counts>>);

impl ViewCounts {
    /// The counts, to be read or changed. `trunk` is the newest trunk, in which the views are counted
    /// unless the counts are known.
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
