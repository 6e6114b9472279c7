//! [`PendingParts`]: records the parts of large commits in the manifest before the commit's record
//! is in the log, and abandons parts that never commit (rules 18 and 19).

use frondb_core::sync::Arc;
use frondb_core::{Error, ErrorKind, Result};
use frondb_records::Edit;
use frondb_run::RunEnv;
use frondb_tree::{Health, TreeCore, Trees};
use frondb_trunk::{Key, Node, Trunk};

use crate::attachment::Attachment;
use crate::edits::Edits;
use crate::ids::Ids;
use crate::pending::parts;

/// An empty tree that no other thread can reach yet, with the edit that creates it.
pub struct NewTree {
    /// The new tree.
    pub tree: Arc<TreeCore>,
    /// The edit that creates the tree.
    pub edit: Edit,
}

/// Adds and abandons pending parts. Any thread may use it.
pub struct PendingParts {
    edits: Arc<Edits>,
    runs: Arc<RunEnv>,
    trees: Arc<Trees>,
    ids: Arc<Ids>,
    health: Arc<Health>,
}

impl PendingParts {
    /// Takes the handles of one open database.
    #[must_use]
    pub fn new(
        edits: Arc<Edits>,
        runs: Arc<RunEnv>,
        trees: Arc<Trees>,
        ids: Arc<Ids>,
        health: Arc<Health>,
    ) -> Self {
        Self { edits, runs, trees, ids, health }
    }

    /// Durably records all parts of a transaction as pending. REQUIRES: the caller does not hold
    /// the commit lock, and passes the same parts in the same order to the commit or prepare that
    /// follows.
    ///
    /// # Errors
    /// `NotFound` if a tree was dropped; `NoSpace`. After these errors nothing has changed.
    /// `Poisoned`, `Closed`.
    pub fn add(&self, txn: u64, attachments: &[Attachment]) -> Result<()> {
        self.add_with(txn, attachments, &[])
    }

    /// As [`add`](Self::add), and also creates the trees `new`, which exist only if the transaction
    /// commits. REQUIRES: `attachments` has a part for each of them.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn add_with(&self, txn: u64, attachments: &[Attachment], new: &[NewTree]) -> Result<()> {
        self.health.check()?;
        if attachments.is_empty() {
            return Ok(());
        }
        check_trees(attachments)?;
        self.runs.space.sync().inspect_err(|error| self.health.poison_if_unknown(error))?;
        let parts = parts(txn, 0, 0, attachments);
        let made = new.iter().map(|new| Edit::CreatedBy { tree: new.tree.id, txn });
        let mut edits: Vec<Edit> = new.iter().map(|new| new.edit.clone()).chain(made).collect();
        edits.extend(parts.iter().cloned().map(Edit::Pending));
        let latch = self.edits.begin();
        latch.record(&edits)?;
        for NewTree { tree, .. } in new {
            self.trees.insert(Arc::clone(tree));
            tree.begin_count();
        }
        let mut pending = self.edits.pending();
        parts.into_iter().for_each(|part| pending.add_part(part));
        pending.created_by.extend(new.iter().map(|new| (new.tree.id, txn)));
        Ok(())
    }

    /// Abandons the parts of a transaction that was neither committed nor prepared, or whose
    /// rollback is durable, and frees their space. The call is also correct for parts that never
    /// became pending.
    pub fn abandon(&self, txn: u64, attachments: &[Attachment]) {
        self.forget(txn, attachments);
        // In a poisoned database it is unknown what the log contains: recovery may find the record
        // of the commit and need the parts.
        if self.health.check_unpoisoned().is_ok() {
            self.release(attachments);
        }
    }

    /// Removes the parts, and the trees that the transaction creates, from the manifest; the caller
    /// keeps the space of the parts. Does nothing in a poisoned database: the log may contain the
    /// record of the commit, which needs the parts.
    pub fn forget(&self, txn: u64, attachments: &[Attachment]) {
        if self.health.check_unpoisoned().is_err() {
            return;
        }
        let latch = self.edits.begin();
        let mut edits = Vec::new();
        for (attachment, part) in attachments.iter().zip(0..) {
            let tree = attachment.tree.id;
            let mut pending = self.edits.pending();
            if pending.created_by.get(&tree) == Some(&txn) {
                edits.push(Edit::DropTree { tree });
                pending.drop_tree(tree);
                drop(pending);
                self.unmake(&attachment.tree);
            } else if pending.parts.contains_key(&(txn, part)) {
                edits.push(Edit::EndPending { tree, txn, part });
                pending.end_part(txn, part);
            }
        }
        if !edits.is_empty()
            && let Err(error) = latch.append(&edits)
        {
            tracing::debug!(%error, "an abandoned transaction stays in the manifest until its next snapshot");
        }
    }

    /// Removes a tree whose transaction did not commit, so no other thread has written to the tree.
    /// REQUIRES: the edit latch.
    fn unmake(&self, tree: &TreeCore) {
        tree.set_dropped();
        self.trees.remove(tree.id);
        let empty = Node::empty_leaf(self.ids.next_node(), Key::default(), None);
        let _install = tree.install.lock();
        tree.retire(Trunk { tree: tree.id, root: empty });
    }

    /// Frees the runs and large values of parts that nothing refers to.
    pub fn release(&self, attachments: &[Attachment]) {
        for attachment in attachments {
            attachment.runs.iter().for_each(|run| run.kill());
            for extent in attachment.values.iter().flatten() {
                self.runs.space.release(*extent);
            }
        }
    }
}

/// Checks that none of the trees was dropped.
///
/// # Errors
/// `NotFound`, naming the tree.
pub fn check_trees(attachments: &[Attachment]) -> Result<()> {
    let dropped = attachments.iter().find(|part| part.tree.was_dropped());
    dropped.map_or(Ok(()), |part| Err(was_dropped(&part.tree)))
}

/// Returns the error of a call on a tree that was dropped.
#[must_use]
pub fn was_dropped(tree: &TreeCore) -> Error {
    Error::new(ErrorKind::NotFound, format!("tree {:?} was dropped", &**tree.name.read()))
}
