//! The commit of a bulk load: locks the trees and attaches all runs.

use std::time::Duration;

use frondb_background::Load;
use frondb_catalog::Catalog;
use frondb_commit::{Attachment, Commit, NewTree};
use frondb_core::{ErrorKind, Lsn, Result};
use frondb_locks::{LockMode, LockWait, Locker};

use super::options::BulkReport;
use super::shared::LoadShared;
use crate::context::Transactions;

/// Longest attempt to lock all trees. During an attempt, other transactions wait for new locks.
const LOCK_SLICE: Duration = Duration::from_millis(100);

impl LoadShared {
    /// Attaches all parts with one commit. The whole trees are locked meanwhile, because the loaded
    /// keys may conflict with locks of transactions. Calls `go_on` before each attempt to lock the
    /// trees; an error of `go_on` ends the call. Returns the end of the commit's log record, for a
    /// caller that waits for durability; `None` if there is no part. After an error nothing has
    /// changed, except that after `Poisoned` the log may have the commit.
    pub(super) fn commit(
        &self,
        catalog: &Catalog,
        parts: &[Attachment],
        new: &[NewTree],
        report: &BulkReport,
        go_on: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Option<Lsn>> {
        if parts.is_empty() {
            return Ok(None);
        }
        let txns = &self.txns;
        let txn = txns.ids.next_txn();
        let mut locker = txns.locks.locker(txn);
        self.lock_trees(&mut locker, parts, report, go_on)?;
        let _call = self.txns.calls.begin()?;
        let begun = txns.reads.now();
        let load = Load { bytes: 0, messages: 0, frees_space: false, unpaced: false };
        txns.background.admit(load, &|| self.check_cancelled().is_err())?;
        let committed = catalog.commit_new(new, || {
            txns.parts.add_with(txn, parts, new)?;
            let commit = Commit { txn, attachments: parts, sections: &[] };
            txns.background
                .lending_space(false, || txns.committer.commit(commit, &mut Vec::new()))
                .inspect_err(|_| txns.parts.forget(txn, parts))
        })?;
        txns.background.committed(&committed, 0, 0, begun);
        Ok(Some(committed.end))
    }

    /// Locks all trees in short attempts, because other transactions wait for new locks during an
    /// attempt. Until its last attempt, the load is the victim of every deadlock: it loses no work,
    /// because it tries again.
    fn lock_trees(
        &self,
        locker: &mut Locker,
        parts: &[Attachment],
        report: &BulkReport,
        go_on: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        let txns = &self.txns;
        let (begun, mut waited) = (txns.reads.now(), Duration::ZERO);
        loop {
            self.check_cancelled()?;
            go_on()?;
            let left = self.options.lock_timeout.saturating_sub(waited);
            let is_last = left <= LOCK_SLICE;
            let work = if is_last { report.entries } else { 0 };
            let timeout = left.min(LOCK_SLICE);
            let Err(error) = lock_all(txns, locker, parts, timeout, work) else { return Ok(()) };
            match error.kind() {
                // Count the full length of the attempt, because in tests the clock may not advance
                // during a wait.
                ErrorKind::LockTimeout if !is_last => waited += LOCK_SLICE,
                // The other transactions continue once the locks of this load are released.
                ErrorKind::Deadlock if !is_last => {}
                _ => return Err(error),
            }
            locker.release_all();
            waited = waited.max(txns.reads.now().since(begun));
        }
    }
}

/// Waits at most `timeout` for the locks of all trees together.
fn lock_all(
    txns: &Transactions,
    locker: &mut Locker,
    parts: &[Attachment],
    timeout: Duration,
    work: u64,
) -> Result<()> {
    let begun = txns.reads.now();
    for part in parts {
        locker.set_work(work);
        let wait = LockWait::Upto(timeout.saturating_sub(txns.reads.now().since(begun)));
        let locked = locker.lock_range(part.tree.locks(), b"", None, LockMode::Exclusive, wait);
        locked.map_err(|error| {
            error.context(format_args!("a bulk load into tree {:?}", part.tree.name.read()))
        })?;
    }
    Ok(())
}
