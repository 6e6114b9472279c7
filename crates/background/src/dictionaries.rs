//! [`Dictionaries`]: the current dictionary of each tree. `packing.rs` makes the dictionaries.

use std::collections::HashMap;

use frondb_core::TreeId;
use frondb_core::sync::{Arc, Mutex};
use frondb_run::HeldDictionary;

#[derive(Default)]
pub(crate) struct Dictionaries {
    trees: Mutex<HashMap<TreeId, Arc<Mutex<Current>>>>,
}

/// The dictionary with which a tree is packed now. A job holds the lock of this state while it
/// trains a dictionary, so that another job on the tree waits instead of training a second one.
#[derive(Default)]
pub(crate) struct Current {
    pub(crate) dictionary: Option<Arc<HeldDictionary>>,
    /// Size of the tree in bytes when training was last tried.
    pub(crate) tried: u64,
}

impl Dictionaries {
    /// Returns the state of the tree's dictionary. A dropped tree gets a temporary state that is
    /// not stored.
    pub(crate) fn of(
        &self,
        tree: TreeId,
        was_dropped: impl FnOnce() -> bool,
    ) -> Arc<Mutex<Current>> {
        let mut trees = self.trees.lock();
        // Check with the lock held: a drop of the tree after the check calls `forget` later, which
        // removes the entry.
        if was_dropped() {
            return Arc::default();
        }
        Arc::clone(trees.entry(tree).or_default())
    }

    pub(crate) fn forget(&self, tree: TreeId) {
        self.trees.lock().remove(&tree);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_kept_for_a_dropped_tree() {
        let (dictionaries, tree) = (Dictionaries::default(), TreeId(7));
        let first = dictionaries.of(tree, || false);
        assert!(Arc::ptr_eq(&first, &dictionaries.of(tree, || false)));
        dictionaries.forget(tree);
        // A job that began before the drop asks for the tree's dictionary after the drop.
        let late = dictionaries.of(tree, || true);
        assert!(!Arc::ptr_eq(&first, &late));
        assert!(dictionaries.trees.lock().is_empty());
    }
}
