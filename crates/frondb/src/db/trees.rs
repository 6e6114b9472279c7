//! The trees of a database: creating, opening, listing, renaming and dropping them.

use frondb_core::sync::Arc;
use frondb_core::{Error, Result};

use super::Db;
use crate::options::TreeOptions;
use crate::tree::Tree;

impl Db {
    /// Creates an empty tree, durably.
    ///
    /// # Errors
    /// `Exists`; `Invalid` for a bad name or option, or for an update function that is not
    /// registered.
    pub fn create_tree(&self, name: &str, options: TreeOptions) -> Result<Tree> {
        let options =
            frondb_engine::TreeOptions { trunk: options.trunk, update_fn: options.update_fn };
        let tree = self.engine.create_tree(name, options)?;
        Ok(Tree::new(Arc::clone(&self.engine), tree, self.commit_sync))
    }

    /// Returns the tree of this name.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn open_tree(&self, name: &str) -> Result<Tree> {
        let tree = self.engine.open_tree(name)?;
        Ok(Tree::new(Arc::clone(&self.engine), tree, self.commit_sync))
    }

    /// The names of all trees, sorted.
    #[must_use]
    pub fn list_trees(&self) -> Vec<String> {
        self.engine.list_trees()
    }

    /// Renames a tree, durably. Open handles stay valid.
    ///
    /// # Errors
    /// `NotFound`, `Exists`, `Invalid`.
    pub fn rename_tree(&self, from: &str, to: &str) -> Result<()> {
        self.engine.rename_tree(from, to)
    }

    /// Removes a tree and its data immediately, durably. Open cursors on it stay usable.
    ///
    /// # Errors
    /// `NotFound`; `Busy` if a prepared transaction has written to the tree: commit it or roll it
    /// back first.
    pub fn drop_tree(&self, name: &str) -> Result<()> {
        self.engine.drop_tree(name)
    }

    pub(crate) fn trees(&self) -> Result<Vec<Tree>> {
        let open = |name: String| match self.open_tree(&name) {
            // The tree was dropped after it was listed.
            Err(error) if error.kind() == frondb_core::ErrorKind::NotFound => None,
            other => Some(other),
        };
        self.list_trees().into_iter().filter_map(open).collect::<Result<_, Error>>()
    }
}
