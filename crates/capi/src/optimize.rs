//! Optimizing a tree while others use it.

use std::mem::MaybeUninit;

use std::ffi::c_void;

use frondb::{OptimizeOptions, OptimizeReport, Tree};

use crate::call::call;
use crate::error::{c_string, frondb_error};
use crate::handle;
use crate::slice::cleared;
use crate::stats::{self, frondb_stats};
use crate::tree::frondb_tree;
use crate::verify::frondb_progress;

/// Consolidates a tree while other threads read and write it: what was committed before the call
/// becomes one sorted run in each leaf, without deleted and overwritten rows, and then free space
/// is returned to the file system. The background threads do the work. Commits never wait for it.
/// More urgent work comes first, but this work and amortised merges together get at least a quarter
/// of the steps of background jobs. The work needs the disk space of a few leaves. Leaves that are
/// already consolidated are skipped. Rows that an open snapshot or cursor can see are kept.
///
/// `fraction` is the part of the tree's data to consolidate, beginning at the smallest key: above
/// 0, and at most 1, which is the whole tree. `leaves_per_second` limits the leaves that are
/// rewritten; 0 means no limit. `progress` receives the number of leaves that the call has
/// finished, and of all leaves, at least about ten times a second while background threads work.
/// `counts` has `leaves`, `rewritten`, `held` (leaves that keep deleted or overwritten rows or
/// updates, because an open snapshot needs them, or because an update could not be applied: the
/// update function fails or is missing, or the old or the new value is too large), `failed` (leaves
/// that could not be consolidated because of damage, or because other background work prevented
/// every attempt), `disk_bytes_before` and `disk_bytes_after` (of the tree, without large values).
/// If leaves failed, frondb_stats_text() of `counts` does not list the numbers, but has a line for
/// each of the first 16 failed leaves: the keys and the reason, with file and offset of damage.
/// `progress` and `counts` may be NULL.
///
/// Threads: any; several calls may run at the same time.
///
/// Errors: FRONDB_INVALID if `fraction` is out of range, or if the database was opened read-only;
/// FRONDB_CANCELLED; FRONDB_NOT_FOUND if the tree was dropped; FRONDB_NO_SPACE while the disk stays
/// full; FRONDB_POISONED; FRONDB_CLOSED. After an error the leaves that the call has consolidated
/// stay so.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_optimize(
    tree: *mut frondb_tree,
    fraction: f64,
    leaves_per_second: u64,
    progress: frondb_progress,
    user_data: *mut c_void,
    counts: Option<&mut MaybeUninit<*mut frondb_stats>>,
) -> *mut frondb_error {
    call(|| {
        let counts = cleared(counts);
        let tree = handle::shared::<Tree>(tree)?;
        let name = c_string(&tree.name());
        let options =
            OptimizeOptions::new().fraction(fraction).leaves_per_second(leaves_per_second);
        let report = tree.optimize(options, &mut |done, leaves| {
            progress.is_none_or(|progress| progress(user_data, name.as_ptr(), done, leaves) == 0)
        })?;
        if counts.is_some() {
            let failures = report.failures.iter().map(|leaf| format!("{leaf}\n"));
            let text = (report.failed > 0).then(|| failures.collect());
            stats::give(counts, named(&report), text)?;
        }
        Ok(())
    })
}

fn named(report: &OptimizeReport) -> Vec<(&'static str, u64)> {
    vec![
        ("leaves", report.leaves),
        ("rewritten", report.rewritten),
        ("held", report.held),
        ("failed", report.failed),
        ("disk_bytes_before", report.disk_bytes.0),
        ("disk_bytes_after", report.disk_bytes.1),
    ]
}
