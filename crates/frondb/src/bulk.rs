//! [`BulkLoad`]: entries in any order, sorted outside of the trees and attached to them at once.

use frondb_core::Result;
use frondb_core::sync::Arc;
pub use frondb_engine::{BulkOptions, BulkProgress, BulkReport, Duplicate, Duplicates};
use frondb_engine::{Durability, Engine};

use crate::options::TreeOptions;
use crate::tree::Tree;

/// A bulk load: much data into new or existing trees, for less work than batches take. Entries come
/// in any order and from several threads; they are sorted within a part of the memory and on disk,
/// written once where they stay, and attached to all trees with one commit. Until then, and after an
/// error, a cancel, a drop or a crash, the trees are as they were.
///
/// Keys that a tree has already are overwritten. Others may read and write the trees meanwhile. The
/// commit locks them as a whole for a moment; where transactions hold locks it tries again and again,
/// and keeps others from new locks for a tenth of a second at a time.
///
/// Any thread may use it.
///
/// ```
/// use frondb::{BulkOptions, Db, Options, TreeOptions};
///
/// # fn main() -> frondb::Result<()> {
/// # let dir = frondb_testkit::TempDir::new("doc");
/// # let db = Db::open(dir.path(), Options::default())?;
/// let numbers = db.create_tree("numbers", TreeOptions::default())?;
/// let load = db.bulk_load(BulkOptions::default())?;
/// std::thread::scope(|threads| {
///     for thread in 0..2_u32 {
///         let (mut writer, numbers) = (load.writer(), &numbers);
///         threads.spawn(move || {
///             for i in (thread..1000).step_by(2).rev() {
///                 writer.put(numbers, &i.to_be_bytes(), b"x")?;
///             }
///             writer.finish()
///         });
///     }
/// });
/// let report = load.finish(&mut |progress| {
///     println!("{} of {}", progress.done, progress.total);
///     true
/// })?;
/// assert_eq!(report.entries, 1000);
/// # db.close()
/// # }
/// ```
pub struct BulkLoad {
    engine: Arc<Engine>,
    inner: frondb_engine::BulkLoad,
    /// What single writes to its new trees wait for.
    commit_sync: Durability,
}

/// Adds entries to a [`BulkLoad`]. For one thread at a time; each thread has its own.
pub struct BulkWriter {
    inner: frondb_engine::BulkWriter,
}

impl BulkLoad {
    pub(crate) fn new(
        engine: Arc<Engine>,
        inner: frondb_engine::BulkLoad,
        commit_sync: Durability,
    ) -> Self {
        Self { engine, inner, commit_sync }
    }

    /// A new tree that exists from the commit of this load on, with all that is loaded into it, also if that is
    /// nothing. A load that fails, is dropped or is killed leaves no tree. Until then only writers of this load take
    /// the handle; every other call with it fails with `NotFound`.
    ///
    /// ```
    /// use frondb::{BulkOptions, Db, Options, TreeOptions};
    ///
    /// # fn main() -> frondb::Result<()> {
    /// # let dir = frondb_testkit::TempDir::new("doc");
    /// # let db = Db::open(dir.path(), Options::default())?;
    /// let load = db.bulk_load(BulkOptions::default())?;
    /// let words = load.new_tree("words", TreeOptions::default())?;
    /// let mut writer = load.writer();
    /// writer.put(&words, b"frond", b"leaf")?;
    /// writer.finish()?;
    /// assert!(db.list_trees().is_empty());
    /// load.finish(&mut |_| true)?;
    /// assert_eq!(words.get(b"frond")?, Some(b"leaf".to_vec()));
    /// # db.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Exists`, here or from [`finish`](Self::finish) if the name is taken meanwhile; `Invalid` for a bad name or
    /// option, an update function that is not registered, or a load that was finished; `Poisoned`, `Closed`.
    pub fn new_tree(&self, name: &str, options: TreeOptions) -> Result<Tree> {
        let options =
            frondb_engine::TreeOptions { trunk: options.trunk, update_fn: options.update_fn };
        let tree = self.inner.new_tree(name, options)?;
        Ok(Tree::new(Arc::clone(&self.engine), tree, self.commit_sync))
    }

    /// A writer. All writers of a load share its memory.
    #[must_use]
    pub fn writer(&self) -> BulkWriter {
        BulkWriter { inner: self.inner.writer() }
    }

    /// Makes every call of the load, those under way too, fail with `Cancelled` soon; from any thread.
    /// Without effect once [`finish`](Self::finish) has committed.
    pub fn cancel(&self) {
        self.inner.cancel();
    }

    /// A key that was given twice, if any was: in the first of the trees, in the order in which they were
    /// made, that has one, the least. Of a load that is finished; of one that failed with `Exists`, any.
    #[must_use]
    pub fn duplicate(&self) -> Option<Duplicate> {
        self.inner.duplicate()
    }

    /// Merges what all writers have handed in and commits it, as durable as the options ask.
    /// `progress` is called every few milliseconds; the load is cancelled when it returns false.
    ///
    /// # Errors
    /// `Invalid` if a writer was not finished, or the load was; `Cancelled`, also if a writer was
    /// dropped; `Exists` if a key was given twice and [`Duplicates::Fail`] was asked, or the name
    /// of a new tree is taken; `NotFound` if
    /// a tree was dropped; `LockTimeout` or `Deadlock` if transactions kept the trees locked until
    /// [`BulkOptions::lock_timeout`] was up; `NoSpace`, `Io`, `Poisoned`, `Closed`. Nothing is loaded
    /// then.
    pub fn finish(&self, progress: &mut dyn FnMut(BulkProgress) -> bool) -> Result<BulkReport> {
        self.inner.finish(progress)
    }
}

impl BulkWriter {
    /// Adds an entry. Keys have 0 to 32 KiB, values 0 to 64 MiB.
    ///
    /// # Errors
    /// `Invalid` for a key or value that is too long, or a tree of another database; `NotFound` if
    /// the tree was dropped; `Cancelled`; `NoSpace`, `Io`, `Closed`: the load can only be dropped.
    pub fn put(&mut self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<()> {
        self.inner.put(&tree.inner, key, value)
    }

    /// Hands in what it has. A load whose writer was dropped without this cannot be finished.
    ///
    /// # Errors
    /// `Cancelled`.
    pub fn finish(self) -> Result<()> {
        self.inner.finish()
    }
}

impl std::fmt::Debug for BulkLoad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BulkLoad")
    }
}

impl std::fmt::Debug for BulkWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BulkWriter")
    }
}
