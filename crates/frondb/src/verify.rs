//! Verification of a database or a tree.

use frondb_core::{ErrorKind, Result};
use frondb_tree::{VerifyReport, verify_tree};

use crate::db::Db;
use crate::tree::Tree;

impl Db {
    /// Reads every block of every tree, and every large value to which a message refers, and checks
    /// checksums, order, counts and structure. Continues after a fault: the report lists the first
    /// fault of each run and all faults of large values. `progress` receives a tree's name, and the
    /// bytes of this tree that were read and that are to be read; the verification stops when
    /// `progress` returns `false`. A tree that is dropped meanwhile is left out.
    ///
    /// # Errors
    /// `Cancelled`; `Closed`.
    pub fn verify(&self, progress: &mut dyn FnMut(&str, u64, u64) -> bool) -> Result<VerifyReport> {
        let mut sum = VerifyReport::default();
        for tree in self.trees()? {
            let name = tree.name();
            let report = match tree.verify(&mut |done, total| progress(&name, done, total)) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                report => report?,
            };
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
    /// Verifies one tree, as [`Db::verify`] does. Damage is in the report, not an error.
    ///
    /// # Errors
    /// `Cancelled`; `Closed`; `NotFound` if the tree was dropped.
    pub fn verify(&self, progress: &mut dyn FnMut(u64, u64) -> bool) -> Result<VerifyReport> {
        self.read(None, |reads, tree, _| verify_tree(reads, tree, progress))
    }
}
