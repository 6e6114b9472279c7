//! [`Batch`]: writes that take effect together.

use crate::tree::Tree;

/// Writes to any number of trees of one database, committed together or not at all by
/// [`Db::write`](crate::Db::write). Order counts within a tree: the later write of a key wins.
///
/// A key or value that is too long is reported by the commit, which then changes nothing. So is a
/// batch of more than [`Db::batch_bytes_max`](crate::Db::batch_bytes_max) bytes, a quarter of the
/// memory option and at most 512 MiB; values of more than 64 KiB do not count in it.
///
/// ```
/// # use frondb::{Batch, Db, Durability, Options, TreeOptions};
/// # fn main() -> frondb::Result<()> {
/// # let dir = frondb_testkit::TempDir::new("doc");
/// # let db = Db::open(dir.path(), Options::default())?;
/// let tree = db.create_tree("t", TreeOptions::default())?;
/// let mut batch = Batch::new();
/// for i in 0..1000u32 {
///     batch.put(&tree, &i.to_be_bytes(), b"value");
/// }
/// batch.delete_range(&tree, &10u32.to_be_bytes(), Some(&20u32.to_be_bytes()));
/// db.write(&batch, Durability::NoSync)?;
/// assert!(!tree.exists(&15u32.to_be_bytes())?);
/// # db.close()
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub(crate) inner: frondb_engine::Batch,
}

impl Batch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the value of `key`. Keys have 0 to 32 KiB, values 0 to 64 MiB.
    #[inline]
    pub fn put(&mut self, tree: &Tree, key: &[u8], value: &[u8]) {
        self.inner.put(&tree.inner, key, value);
    }

    /// Removes `key`, whether it exists or not.
    #[inline]
    pub fn delete(&mut self, tree: &Tree, key: &[u8]) {
        self.inner.delete(&tree.inner, key);
    }

    /// Removes all keys with `lo <= key < hi`; without `hi`, all from `lo` on.
    pub fn delete_range(&mut self, tree: &Tree, lo: &[u8], hi: Option<&[u8]>) {
        self.inner.delete_range(&tree.inner, lo, hi);
    }

    /// Applies the tree's update function to `key`, without reading it. Operands have at most
    /// 64 KiB. If the function fails, or the value gets longer than 64 MiB, reading the key is
    /// `Invalid` until it is put or deleted; no other key is concerned.
    pub fn update(&mut self, tree: &Tree, key: &[u8], operand: &[u8]) {
        self.inner.update(&tree.inner, key, operand);
    }

    /// How many writes it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }

    /// Bytes it takes in the log, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.inner.bytes()
    }

    /// Bytes it takes in memory once it is committed, about: keys, operands, values of at most
    /// 64 KiB, and 24 bytes a write. At most
    /// [`Db::batch_bytes_max`](crate::Db::batch_bytes_max) can be committed.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.inner.memory_bytes()
    }

    /// Says that the batch is a step of something that frees space, as the names of trees that are dropped
    /// behind it: then it is let in while the disk is full, as one that only deletes is. For small
    /// ones: what is kept for a full disk ([`Options::reserve_bytes`](crate::Options::reserve_bytes)) is little.
    pub fn set_frees_space(&mut self) {
        self.inner.set_frees_space();
    }

    /// Says that the batch is not to wait for background work, as writes that outrun it do: others wait
    /// for who writes it, and it is small and rare, like a counter.
    pub fn set_unpaced(&mut self) {
        self.inner.set_unpaced();
    }

    /// Forgets all writes and keeps the memory.
    pub fn clear(&mut self) {
        self.inner.clear();
    }
}
