//! Options of a database: an object with one setter that takes the name of an option, so that a new
//! option needs no new function.

use std::mem::MaybeUninit;

use frondb::{Error, Options, Result, SyncMode};

use crate::call::{call, create, free};
use crate::error::{frondb_error, frondb_kind};
use crate::handle::{self, object};
use crate::slice::Text;
use crate::update::{self, frondb_update_fn};

/// Options for opening a database. frondb_options_new() makes options with the defaults, which need
/// no tuning; frondb_db_open() checks the values. May be used for several opens.
pub struct frondb_options {
    _private: [u8; 0],
}

object!(frondb_options, OptionsObject, Options);

/// The options set so far.
#[derive(Clone)]
pub struct OptionsObject(pub(crate) Options);

fn set(
    options: *mut frondb_options,
    change: impl FnOnce(Options) -> Result<Options>,
) -> *mut frondb_error {
    call(|| {
        let mut options = handle::exclusive::<OptionsObject>(options)?;
        options.0 = change(options.0.clone())?;
        Ok(())
    })
}

/// Makes options with the defaults: create the database if there is none, a quarter of the
/// machine's memory, sync at every commit. Free them with frondb_options_free().
///
/// Threads: any. One thread at a time may use the options; a second one gets FRONDB_BUSY.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_new(
    options: Option<&mut MaybeUninit<*mut frondb_options>>,
) -> *mut frondb_error {
    create(options, || Ok(OptionsObject(Options::new())))
}

/// Frees options; NULL is ignored. Databases opened with them are not affected.
///
/// Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses them.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_free(options: *mut frondb_options) -> frondb_kind {
    free::<OptionsObject>(options)
}

/// Sets an option by its name; docs/operating/options.md lists the options with their ranges and
/// defaults. `value` is a text: `on` or `off`; a number, for a size also with a suffix, such as K
/// or KiB; a time, such as `60s` or `100ms`; an octal number for permission bits; `always`, `never`
/// or a time for `sync`; a path; `default` for the default. For example:
///
/// frondb_options_set(options, "memory_bytes", "64M");
///
/// Threads: one at a time.
///
/// Errors: FRONDB_INVALID if there is no such option, or the value does not have its type. The open
/// checks the range.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set(
    options: *mut frondb_options,
    name: Text,
    value: Text,
) -> *mut frondb_error {
    set(options, |options| options.set(name.str("name of the option")?, value.str("value")?))
}

/// Sets the directory of the log, for a log on a device of its own. Default: `wal` in the directory
/// of the database. The directory must be the same at every open. Unlike frondb_options_set(), this
/// function also accepts a path that is not UTF-8.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_log_dir(
    options: *mut frondb_options,
    path: Text,
) -> *mut frondb_error {
    set(options, |options| Ok(options.log_dir(path.path()?)))
}

/// What a commit with FRONDB_SYNC waits for before it returns.
pub type frondb_sync_mode = u32;
/// Waits until the commit is on disk. Commits that wait at the same time share one sync (group
/// commit). The default.
pub const FRONDB_SYNC_ALWAYS: frondb_sync_mode = 0;
/// Does not wait; the commit reaches the disk at most `millis` milliseconds plus the time of a sync
/// later. `millis` is 1 to 86,400,000 (one day).
pub const FRONDB_SYNC_EVERY_MILLIS: frondb_sync_mode = 1;
/// Does not wait; the commit reaches the disk when the log is synced for another reason.
pub const FRONDB_SYNC_NEVER: frondb_sync_mode = 2;

/// Converts a sync mode of C; `millis` is used for FRONDB_SYNC_EVERY_MILLIS only.
pub(crate) fn sync_mode(mode: frondb_sync_mode, millis: u64) -> Result<SyncMode> {
    match mode {
        FRONDB_SYNC_ALWAYS => Ok(SyncMode::Always),
        FRONDB_SYNC_EVERY_MILLIS => Ok(SyncMode::EveryMillis(millis)),
        FRONDB_SYNC_NEVER => Ok(SyncMode::Never),
        other => Err(Error::invalid(format!("unknown frondb_sync_mode {other}"))),
    }
}

/// Registers an update function; several versions of it may be registered. If the function of a
/// tree is not registered, the tree accepts no updates, and keys with pending updates cannot be
/// read. If this call fails, `free_user_data` is not called.
///
/// Threads: one at a time.
///
/// Errors: FRONDB_INVALID for a function without `apply` or name, or with a wrong size.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_add_update_fn(
    options: *mut frondb_options,
    function: Option<&frondb_update_fn>,
) -> *mut frondb_error {
    set(options, |options| Ok(options.update_fn(update::of_caller(function)?)))
}
