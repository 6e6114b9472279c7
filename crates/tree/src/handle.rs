//! [`AsTree`]: the handles by which callers name a tree; and the checks of a tree before a call.

use frondb_core::sync::Arc;
use frondb_core::{Error, ErrorKind, Result};

use crate::tree::TreeCore;

/// A handle to a tree. A call that accepts any kind of handle has a parameter of this trait.
pub trait AsTree {
    /// Returns the shared state of the tree.
    fn core(&self) -> &Arc<TreeCore>;
}

impl AsTree for Arc<TreeCore> {
    #[inline]
    fn core(&self) -> &Arc<TreeCore> {
        self
    }
}

impl<T: AsTree + ?Sized> AsTree for &T {
    #[inline]
    fn core(&self) -> &Arc<TreeCore> {
        (**self).core()
    }
}

impl TreeCore {
    /// Returns the tree's name.
    #[must_use]
    pub fn name(&self) -> String {
        self.name.read().clone()
    }

    /// Fails if the tree cannot take updates: it was created without an update function, or the
    /// database was opened without that function.
    ///
    /// # Errors
    /// `Invalid`, naming the tree and, if it has one, the missing function.
    pub fn check_updates(&self) -> Result<()> {
        match (self.update(), self.missing()) {
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
        if self.engine() != engine {
            return Err(Error::invalid(format!(
                "tree {:?} belongs to another open database",
                self.name()
            )));
        }
        let not_found =
            |why: &str| Error::new(ErrorKind::NotFound, format!("tree {:?} {why}", self.name()));
        if self.is_loading() {
            return Err(not_found("is not ready: its bulk load has not committed"));
        }
        if self.is_dropped() {
            return Err(not_found("was dropped"));
        }
        Ok(())
    }
}

impl std::fmt::Debug for TreeCore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tree({} {:?})", self.id, self.name())
    }
}
