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

/// Consolidates a tree while others read and write it: what was committed before the call becomes
/// one sorted run in each leaf, without deleted and overwritten rows, and then free space is returned
/// to the file system. The background threads do the work, after what writers wait for and with at
/// least a quarter of their time. It needs the space of a few leaves. Leaves that are consolidated
/// already are skipped. Rows that an open snapshot or cursor can see stay.
///
/// `fraction` is the part of the tree's data, from its smallest key on: above 0, at most 1, which is
/// the whole tree. `leaves_per_second` is a limit on the leaves that are rewritten; 0 means none.
/// `progress` receives the leaves that are done and all leaves, at least about ten times a second
/// while background threads work. `counts`
/// has `leaves`, `rewritten`, `held` (leaves in which an open snapshot keeps garbage), `failed`
/// (leaves that could not be consolidated, because of damage or a failing update function),
/// `disk_bytes_before` and `disk_bytes_after`. If leaves failed, its text (frondb_stats_text()) has a
/// line for each of the first 16 in place of the numbers: the keys, and why, with file and offset of
/// damage. `progress` and `counts` may be NULL.
///
/// Threads: any; several calls may run at the same time.
///
/// Errors: FRONDB_INVALID for another fraction, and for a database that was opened read-only;
/// FRONDB_CANCELLED; FRONDB_NOT_FOUND if the tree was dropped; FRONDB_NO_SPACE while the disk stays
/// full; FRONDB_POISONED; FRONDB_CLOSED. What has been done stays.
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
