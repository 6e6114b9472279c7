//! Optimizing a tree while others use it.

use frondb_background::{OptimizeOptions, OptimizeReport};
use frondb_core::Result;
use frondb_tree::AsTree;

use crate::tree::Tree;

impl Tree {
    /// Consolidates the tree while others read and write it. Everything that was committed before
    /// the call becomes one sorted run in each leaf, without deleted and overwritten rows; then
    /// free space is returned to the file system. Reads are fastest afterwards. The engine
    /// consolidates by itself where that pays off, so the call is useful after many deletes and
    /// before many reads.
    ///
    /// The background threads do the work, and commits never wait for it. More urgent work comes
    /// first, but this work and amortised merges together get at least a quarter of the steps of
    /// background jobs. The call needs the disk space of a few leaves. Leaves that are already
    /// consolidated are skipped, so a repeated call is cheap. Rows that an open snapshot or cursor
    /// can see are kept.
    ///
    /// `progress` receives the number of leaves that the call has finished and the number of leaves
    /// in the part to optimize, at least about ten times a second while background threads work;
    /// the call ends with `Cancelled` when `progress` returns `false`. Finished leaves stay
    /// consolidated, and jobs that have begun are completed.
    ///
    /// Threads: any; several calls may run at the same time.
    ///
    /// # Errors
    /// `Invalid` if [`OptimizeOptions::fraction`] is not in (0, 1], or if the database was opened
    /// read-only; `Cancelled`; `NotFound` if the tree was dropped; `NoSpace` while the disk stays
    /// full; `Poisoned`; `Closed`. A damaged leaf is no error: the report counts it, and it is not
    /// changed.
    ///
    /// ```
    /// # use frondb::{Db, Options, OptimizeOptions, TreeOptions};
    /// # fn main() -> frondb::Result<()> {
    /// # let dir = frondb_testkit::TempDir::new("doc");
    /// # let db = Db::open(dir.path(), Options::default())?;
    /// let tree = db.create_tree("t", TreeOptions::default())?;
    /// for n in 0..100u8 {
    ///     tree.put(&[n], b"value")?;
    /// }
    /// tree.delete_range(&[0], Some(&[50]))?;
    /// let report = tree.optimize(OptimizeOptions::new(), &mut |done, leaves| {
    ///     println!("{done} of {leaves} leaves");
    ///     true
    /// })?;
    /// assert_eq!((report.leaves, report.held), (1, 0));
    /// # db.close()
    /// # }
    /// ```
    pub fn optimize(
        &self,
        options: OptimizeOptions,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<OptimizeReport> {
        let open = self.open();
        open.reads.check_read(self.core(), None)?;
        open.background.optimize(self.core(), options, progress, || open.begin_call())
    }
}
