//! The last deadlock, for status pages.

use std::mem::MaybeUninit;

use frondb::Db;

use crate::call::{call, number};
use crate::db::frondb_db;
use crate::error::frondb_error;
use crate::handle;
use crate::list::frondb_list;
use crate::locks::of_waits;
use crate::slice::{out, out_flag, out_handle};

/// The last deadlock.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct frondb_deadlock_info {
    /// Number of the victim: the transaction that was rolled back, or a batch or bulk load.
    victim: u64,
    /// The number of transactions in the cycle.
    transactions: u64,
    /// Time since the deadlock was found, nanoseconds.
    ago_nanos: u64,
}

/// Returns the last deadlock since the database was opened. `found` is set to whether there was
/// one; if not, `waits` is set to NULL and `info` is not written.
///
/// `waits` has the wait of each transaction of the cycle, in the order of the cycle: each
/// transaction waits for the next one, the last for the first. frondb_list_get_lock() reads the
/// waits. At most 16 waits are listed, and keys are cut to 1,024 bytes. Free the list with
/// frondb_list_free().
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_last_deadlock(
    db: *mut frondb_db,
    info: Option<&mut MaybeUninit<frondb_deadlock_info>>,
    waits: Option<&mut MaybeUninit<*mut frondb_list>>,
    found: Option<&mut MaybeUninit<bool>>,
) -> *mut frondb_error {
    call(|| {
        let (waits, found, info) = (out_handle(waits)?, out_flag(found)?, out(info)?);
        let Some(last) = handle::shared::<Db>(db)?.last_deadlock() else { return Ok(()) };
        info.write(frondb_deadlock_info {
            victim: last.victim,
            transactions: number(last.transactions),
            ago_nanos: u64::try_from(last.ago.as_nanos()).unwrap_or(u64::MAX),
        });
        waits.write(handle::insert(of_waits(last.waits))?);
        found.write(true);
        Ok(())
    })
}
