//! Verification: reads and checks all data.

use std::mem::MaybeUninit;

use std::ffi::{CString, c_char, c_void};

use frondb::{Db, Result, Tree, VerifyReport};

use crate::call::{call, number};
use crate::db::frondb_db;
use crate::error::{c_string, frondb_error};
use crate::handle;
use crate::list::{self, frondb_list};
use crate::slice::cleared;
use crate::stats::{self, frondb_stats};
use crate::tree::frondb_tree;

/// Receives the progress of a long call: the name of the tree (valid during the call), the work
/// done and the total work, in bytes unless the comment of the long call names another unit.
/// Returns 0 to continue; any other number stops the work with FRONDB_CANCELLED. The thread that
/// made the long call calls this function, which must return normally (no exception, no longjmp).
pub type frondb_progress = Option<
    extern "C" fn(user_data: *mut c_void, tree: *const c_char, done: u64, to_do: u64) -> i32,
>;

/// Runs a verification and returns its report to C.
fn verified(
    counts: Option<&mut MaybeUninit<*mut frondb_stats>>,
    faults: Option<&mut MaybeUninit<*mut frondb_list>>,
    verify: impl FnOnce() -> Result<VerifyReport>,
) -> *mut frondb_error {
    call(|| {
        let (counts, faults) = (cleared(counts), cleared(faults));
        give(verify()?, counts, faults)
    })
}

fn give(
    report: VerifyReport,
    counts: Option<&mut MaybeUninit<*mut frondb_stats>>,
    faults: Option<&mut MaybeUninit<*mut frondb_list>>,
) -> Result<()> {
    let found = vec![
        ("runs", report.runs),
        ("entries", report.entries),
        ("values", report.values),
        ("bytes", report.bytes),
        ("faults", number(report.faults.len())),
    ];
    // Make the list first: if that fails, no other object has been made.
    if faults.is_some() {
        list::give(faults, report.faults.iter().map(ToString::to_string))?;
    }
    if counts.is_some() {
        stats::give(counts, found, None)?;
    }
    Ok(())
}

/// Reads every block and every large value of every tree and checks checksums, order, counts and
/// structure. Damage is not an error of this function: the verification continues. `counts` has the
/// numbers of `runs`, `entries` (messages of runs), `values` (large values) and `bytes` that were
/// read, and of `faults`; `faults` describes in words the first fault of the nodes of each tree,
/// the first of each run, and all of large values. `counts`, `faults` and `progress` may be NULL.
///
/// Threads: any.
///
/// Errors: FRONDB_CANCELLED; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_verify(
    db: *mut frondb_db,
    progress: frondb_progress,
    user_data: *mut c_void,
    counts: Option<&mut MaybeUninit<*mut frondb_stats>>,
    faults: Option<&mut MaybeUninit<*mut frondb_list>>,
) -> *mut frondb_error {
    verified(counts, faults, || {
        let db = handle::shared::<Db>(db)?;
        let mut shown = (String::new(), CString::default());
        db.verify(&mut |tree, done, to_do| {
            let Some(progress) = progress else { return true };
            if shown.0 != tree {
                shown = (tree.to_owned(), c_string(tree));
            }
            progress(user_data, shown.1.as_ptr(), done, to_do) == 0
        })
    })
}

/// Verifies one tree, as frondb_db_verify().
///
/// Threads: any.
///
/// Errors: FRONDB_CANCELLED; FRONDB_CLOSED; FRONDB_NOT_FOUND if the tree was dropped.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_verify(
    tree: *mut frondb_tree,
    progress: frondb_progress,
    user_data: *mut c_void,
    counts: Option<&mut MaybeUninit<*mut frondb_stats>>,
    faults: Option<&mut MaybeUninit<*mut frondb_list>>,
) -> *mut frondb_error {
    verified(counts, faults, || {
        let tree = handle::shared::<Tree>(tree)?;
        let name = c_string(&tree.name());
        tree.verify(&mut |done, to_do| {
            progress.is_none_or(|progress| progress(user_data, name.as_ptr(), done, to_do) == 0)
        })
    })
}
