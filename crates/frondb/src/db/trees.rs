//! The trees of a database: creating, opening, listing, renaming and dropping them.

use frondb_core::sync::Arc;
use frondb_core::{Error, ErrorKind, Result};
use frondb_txn::prepared::{check_no_writer, keep_commits};

use super::Db;
use crate::open::parts::Parts;
use crate::options::TreeOptions;
use crate::tree::Tree;

impl Db {
    /// Creates an empty tree, durably.
    ///
    /// # Errors
    /// `Exists`; `Invalid` for a bad name or option, or for an update function that is not
    /// registered; `NoSpace`, `Poisoned`, `Closed`.
    pub fn create_tree(&self, name: &str, options: TreeOptions) -> Result<Tree> {
        let _call = self.open.begin_call()?;
        let tree = self.open.catalog.create(name, options)?;
        Ok(Tree::new(Arc::clone(&self.open), tree, self.commit_sync))
    }

    /// Returns the tree of this name.
    ///
    /// # Errors
    /// `NotFound`; `Closed`.
    pub fn open_tree(&self, name: &str) -> Result<Tree> {
        let tree = self.open.catalog.open(name)?;
        Ok(Tree::new(Arc::clone(&self.open), tree, self.commit_sync))
    }

    /// Returns the tree of this name. If there is none, creates it with these options, durably. The
    /// options of an existing tree stay as they are
    /// ([`Tree::set_options`](crate::Tree::set_options) changes them).
    ///
    /// ```
    /// # use frondb::{Db, Options, TreeOptions};
    /// # fn main() -> frondb::Result<()> {
    /// # let dir = frondb_testkit::TempDir::new("doc");
    /// # let db = Db::open(dir.path(), Options::default())?;
    /// db.open_or_create_tree("users", TreeOptions::default())?.put("ada", "1")?;
    /// assert!(db.open_or_create_tree("users", TreeOptions::default())?.exists("ada")?);
    /// # db.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a bad name or option, for an update function that is not registered, or if the
    /// tree exists and the options name an update function that is not the tree's; `NoSpace`,
    /// `Poisoned`, `Closed`.
    pub fn open_or_create_tree(&self, name: &str, options: TreeOptions) -> Result<Tree> {
        loop {
            match self.open_tree(name) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Ok(tree) => return checked(tree, &options),
                Err(error) => return Err(error),
            }
            match self.create_tree(name, options.clone()) {
                // Another thread has created it in the meantime.
                Err(error) if error.kind() == ErrorKind::Exists => {}
                created => return created,
            }
        }
    }

    /// Returns the names of all trees, sorted.
    #[must_use]
    pub fn list_trees(&self) -> Vec<String> {
        self.open.catalog.list()
    }

    /// Renames a tree, durably. Open handles stay valid.
    ///
    /// # Errors
    /// `NotFound`; `Exists`; `Invalid` for a bad name; `NoSpace`, `Poisoned`, `Closed`.
    pub fn rename_tree(&self, from: &str, to: &str) -> Result<()> {
        let _call = self.open.begin_call()?;
        self.open.catalog.rename(from, to)
    }

    /// Removes a tree and its data immediately, durably. Open cursors on it stay usable.
    ///
    /// # Errors
    /// `NotFound`; `Busy` if a prepared transaction has written to the tree: commit it or roll it
    /// back first; `NoSpace`, `Poisoned`, `Closed`.
    pub fn drop_tree(&self, name: &str) -> Result<()> {
        let _call = self.open.begin_call()?;
        let Parts { background, catalog, committer, jobs, prepared, .. } = &self.open.parts;
        let tree = catalog.remove(committer, name, |tree| {
            check_no_writer(prepared, tree)?;
            keep_commits(prepared, tree)
        })?;
        background.queue.forget(tree.id);
        jobs.forget(tree.id);
        background.touched();
        background.queue.add_maintenance();
        Ok(())
    }

    pub(crate) fn trees(&self) -> Result<Vec<Tree>> {
        let open = |name: String| match self.open_tree(&name) {
            // The tree was dropped after it was listed.
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            other => Some(other),
        };
        self.list_trees().into_iter().filter_map(open).collect::<Result<_, Error>>()
    }
}

/// Returns the tree. Fails if the options name another update function than the tree has: updates
/// of the caller would fail, or have another meaning.
fn checked(tree: Tree, options: &TreeOptions) -> Result<Tree> {
    let has = tree.options().update_fn;
    match &options.update_fn {
        Some((name, version)) if has != options.update_fn => Err(Error::invalid(format!(
            "tree {:?} exists {}, not with {name:?} version {version}: create a tree of another name, or open \
             it with its own options",
            tree.name(),
            match has {
                None => "without an update function".to_owned(),
                Some((name, version)) => format!("with update function {name:?} version {version}"),
            }
        ))),
        _ => Ok(tree),
    }
}
