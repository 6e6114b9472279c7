//! Trees that a bulk load creates. They become visible with all their data at the commit of the
//! load.
//!
//! ```text
//!  new_tree -> known to the load's writers only
//!           -> one append of edits: the trees as created by the load, their parts as pending
//!           -> the load's record in the log: the trees exist
//! ```
//!
//! Recovery drops such a tree unless the log contains the commit of the load. So after a crash at
//! any point of a load, either the complete tree exists or nothing of it.

use frondb_core::sync::Arc;
use frondb_core::{Error, ErrorKind, Result};
use frondb_records::TreeOptions;
use frondb_tree::TreeCore;

use super::load::BulkLoad;

impl BulkLoad {
    /// Creates a tree that becomes visible when the load is finished, even without entries. Before
    /// that, only writers of this load accept the tree; all other calls with it fail with
    /// `NotFound`.
    ///
    /// # Errors
    /// `Exists`, here or from [`finish`](Self::finish) if another thread takes the name first;
    /// `Invalid` for a bad name or option, an update function that is not registered, or a load
    /// that was finished; `Closed`, `Poisoned`.
    pub fn new_tree(&self, name: &str, options: TreeOptions) -> Result<Arc<TreeCore>> {
        let shared = &self.shared;
        let mut new_trees = self.new_trees.lock();
        if shared.gathered.lock().finished {
            return Err(Error::invalid("the load is already finished"));
        }
        if new_trees.iter().any(|new| *new.tree.name.read() == name) {
            let message = format!("the load already creates tree {name:?}");
            return Err(Error::new(ErrorKind::Exists, message));
        }
        let new = self.catalog.make_coming(name, options, shared.id)?;
        let tree = Arc::clone(&new.tree);
        new_trees.push(new);
        Ok(tree)
    }
}
