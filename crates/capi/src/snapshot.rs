//! Snapshots: fixed states to read at.

use std::mem::MaybeUninit;

use frondb::Snapshot;

use crate::call::{call, free};
use crate::db::frondb_db;
use crate::error::{frondb_error, frondb_kind};
use crate::handle::{self, object};
use crate::slice::out_handle;

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

/// Frees a snapshot. NULL is ignored. Cursors that read at it go on.
///
/// Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses it.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_snapshot_free(snapshot: *mut frondb_snapshot) -> frondb_kind {
    free::<Snapshot>(snapshot)
}
