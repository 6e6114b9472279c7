//! Options of a database: an object that is filled by setters, so that new options need no new
//! layout.

use std::mem::MaybeUninit;
use std::time::Duration;

use frondb::{Error, Options, Result, SyncMode};

use crate::call::{call, free};
use crate::error::{frondb_error, frondb_kind};
use crate::handle::{self, object};
use crate::slice::{Text, out_handle};
use crate::update::{self, frondb_update_fn};

/// How a database is opened. Made by frondb_options_new() with the defaults, which need no
/// tuning; values are checked by frondb_db_open(). May be used for several opens.
pub struct frondb_options {
    _private: [u8; 0],
}

object!(frondb_options, OptionsObject, Options);

/// The options so far.
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

/// Makes options with the defaults: make the database if there is none, a quarter of the machine's
/// memory, sync at every commit. Free them with frondb_options_free().
///
/// Threads: any. The options are for one thread at a time; a second one gets FRONDB_BUSY.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_new(
    options: Option<&mut MaybeUninit<*mut frondb_options>>,
) -> *mut frondb_error {
    call(|| {
        let place = out_handle(options)?;
        place.write(handle::insert(OptionsObject(Options::new()))?);
        Ok(())
    })
}

/// Frees options. NULL is ignored. Databases opened with them go on.
///
/// Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses them.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_free(options: *mut frondb_options) -> frondb_kind {
    free::<OptionsObject>(options)
}

/// All the memory the engine may use, bytes: cache, memtables, filters, indexes and work buffers. At
/// least 16 MiB; default a quarter of the machine's memory.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_memory_bytes(
    options: *mut frondb_options,
    bytes: u64,
) -> *mut frondb_error {
    set(options, |options| Ok(options.memory_bytes(bytes)))
}

/// How much of the memory is filled with writes before the largest tree's are flushed, bytes: 16 KiB
/// to half of the memory; 0, the default, for a quarter, and less below 64 MiB of memory.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_write_buffer_bytes(
    options: *mut frondb_options,
    bytes: u64,
) -> *mut frondb_error {
    set(options, |options| Ok(options.write_buffer_bytes(bytes)))
}

/// Whether to make the database if the directory has none. Default true.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_create(
    options: *mut frondb_options,
    create: bool,
) -> *mut frondb_error {
    set(options, |options| Ok(options.create(create)))
}

/// Whether to fail if the directory has a database already. Default false.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_create_new(
    options: *mut frondb_options,
    create_new: bool,
) -> *mut frondb_error {
    set(options, |options| Ok(options.create_new(create_new)))
}

/// Whether to open the database without changing a byte of it. Default false. Several processes may read
/// at once, and none that writes beside them; every call that would write is FRONDB_INVALID.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_read_only(
    options: *mut frondb_options,
    read_only: bool,
) -> *mut frondb_error {
    set(options, |options| Ok(options.read_only(read_only)))
}

/// What a commit with FRONDB_SYNC waits for.
pub type frondb_sync_mode = u32;
/// Until it is on the disk. Commits that wait at the same time share one sync. The default.
pub const FRONDB_SYNC_ALWAYS: frondb_sync_mode = 0;
/// For nothing; it is on the disk at most so many milliseconds later.
pub const FRONDB_SYNC_EVERY_MILLIS: frondb_sync_mode = 1;
/// For nothing; it is on the disk when the log is synced for another reason.
pub const FRONDB_SYNC_NEVER: frondb_sync_mode = 2;

/// The mode of a number; `millis` counts for one of them only.
pub(crate) fn sync_mode(mode: frondb_sync_mode, millis: u64) -> Result<SyncMode> {
    match mode {
        FRONDB_SYNC_ALWAYS => Ok(SyncMode::Always),
        FRONDB_SYNC_EVERY_MILLIS => Ok(SyncMode::EveryMillis(millis)),
        FRONDB_SYNC_NEVER => Ok(SyncMode::Never),
        other => Err(Error::invalid(format!("there is no frondb_sync_mode {other}"))),
    }
}

/// What a commit with FRONDB_SYNC waits for; `millis` is for FRONDB_SYNC_EVERY_MILLIS alone. Default
/// FRONDB_SYNC_ALWAYS.
///
/// Threads: one at a time.
///
/// Errors: FRONDB_INVALID for a mode that does not exist.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_sync(
    options: *mut frondb_options,
    mode: frondb_sync_mode,
    millis: u64,
) -> *mut frondb_error {
    set(options, |options| Ok(options.sync(sync_mode(mode, millis)?)))
}

/// Where the log is kept, for a device of its own. Default: in the database directory. Must be the
/// same at every open.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_log_dir(
    options: *mut frondb_options,
    path: Text,
) -> *mut frondb_error {
    set(options, |options| Ok(options.log_dir(path.path()?)))
}

/// Permission bits of new files, whatever the umask is: 0600 to 0666, with those of the owner. Default 0600,
/// for the owner alone. Files that exist keep theirs, so that who shares a database with a group gives 0640 or
/// 0660 at every open.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_file_mode(
    options: *mut frondb_options,
    mode: u32,
) -> *mut frondb_error {
    set(options, |options| Ok(options.file_mode(mode)))
}

/// Permission bits of new directories, whatever the umask is: 0700 to 0777, with those of the owner. Default:
/// those of files, and an x for each r, so 0700.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_dir_mode(
    options: *mut frondb_options,
    mode: u32,
) -> *mut frondb_error {
    set(options, |options| Ok(options.dir_mode(mode)))
}

/// Bytes that a file of the log grows to: 64 KiB to 1 GiB; 0, the default, for a quarter of the write
/// buffer and at most 100 MiB.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_log_segment_bytes(
    options: *mut frondb_options,
    bytes: u64,
) -> *mut frondb_error {
    set(options, |options| Ok(options.log_segment_bytes(bytes)))
}

/// Whether log records are compressed with lz4 where that pays. Default false.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_log_compression(
    options: *mut frondb_options,
    on: bool,
) -> *mut frondb_error {
    set(options, |options| Ok(options.log_compression(on)))
}

/// Threads that flush and merge. 0 does all of it inside the calls that need it. Default: half of
/// the cores, at least 2.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_background_threads(
    options: *mut frondb_options,
    threads: u32,
) -> *mut frondb_error {
    set(options, |options| Ok(options.background_threads(threads as usize)))
}

/// Whether data files bypass the operating system's cache where the file system can. Default true.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_direct_io(
    options: *mut frondb_options,
    on: bool,
) -> *mut frondb_error {
    set(options, |options| Ok(options.direct_io(on)))
}

/// Disk space kept ready for deletes and one merge on a full disk, bytes. Default 24 MiB, at most
/// 256 MiB.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_reserve_bytes(
    options: *mut frondb_options,
    bytes: u64,
) -> *mut frondb_error {
    set(options, |options| Ok(options.reserve_bytes(bytes)))
}

/// How long a record of the log may be the only place of its messages, about, milliseconds: then they
/// are flushed, although there is room for more, so that a crash replays little. Default 0: as long as
/// the log is no longer than twice the write buffer.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_checkpoint_millis(
    options: *mut frondb_options,
    millis: u64,
) -> *mut frondb_error {
    set(options, |options| Ok(options.checkpoint_period(Duration::from_millis(millis))))
}

/// Bytes a second that flushes and merges may write; writers are slowed to what they can follow.
/// Default 0: no limit.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_background_bytes_per_second(
    options: *mut frondb_options,
    bytes: u64,
) -> *mut frondb_error {
    set(options, |options| Ok(options.background_bytes_per_second(bytes)))
}

/// Registers an update function, beside other versions of it. A tree that was made with one that is
/// missing takes no updates, and its keys that have some cannot be read. If this fails,
/// `free_user_data` is not called.
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
