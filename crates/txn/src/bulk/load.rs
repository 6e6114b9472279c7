//! [`BulkLoad`]: a bulk load from its beginning to its commit.

use frondb_catalog::Catalog;
use frondb_commit::{Attachment, NewTree};
use frondb_core::Result;
use frondb_core::sync::atomic::Ordering;
use frondb_core::sync::{Arc, Mutex};

use super::merging::Merging;
use super::options::{BulkOptions, BulkProgress, BulkReport, Duplicate};
use super::shared::LoadShared;
use super::writer::BulkWriter;
use crate::context::{KeepOpen, Transactions};

/// A bulk load in progress. Any thread may use it. A drop before [`finish`](Self::finish) undoes
/// the load.
pub struct BulkLoad {
    pub(super) shared: Arc<LoadShared>,
    pub(super) catalog: Arc<Catalog>,
    pub(super) new_trees: Mutex<Vec<NewTree>>,
}

impl Transactions {
    /// Begins a bulk load. The load creates its new trees in `catalog`, and keeps the database open
    /// with `open` until the load is dropped.
    ///
    /// # Errors
    /// `Invalid` if the database was opened read-only; `Closed`, `Poisoned`.
    pub fn bulk_load(
        self: &Arc<Self>,
        options: BulkOptions,
        catalog: Arc<Catalog>,
        open: KeepOpen,
    ) -> Result<BulkLoad> {
        self.reads.health.check()?;
        self.reads.health.check_writable()?;
        let shared = LoadShared::new(self, options, open, 0);
        Ok(BulkLoad { shared, catalog, new_trees: Mutex::default() })
    }
}

impl BulkLoad {
    /// Creates a writer. All writers of a load share the load's memory.
    #[must_use]
    pub fn writer(&self) -> BulkWriter {
        BulkWriter::new(Arc::clone(&self.shared))
    }

    /// Makes the writers and [`finish`](Self::finish) fail with `Cancelled`, also a `finish` in
    /// progress that has not begun to commit.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Release);
    }

    /// Returns the smallest key that was given twice in the tree with the smallest id that has such
    /// a key; `None` if no key was. Before [`finish`](Self::finish), not all duplicates are known.
    #[must_use]
    pub fn duplicate(&self) -> Option<Duplicate> {
        self.shared.gathered.lock().duplicate.clone()
    }

    /// Merges the entries of all writers and commits them.
    ///
    /// # Errors
    /// `Invalid`, `Cancelled`, `Exists`, `NotFound`, `LockTimeout`, `Deadlock`, `NoSpace`, `Io`,
    /// `Poisoned`, `Closed`; `frondb::BulkLoad::finish` says when. After an error nothing is
    /// loaded; after `Poisoned` a reopened database may have the load.
    pub fn finish(&self, progress: &mut dyn FnMut(BulkProgress) -> bool) -> Result<BulkReport> {
        let shared = &self.shared;
        let (trees, duplicates) = shared.take_gathered()?;
        let mut merging = Merging::new(shared, progress, trees);
        merging.count_duplicates(duplicates)?;
        let report = merging.merge_all()?;
        let mut parts = std::mem::take(&mut merging.parts);
        let new = std::mem::take(&mut *self.new_trees.lock());
        complete(&mut parts, &new);
        match shared.commit(&self.catalog, &parts, &new, &report, &mut || merging.progress(0)) {
            Ok(None) => Ok(report),
            // The runs belong to the trees now, even if the wait fails.
            Ok(Some(end)) => {
                shared.txns.wait_durable(end, shared.options.durability).map(|()| report)
            }
            Err(error) => {
                shared.release(&parts);
                Err(error)
            }
        }
    }
}

impl Drop for BulkLoad {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// Adds an empty part for every new tree without a part, because the commit of a part creates its
/// tree. An empty part takes one SeqNo, because a commit needs at least one.
fn complete(parts: &mut Vec<Attachment>, new: &[NewTree]) {
    for NewTree { tree, .. } in new {
        if !parts.iter().any(|part| Arc::ptr_eq(&part.tree, tree)) {
            parts.push(Attachment {
                tree: Arc::clone(tree),
                runs: Vec::new(),
                range_deletes: Vec::new(),
                values: Vec::new(),
                numbers: 1,
                are_base: true,
            });
        }
    }
}
