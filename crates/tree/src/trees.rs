//! [`Trees`]: the trees of an open database by id.

use std::collections::BTreeMap;

use frondb_core::TreeId;
use frondb_core::sync::{Arc, RwLock};

use crate::tree::TreeCore;

/// The trees of an open database by id. Any thread may use it.
#[derive(Default)]
pub struct Trees {
    by_id: RwLock<BTreeMap<TreeId, Arc<TreeCore>>>,
}

impl Trees {
    /// Returns the tree with this id.
    #[must_use]
    pub fn get(&self, id: TreeId) -> Option<Arc<TreeCore>> {
        self.by_id.read().get(&id).cloned()
    }

    /// Returns all trees in the order of their ids.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<TreeCore>> {
        self.by_id.read().values().cloned().collect()
    }

    /// Calls `visit` for each tree in the order of the ids, under the lock: `visit` must not add or
    /// remove trees.
    pub fn for_each(&self, mut visit: impl FnMut(&Arc<TreeCore>)) {
        self.by_id.read().values().for_each(&mut visit);
    }

    /// Returns the number of trees.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_id.read().len()
    }

    /// Returns whether there is no tree.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_id.read().is_empty()
    }

    /// Adds a tree to the list.
    pub fn insert(&self, tree: Arc<TreeCore>) {
        self.by_id.write().insert(tree.id, tree);
    }

    /// Removes a tree from the list. Its handles stay valid.
    pub fn remove(&self, id: TreeId) {
        self.by_id.write().remove(&id);
    }

    /// Returns the tree with the largest active memtable, which is frozen first when the write
    /// buffer is full; `None` if all active memtables are empty.
    #[must_use]
    pub fn largest(&self) -> Option<Arc<TreeCore>> {
        let trees = self.by_id.read();
        let sizes = trees.values().map(|tree| (tree, tree.active_bytes()));
        let largest = sizes.max_by_key(|(_, bytes)| *bytes).filter(|(_, bytes)| *bytes > 0);
        largest.map(|(tree, _)| Arc::clone(tree))
    }
}
