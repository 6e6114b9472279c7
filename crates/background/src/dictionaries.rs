//! [`Dictionaries`]: the current dictionary of each tree. `packing.rs` makes the dictionaries.

use std::collections::HashMap;

use frondb_core::TreeId;
use frondb_core::sync::{Arc, Mutex};
use frondb_run::HeldDictionary;

#[derive(Default)]
pub(crate) struct Dictionaries {
    trees: Mutex<HashMap<TreeId, Arc<Mutex<Current>>>>,
}

/// The dictionary that a tree is packed with now. Locked while a dictionary is trained, so that
/// another job on the tree waits instead of training its own.
#[derive(Default)]
pub(crate) struct Current {
    pub(crate) dictionary: Option<Arc<HeldDictionary>>,
    /// Size of the tree when training was last tried, bytes.
    pub(crate) tried: u64,
}

impl Dictionaries {
    /// The state of the tree's dictionary. A dropped tree gets a temporary state that is not
    /// stored.
    pub(crate) fn of(
        &self,
        tree: TreeId,
        was_dropped: impl FnOnce() -> bool,
    ) -> Arc<Mutex<Current>> {
        let mut trees = self.trees.lock();
        // Checked with the lock held: a tree that is dropped later calls `forget` after this.
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
