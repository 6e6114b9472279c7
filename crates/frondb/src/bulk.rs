//! [`BulkLoad`]: entries in any order, sorted outside of the trees and attached to them with one
//! commit.

use frondb_commit::Durability;
use frondb_core::Result;
use frondb_core::sync::Arc;
use frondb_txn::{BulkProgress, BulkReport, BulkWriter, Duplicate};

use crate::open::Open;
use crate::options::TreeOptions;
use crate::tree::Tree;

/// A bulk load: puts much data into new or existing trees with less work than batches. Entries come
/// in any order and from several threads. They are sorted in a part of the memory and on disk,
/// written once to their final place, and attached to (ingested into) all trees with one commit.
/// Until that commit, and after an error, a cancel, a drop or a crash, the trees are unchanged.
///
/// A loaded entry replaces the entry with the same key. Other threads may read and write the trees
/// during the load. The commit locks the trees for a moment. While transactions hold locks on a
/// tree, the commit retries; each try blocks new locks for at most a tenth of a second.
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
    load: frondb_txn::BulkLoad,
    /// Default durability of the handles that the load returns for its new trees.
    commit_sync: Durability,
}

impl BulkLoad {
    pub(crate) fn new(
        open: Arc<Open>,
        load: frondb_txn::BulkLoad,
        commit_sync: Durability,
    ) -> Self {
        Self { open, load, commit_sync }
    }

    /// Makes a tree that exists from the commit of this load on, with the entries that were loaded
    /// into it. A load that fails, is dropped or is killed leaves no tree. Until the commit, only
    /// writers of this load accept the handle; every other call with the handle fails with
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
    /// `Exists` if the name is taken: here, or from [`finish`](Self::finish) if
    /// another thread takes the name later; `Invalid` for a bad name or option, an update function
    /// that is not registered, or a finished load; `Poisoned`, `Closed`.
    pub fn new_tree(&self, name: &str, options: TreeOptions) -> Result<Tree> {
        let tree = self.load.new_tree(name, options)?;
        Ok(Tree::new(Arc::clone(&self.open), tree, self.commit_sync))
    }

    /// Creates a writer. All writers of a load share the load's memory.
    #[must_use]
    pub fn writer(&self) -> BulkWriter {
        self.load.writer()
    }

    /// Makes [`finish`](Self::finish) and the calls of the writers fail with `Cancelled` soon,
    /// including calls in progress. Any thread may call `cancel`, which has no effect once `finish`
    /// has committed.
    pub fn cancel(&self) {
        self.load.cancel();
    }

    /// Returns a key that was given twice, if any. After a successful [`finish`](Self::finish),
    /// that is the smallest such key of the first tree that has one, in the order in which the
    /// trees were created. After `Exists`, it may be any such key.
    #[must_use]
    pub fn duplicate(&self) -> Option<Duplicate> {
        self.load.duplicate()
    }

    /// Merges the entries of all writers and commits them with the durability of the options.
    /// `progress` is called every few milliseconds, and ten times a second while the commit waits
    /// for locks; the load is cancelled when it returns `false`.
    ///
    /// # Errors
    /// `Invalid` if a writer is not finished or the load was finished before; `Cancelled` after
    /// [`cancel`](Self::cancel), or if a writer with entries was dropped before its `finish`;
    /// `Exists` if a key was given twice under [`Duplicates::Fail`](crate::Duplicates::Fail), or
    /// the name of a new tree is taken; `NotFound` if a tree was dropped; `LockTimeout` or
    /// `Deadlock` if transactions kept the trees locked for longer than
    /// [`BulkOptions::lock_timeout`](crate::BulkOptions::lock_timeout); `NoSpace`, `Io`,
    /// `Poisoned`, `Closed`. After an error nothing is loaded; after `Poisoned` a reopened database
    /// may have the load.
    pub fn finish(&self, progress: &mut dyn FnMut(BulkProgress) -> bool) -> Result<BulkReport> {
        self.load.finish(progress)
    }
}

impl std::fmt::Debug for BulkLoad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BulkLoad")
    }
}
