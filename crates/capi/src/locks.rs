//! Lists of the locks that transactions hold and wait for, for status pages and to find the
//! transactions that block others.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use frondb::{Db, LockMode, Locked, WaitHook, WaitInfo, WaitNotice};
use frondb_core::sync::Arc;

use crate::call::{call, create};
use crate::db::frondb_db;
use crate::error::frondb_error;
use crate::handle;
use crate::list::{self, List, frondb_list};
use crate::slice::{UserData, frondb_slice};
use crate::transaction::{FRONDB_LOCK_EXCLUSIVE, FRONDB_LOCK_SHARED, frondb_lock};

struct Item {
    transaction: u64,
    tree: u64,
    locked: Locked,
    mode: LockMode,
    blockers: Vec<u64>,
    waited_nanos: u64,
}

/// The kind of area that a lock covers.
pub type frondb_lock_area = u32;
/// One key: `lo`.
pub const FRONDB_AREA_ROW: frondb_lock_area = 0;
/// Keys between rows, where a locking read found no row.
pub const FRONDB_AREA_GAP: frondb_lock_area = 1;
/// Rows and gaps that a locking scan passed.
pub const FRONDB_AREA_SCANNED: frondb_lock_area = 2;
/// All keys of a range that was locked as a range, or into which many row locks were joined.
pub const FRONDB_AREA_RANGE: frondb_lock_area = 3;

/// A lock that a transaction holds or waits for. Its pointers are valid until the list is freed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct frondb_lock_info {
    /// Number of the transaction, as returned by frondb_txn_id().
    transaction: u64,
    /// Number of the tree, as returned by frondb_tree_id().
    tree: u64,
    /// The kind of area.
    area: frondb_lock_area,
    /// FRONDB_LOCK_SHARED or FRONDB_LOCK_EXCLUSIVE.
    mode: frondb_lock,
    /// First key.
    lo: frondb_slice,
    /// The first key beyond the area; `data` is NULL if the area is a single key or extends to the
    /// end of the tree.
    hi: frondb_slice,
    /// Numbers of the transactions for which this one waits, ascending; none for a lock that is
    /// held.
    blockers: *const u64,
    /// The number of `blockers`.
    blockers_count: usize,
    /// The time waited so far, nanoseconds; 0 for a lock that is held.
    waited_nanos: u64,
}

/// Lists the locks that transactions hold now, in no order, at most `max` of them (0 means no
/// limit). frondb_list_get_lock() reads the items. Transactions take and release locks while the
/// list is made, so the list is not a consistent snapshot. For diagnosis: the call copies every
/// key, and a large transaction holds hundreds of thousands of locks.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_locks(
    db: *mut frondb_db,
    max: usize,
    locks: Option<&mut MaybeUninit<*mut frondb_list>>,
) -> *mut frondb_error {
    create(locks, || {
        let held = handle::shared::<Db>(db)?;
        let held = held.locks_up_to(if max == 0 { usize::MAX } else { max });
        let items = held.into_iter().map(|held| Item {
            transaction: held.transaction,
            tree: held.tree.get().into(),
            locked: held.locked,
            mode: held.mode,
            blockers: Vec::new(),
            waited_nanos: 0,
        });
        Ok(List::of(items.collect::<Vec<Item>>()))
    })
}

/// Lists all current waits for locks, each with the transactions for which the waiting transaction
/// waits. frondb_list_get_lock() reads the items.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_lock_waits(
    db: *mut frondb_db,
    waits: Option<&mut MaybeUninit<*mut frondb_list>>,
) -> *mut frondb_error {
    create(waits, || Ok(of_waits(handle::shared::<Db>(db)?.lock_waits())))
}

/// Makes a list of waits for C.
pub(crate) fn of_waits(waits: Vec<WaitInfo>) -> List {
    let items = waits.into_iter().map(|wait| Item {
        transaction: wait.transaction,
        tree: wait.tree.get().into(),
        locked: wait.wanted,
        mode: wait.mode,
        blockers: wait.blockers,
        waited_nanos: u64::try_from(wait.waited.as_nanos()).unwrap_or(u64::MAX),
    });
    List::of(items.collect::<Vec<Item>>())
}

/// A wait hook. Receives the number of the waiting transaction and the numbers of the transactions
/// for which it waits, ascending. `blockers` is valid during the call.
pub type frondb_wait_hook = Option<
    extern "C" fn(user_data: *mut c_void, waiter: u64, blockers: *const u64, blockers_count: usize),
>;

/// Sets a hook that is called when a wait for a lock begins, and again when more transactions block
/// the waiting one. For programs that decide the order of commits themselves, such as a replica
/// that commits in the order of another server. NULL removes the hook. The waiting thread calls the
/// hook before it sleeps. The hook may call frondb_txn_cancel() for any transaction, must not call
/// other functions with the waiting transaction, and must return normally (no exception, no
/// longjmp). `free_user_data`, unless NULL, is called once when the hook is no longer used. If this
/// function fails, `free_user_data` is not called.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_set_wait_hook(
    db: *mut frondb_db,
    hook: frondb_wait_hook,
    user_data: *mut c_void,
    free_user_data: Option<extern "C" fn(user_data: *mut c_void)>,
) -> *mut frondb_error {
    call(|| {
        let db = handle::shared::<Db>(db)?;
        let user_data = UserData::new(user_data, free_user_data);
        let hook = hook.map(|hook| -> WaitHook {
            Arc::new(move |notice: WaitNotice<'_>| {
                let WaitNotice { waiter, blockers, .. } = notice;
                hook(user_data.get(), waiter, blockers.as_ptr(), blockers.len());
            })
        });
        db.set_wait_hook(hook);
        Ok(())
    })
}

/// Reads item `at`, from 0, of a list of locks or of waits for locks.
///
/// Threads: any.
///
/// Errors: FRONDB_INVALID if `at` is beyond the last item, or if the items are neither locks nor
/// waits.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_list_get_lock(
    list: *mut frondb_list,
    at: usize,
    info: Option<&mut MaybeUninit<frondb_lock_info>>,
) -> *mut frondb_error {
    list::read(list, at, info, |item: &Item| Ok(item.info()))
}

impl Item {
    fn info(&self) -> frondb_lock_info {
        let end = |hi: &Option<Vec<u8>>| {
            hi.as_ref().map_or(frondb_slice::NONE, |hi| frondb_slice::of(hi))
        };
        let (area, lo, hi) = match &self.locked {
            Locked::Row { key } => (FRONDB_AREA_ROW, key, frondb_slice::NONE),
            Locked::Gap { lo, hi } => (FRONDB_AREA_GAP, lo, end(hi)),
            Locked::Scanned { lo, hi } => (FRONDB_AREA_SCANNED, lo, end(hi)),
            Locked::Range { lo, hi } => (FRONDB_AREA_RANGE, lo, end(hi)),
        };
        let mode = match self.mode {
            LockMode::Shared => FRONDB_LOCK_SHARED,
            LockMode::Exclusive => FRONDB_LOCK_EXCLUSIVE,
        };
        frondb_lock_info {
            transaction: self.transaction,
            tree: self.tree,
            area,
            mode,
            lo: frondb_slice::of(lo),
            hi,
            blockers: self.blockers.as_ptr(),
            blockers_count: self.blockers.len(),
            waited_nanos: self.waited_nanos,
        }
    }
}
