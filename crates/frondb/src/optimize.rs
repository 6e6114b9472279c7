//! Optimizing a tree while others use it.

use frondb_background::OptimizeReport;
use frondb_core::Result;
use frondb_tree::AsTree;

use crate::tree::Tree;

/// Options of an optimize. The default is the whole tree without a limit.
///
/// ```
/// let half_at_night = frondb::OptimizeOptions::new().fraction(0.5).leaves_per_second(10);
/// # let _ = half_at_night;
/// ```
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct OptimizeOptions {
    inner: frondb_background::OptimizeOptions,
}

impl OptimizeOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The part of the tree's data to optimize, from its smallest key on: above 0, at most 1, which
    /// is the default. The part ends with a leaf, so a tree of a few MiB is optimized as a whole.
    #[must_use]
    pub fn fraction(mut self, fraction: f64) -> Self {
        self.inner.fraction = fraction;
        self
    }

    /// The most leaves that the call rewrites per second; 0, the default, means no limit. Rewrites
    /// for other reasons do not count. A leaf has 8 to 256 MiB of keys and values, more in larger
    /// trees.
    #[must_use]
    pub fn leaves_per_second(mut self, leaves: u64) -> Self {
        self.inner.leaves_per_second = leaves;
        self
    }
}

impl Tree {
    /// Consolidates the tree while others read and write it: what was committed before the call
    /// becomes one sorted run in each leaf, without deleted and overwritten rows, and then free
    /// space is returned to the file system. Reads are fastest afterwards. The engine consolidates
    /// by itself where that pays off, so the call is useful after many deletes and before many
    /// reads.
    ///
    /// The background threads do the work; it does not slow writers down. Work that writers wait
    /// for comes first, but this work gets at least a quarter of the threads' time. It needs the
    /// disk space of a few leaves. Leaves that are already consolidated are skipped, so a repeated
    /// call is cheap. Rows that an open snapshot or cursor can see are kept.
    ///
    /// `progress` receives the number of leaves done and of all leaves, at least about ten times a
    /// second while background threads work; the call ends with `Cancelled` when `progress` returns
    /// `false`. Leaves that are done stay consolidated, and jobs that have begun are completed.
    ///
    /// Threads: any; several calls may run at the same time.
    ///
    /// # Errors
    /// `Invalid` for a fraction that is not above 0 and at most 1, and for a database that was
    /// opened read-only; `Cancelled`; `NotFound` if the tree was dropped; `NoSpace` while the disk
    /// stays full; `Poisoned`; `Closed`. A damaged leaf is no error: it is counted in the report
    /// and not changed.
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
        open.check_read(self.core(), None)?;
        open.parts.background.optimize(self.core(), options.inner, progress, || open.begin_call())
    }
}
