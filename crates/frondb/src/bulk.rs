//! [`BulkLoad`]: entries in any order, sorted outside of the trees and attached to them with one
//! commit.

use frondb_commit::Durability;
use frondb_core::Result;
use frondb_core::sync::Arc;
use frondb_tree::AsTree;
pub use frondb_txn::{BulkOptions, BulkProgress, BulkReport, Duplicate, Duplicates};

use crate::open::Open;
use crate::options::TreeOptions;
use crate::tree::Tree;

/// A bulk load: puts much data into new or existing trees with less work than batches. Entries
/// come in any order and from several threads. They are sorted in a part of the memory and on
/// disk, written once to their place, and attached (ingested) into all trees with one commit.
/// Until that commit, and after an error, a cancel, a drop or a crash, the trees are unchanged.
///
/// Loaded entries replace those of the same key. Other threads may read and write the trees during
/// the load. The commit locks the trees for a moment; while transactions hold locks on them it
/// retries, and blocks new locks for a tenth of a second at each try.
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
    open: Arc<Open>,
    inner: frondb_txn::BulkLoad,
    /// Default durability of the handles that the load returns for its new trees.
    commit_sync: Durability,
}

/// Adds entries to a [`BulkLoad`]. Used by one thread at a time; several threads need a writer
/// each.
pub struct BulkWriter {
    inner: frondb_txn::BulkWriter,
}

impl BulkLoad {
    pub(crate) fn new(
        open: Arc<Open>,
        inner: frondb_txn::BulkLoad,
        commit_sync: Durability,
    ) -> Self {
        Self { open, inner, commit_sync }
    }

    /// A new tree that comes into existence with the commit of this load, holding what was loaded
    /// into it, if anything. A load that fails, is dropped or is killed leaves no tree. Until the
    /// commit only writers of this load accept the handle; every other call with it fails with
    /// `NotFound`.
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
    /// `Exists`, here or from [`finish`](Self::finish) if the name is taken in the meantime;
    /// `Invalid` for a bad name or option, an update function that is not registered, or a
    /// finished load; `Poisoned`, `Closed`.
    pub fn new_tree(&self, name: &str, options: TreeOptions) -> Result<Tree> {
        let tree = self.inner.new_tree(name, options)?;
        Ok(Tree::new(Arc::clone(&self.open), Arc::clone(tree.core()), self.commit_sync))
    }

    /// A new writer. All writers of a load share its memory.
    #[must_use]
    pub fn writer(&self) -> BulkWriter {
        BulkWriter { inner: self.inner.writer() }
    }

    /// Makes all calls of the load fail with `Cancelled` soon, including those in progress. Any
    /// thread may call it. No effect once [`finish`](Self::finish) has committed.
    pub fn cancel(&self) {
        self.inner.cancel();
    }

    /// A key that was given twice, if there is one. After a successful [`finish`](Self::finish) it
    /// is the smallest such key of the first tree that has one, in the order in which the trees
    /// were created; after `Exists` it is any such key.
    #[must_use]
    pub fn duplicate(&self) -> Option<Duplicate> {
        self.inner.duplicate()
    }

    /// Merges the entries of all writers and commits them with the durability of the options.
    /// `progress` is called every few milliseconds; the load is cancelled when it returns false.
    ///
    /// # Errors
    /// `Invalid` if a writer is not finished or the load was finished before; `Cancelled` after a
    /// cancel, or if a writer was dropped; `Exists` if a key was given twice under
    /// [`Duplicates::Fail`], or the name of a new tree is taken; `NotFound` if a tree was dropped;
    /// `LockTimeout` or `Deadlock` if transactions kept the trees locked for longer than
    /// [`BulkOptions::lock_timeout`]; `NoSpace`, `Io`, `Poisoned`, `Closed`. After an error nothing
    /// is loaded.
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
    #[inline]
    pub fn put(
        &mut self,
        tree: &Tree,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.inner.put(tree.core(), key.as_ref(), value.as_ref())
    }

    /// Hands the writer's entries to the load. A load with a writer that was dropped without this
    /// call cannot be finished.
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
