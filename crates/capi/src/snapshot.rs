//! Snapshots: fixed states of a database that reads can see.

use frondb::Snapshot;

use crate::call::free;
use crate::error::frondb_kind;
use crate::handle::object;

/// A fixed state of a whole database for reads. Data that a live snapshot can see stays on disk,
/// even after it is deleted or overwritten.
pub struct frondb_snapshot {
    _private: [u8; 0],
}

object!(frondb_snapshot, Snapshot, Snapshot);

/// Frees a snapshot; NULL is ignored. Cursors that read at the snapshot stay usable.
///
/// Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses it.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_snapshot_free(snapshot: *mut frondb_snapshot) -> frondb_kind {
    free::<Snapshot>(snapshot)
}
