//! Verification of a whole database.

use frondb_core::Result;
use frondb_engine::VerifyReport;

use crate::db::Db;
use crate::tree::Tree;

impl Db {
    /// Reads every block and every large value of every tree and checks checksums, order, counts
    /// and structure. Goes on after a fault; the report lists the first of each run and all of
    /// values. `progress` is given the tree, and the bytes of it done
    /// and to do; it stops the work by returning `false`.
    ///
    /// # Errors
    /// `Cancelled`; `Closed`.
    pub fn verify(&self, progress: &mut dyn FnMut(&str, u64, u64) -> bool) -> Result<VerifyReport> {
        let mut sum = VerifyReport::default();
        for tree in self.trees()? {
            let name = tree.name();
            let report = tree.verify(&mut |done, total| progress(&name, done, total))?;
            sum.runs += report.runs;
            sum.entries += report.entries;
            sum.values += report.values;
            sum.bytes += report.bytes;
            let faults = report.faults.into_iter();
            sum.faults.extend(faults.map(|fault| fault.context(format!("tree {name:?}"))));
        }
        Ok(sum)
    }
}

impl Tree {
    /// As [`Db::verify`], for one tree.
    ///
    /// # Errors
    /// `Cancelled`; `Closed`; `NotFound` if the tree was dropped. Damage is in the report.
    pub fn verify(&self, progress: &mut dyn FnMut(u64, u64) -> bool) -> Result<VerifyReport> {
        self.engine().verify_tree(&self.inner, progress)
    }
}
