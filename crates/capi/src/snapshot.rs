//! Snapshots: fixed states to read at.

use std::mem::MaybeUninit;

use std::time::Duration;

use frondb::{Result, Snapshot, Tree};

use crate::call::{call, free};
use crate::db::frondb_db;
use crate::error::{frondb_error, frondb_kind};
use crate::handle::{self, object};
use crate::slice::{Trees, out_handle};

/// A fixed state of a whole database to read at. While it lives, space of what it still sees is
/// not given back.
pub struct frondb_snapshot {
    _private: [u8; 0],
}

object!(frondb_snapshot, Snapshot, Snapshot);

/// Takes a snapshot of all that is committed. Free it with frondb_snapshot_free().
///
/// Threads: any, and any number of them may read at it.
///
/// Errors: FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_snapshot(
    db: *mut frondb_db,
    snapshot: Option<&mut MaybeUninit<*mut frondb_snapshot>>,
) -> *mut frondb_error {
    call(|| {
        let place = out_handle(snapshot)?;
        let snapshot = handle::shared::<frondb::Db>(db)?.snapshot()?;
        place.write(handle::insert(snapshot)?);
        Ok(())
    })
}

/// Takes a snapshot that sees all that transactions have written to `count` trees before this call.
/// Waits up to `timeout_millis` for each to end, prepared ones too, and keeps others from writing there for the
/// moment it takes. For who builds an index of existing data: create its tree, have everybody write to it
/// from now on, then read the data at this snapshot: no row is missed.
///
/// Threads: any.
///
/// Errors: FRONDB_BUSY if the time was up and a prepared transaction has written there: commit it or roll it back
/// first;
/// FRONDB_LOCK_TIMEOUT; FRONDB_DEADLOCK if there was one when the time was up; FRONDB_INVALID for a tree
/// of another database; FRONDB_NOT_FOUND if one was dropped; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_snapshot_behind_writers(
    db: *mut frondb_db,
    trees: Trees,
    count: usize,
    timeout_millis: u64,
    snapshot: Option<&mut MaybeUninit<*mut frondb_snapshot>>,
) -> *mut frondb_error {
    call(|| {
        let place = out_handle(snapshot)?;
        let trees = trees.handles(count)?.iter().map(|tree| handle::shared::<Tree>(*tree));
        let trees = trees.collect::<Result<Vec<_>>>()?;
        let trees: Vec<&Tree> = trees.iter().map(|tree| &**tree).collect();
        let timeout = Duration::from_millis(timeout_millis);
        let snapshot =
            handle::shared::<frondb::Db>(db)?.snapshot_behind_writers(&trees, timeout)?;
        place.write(handle::insert(snapshot)?);
        Ok(())
    })
}

/// Frees a snapshot. NULL is ignored. Cursors that read at it go on.
///
/// Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses it.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_snapshot_free(snapshot: *mut frondb_snapshot) -> frondb_kind {
    free::<Snapshot>(snapshot)
}
