//! [`Batch`]: writes that take effect together.

use crate::tree::Tree;
use frondb_tree::AsTree;

/// Writes to any number of trees of one database that [`Db::write`](crate::Db::write) commits
/// atomically. Within a tree the last write of a key wins.
///
/// [`Db::write`](crate::Db::write) reports keys and values that are too long, and then changes
/// nothing. The same holds for a batch of more than
/// [`Db::batch_bytes_max`](crate::Db::batch_bytes_max) bytes, a quarter of the memory option and
/// at most 512 MiB; values over 64 KiB do not count.
///
/// ```
/// # use frondb::{Batch, Db, Durability, Options, TreeOptions};
/// # fn main() -> frondb::Result<()> {
/// # let dir = frondb_testkit::TempDir::new("doc");
/// # let db = Db::open(dir.path(), Options::default())?;
/// let tree = db.create_tree("t", TreeOptions::default())?;
/// let mut batch = Batch::new();
/// for i in 0..1000u32 {
///     batch.put(&tree, i.to_be_bytes(), "value");
/// }
/// batch.delete_range(&tree, 10u32.to_be_bytes(), Some(&20u32.to_be_bytes()));
/// db.write(&batch, Durability::NoSync)?;
/// assert!(!tree.exists(15u32.to_be_bytes())?);
/// # db.close()
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub(crate) inner: frondb_commit::Batch,
}

impl Batch {
    /// Creates an empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the value of `key`. Keys have 0 to 32 KiB, values 0 to 64 MiB.
    #[inline]
    pub fn put(&mut self, tree: &Tree, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.inner.put(tree.core(), key.as_ref(), value.as_ref());
    }

    /// Removes `key`; it need not exist.
    #[inline]
    pub fn delete(&mut self, tree: &Tree, key: impl AsRef<[u8]>) {
        self.inner.delete(tree.core(), key.as_ref());
    }

    /// Removes all keys with `lo <= key < hi`; without `hi`, all from `lo` on.
    pub fn delete_range(&mut self, tree: &Tree, lo: impl AsRef<[u8]>, hi: Option<&[u8]>) {
        self.inner.delete_range(tree.core(), lo.as_ref(), hi);
    }

    /// Applies the tree's update function to `key` without reading it. Operands have at most 64
    /// KiB. If the function fails, or the value becomes longer than 64 MiB, reading this key fails
    /// with `Invalid` until it is put or deleted; other keys are not affected.
    #[inline]
    pub fn update(&mut self, tree: &Tree, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) {
        self.inner.update(tree.core(), key.as_ref(), operand.as_ref());
    }

    /// The number of writes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.len()
    }

    /// Whether the batch has no writes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }

    /// About how many bytes the batch has: its writes, and values over 64 KiB, which do not go to
    /// the log.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.inner.bytes()
    }

    /// About how many bytes of memory the batch takes once committed: keys, operands, values of at
    /// most 64 KiB, and 24 bytes for each write.
    /// [`Db::batch_bytes_max`](crate::Db::batch_bytes_max) is the limit.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.inner.memory_bytes()
    }

    /// Marks the batch as a step of an operation that frees space, for example removing the names
    /// of trees before they are dropped. It is then accepted on a full disk, as a batch of deletes
    /// is. Only for small batches: the space reserved for a full disk
    /// ([`Options::reserve_bytes`](crate::Options::reserve_bytes)) is small.
    pub fn set_frees_space(&mut self) {
        self.inner.set_frees_space();
    }

    /// Exempts the batch from write stalls, which delay commits while background work is behind.
    /// For small, rare writes that other threads wait for, such as a counter.
    pub fn exempt_from_pacing(&mut self) {
        self.inner.set_unpaced();
    }

    /// Removes all writes and keeps the allocated memory.
    pub fn clear(&mut self) {
        self.inner.clear();
    }
}
