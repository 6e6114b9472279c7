//! The overlay: values that plain reads see in place of those at the snapshot.

use frondb_core::Result;
use frondb_tree::AsTree;

use super::Transaction;
use crate::tree::Tree;

impl Transaction {
    /// Whether `key` was committed after the snapshot of this transaction's plain reads. Returns
    /// its value at the snapshot if so, and `None` if plain reads see the newest commit. The
    /// answer is also `None` without a snapshot, where the overlay has the key, and under snapshot
    /// isolation. The transaction's own writes do not count.
    ///
    /// For callers that keep other trees derived from the value, such as indexes, and are about to
    /// write a key they have locked. Such a caller writes the difference between the newest value
    /// and the new one to the derived trees. Plain reads of this transaction also need the
    /// difference between the value at the snapshot and the newest value, which
    /// [`overlay_put`](Self::overlay_put) and [`overlay_delete`](Self::overlay_delete) provide.
    /// Costs next to nothing while no transaction has committed to the tree since the snapshot.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended or for a tree of another database; `NotFound` if the
    /// tree was dropped; `Corruption`, `Io`, `Closed`.
    pub fn outdated(&self, tree: &Tree, key: impl AsRef<[u8]>) -> Result<Option<Option<Vec<u8>>>> {
        self.inner.outdated(tree.core(), key.as_ref())
    }

    /// Makes later plain reads see this value of `key` instead of that at their snapshot, unless
    /// the transaction writes the key itself. The value is neither locked nor committed, and
    /// locking reads do not see it. It lasts as long as the snapshot; rolling back to a savepoint
    /// undoes it.
    ///
    /// # Errors
    /// `Invalid` if plain reads have no snapshot yet, and at serializable; otherwise as
    /// [`put`](Self::put) without the errors of locking.
    pub fn overlay_put(
        &self,
        tree: &Tree,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.inner.overlay_put(tree.core(), key.as_ref(), value.as_ref())
    }

    /// Makes later plain reads see no value of `key`; see [`overlay_put`](Self::overlay_put).
    ///
    /// # Errors
    /// As [`overlay_put`](Self::overlay_put).
    pub fn overlay_delete(&self, tree: &Tree, key: impl AsRef<[u8]>) -> Result<()> {
        self.inner.overlay_delete(tree.core(), key.as_ref())
    }
}
