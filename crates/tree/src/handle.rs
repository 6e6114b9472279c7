//! [`Tree`]: the handle to a tree that callers hold.

use frondb_core::sync::Arc;
use frondb_core::{Error, ErrorKind, Result, TreeId};
use frondb_records::TreeOptions;

use crate::tree::TreeCore;

/// A handle to a tree. Cheap to clone and usable by any thread. The tree's memory is not freed
/// while a handle exists.
#[derive(Clone)]
pub struct Tree(Arc<TreeCore>);

impl Tree {
    /// A handle to this tree.
    #[must_use]
    pub fn new(core: Arc<TreeCore>) -> Self {
        Self(core)
    }

    /// The shared state of the tree.
    #[inline]
    #[must_use]
    pub fn core(&self) -> &Arc<TreeCore> {
        &self.0
    }

    /// The tree's id.
    #[must_use]
    pub fn id(&self) -> TreeId {
        self.0.id
    }

    /// The tree's name.
    #[must_use]
    pub fn name(&self) -> String {
        self.0.name.read().clone()
    }

    /// The tree's options.
    #[must_use]
    pub fn options(&self) -> Arc<TreeOptions> {
        self.0.options()
    }

    /// Fails if the tree cannot take updates: it was created without an update function, or the
    /// database was opened without that function.
    ///
    /// # Errors
    /// `Invalid`, naming the missing function.
    pub fn check_updates(&self) -> Result<()> {
        match (self.0.update(), self.0.missing()) {
            (None, _) => {
                Err(Error::invalid(format!("tree {:?} has no update function", self.name())))
            }
            (Some(_), Some(missing)) => Err(missing.clone()),
            (Some(_), None) => Ok(()),
        }
    }

    /// Fails if the tree belongs to another database than `engine`, was dropped, or is still being
    /// loaded.
    ///
    /// # Errors
    /// `Invalid` for a tree of another database, else `NotFound`.
    pub fn check(&self, engine: u64) -> Result<()> {
        if self.0.engine() != engine {
            return Err(Error::invalid(format!(
                "tree {:?} belongs to another open database",
                self.name()
            )));
        }
        let not_found =
            |why: &str| Error::new(ErrorKind::NotFound, format!("tree {:?} {why}", self.name()));
        if self.0.is_loading() {
            return Err(not_found("is not ready: its bulk load has not committed"));
        }
        if self.0.is_dropped() {
            return Err(not_found("was dropped"));
        }
        Ok(())
    }

    /// The number of the open database that the tree belongs to.
    #[must_use]
    pub fn engine_id(&self) -> u64 {
        self.0.engine()
    }
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tree({} {:?})", self.0.id, self.name())
    }
}
