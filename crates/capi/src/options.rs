//! Options of a database: an object with setters, so that new options need no new layout.

use std::mem::MaybeUninit;
use std::time::Duration;

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

/// The memory budget, bytes: cache, memtables, filters, indexes and work buffers. At least 16 MiB;
/// default a quarter of the machine's memory.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_memory_bytes(
    options: *mut frondb_options,
    bytes: u64,
) -> *mut frondb_error {
    set(options, |options| Ok(options.memory_bytes(bytes)))
}

/// Bytes that all memtables together may take before the largest one is flushed: 16 KiB to half of
/// the memory budget. 0, the default, means a quarter of the budget, or less if the budget is below
/// 64 MiB.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_write_buffer_bytes(
    options: *mut frondb_options,
    bytes: u64,
) -> *mut frondb_error {
    set(options, |options| Ok(options.write_buffer_bytes(bytes)))
}

/// Whether to create the database if the directory has none. Default true.
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

/// Whether to open the database without changing a byte of it. Default false. Several processes may
/// have the database open read-only at the same time, but not while another process has it open for
/// writing. Calls that would write fail with FRONDB_INVALID.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_read_only(
    options: *mut frondb_options,
    read_only: bool,
) -> *mut frondb_error {
    set(options, |options| Ok(options.read_only(read_only)))
}

/// Whether other processes may ask this process for statistics and backups while it has the
/// database open; `frondb stats` and `frondb backup` do. Default false. The database then has a
/// socket in its directory, with the mode of its files, and a thread that waits for questions.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_attachable(
    options: *mut frondb_options,
    attachable: bool,
) -> *mut frondb_error {
    set(options, |options| Ok(options.attachable(attachable)))
}

/// What a commit with FRONDB_SYNC waits for before it returns.
pub type frondb_sync_mode = u32;
/// The call returns once the commit is on disk. Commits that wait at the same time share one sync
/// (group commit). The default.
pub const FRONDB_SYNC_ALWAYS: frondb_sync_mode = 0;
/// The call does not wait; the commit reaches the disk at most `millis` milliseconds later.
pub const FRONDB_SYNC_EVERY_MILLIS: frondb_sync_mode = 1;
/// The call does not wait; the commit reaches the disk when the log is synced for another reason.
pub const FRONDB_SYNC_NEVER: frondb_sync_mode = 2;

/// Converts a mode of C; `millis` is used for FRONDB_SYNC_EVERY_MILLIS only.
pub(crate) fn sync_mode(mode: frondb_sync_mode, millis: u64) -> Result<SyncMode> {
    match mode {
        FRONDB_SYNC_ALWAYS => Ok(SyncMode::Always),
        FRONDB_SYNC_EVERY_MILLIS => Ok(SyncMode::EveryMillis(millis)),
        FRONDB_SYNC_NEVER => Ok(SyncMode::Never),
        other => Err(Error::invalid(format!("unknown frondb_sync_mode {other}"))),
    }
}

/// What a commit with FRONDB_SYNC waits for; `millis` is used for FRONDB_SYNC_EVERY_MILLIS only.
/// Default FRONDB_SYNC_ALWAYS.
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

/// The directory of the log, for a log on a device of its own. Default: `wal` in the
/// directory of the database. Must be the same at every open.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_log_dir(
    options: *mut frondb_options,
    path: Text,
) -> *mut frondb_error {
    set(options, |options| Ok(options.log_dir(path.path()?)))
}

/// Permission bits of new files, independent of the umask: 0600 to 0666; the owner's bits must be
/// set. Default 0600, for the owner alone. Existing files keep their bits. To share a database with
/// a group, pass 0640 or 0660 at every open.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_file_mode(
    options: *mut frondb_options,
    mode: u32,
) -> *mut frondb_error {
    set(options, |options| Ok(options.file_mode(mode)))
}

/// Permission bits of new directories, independent of the umask: 0700 to 0777; the owner's bits
/// must be set. Default: the file mode with an x for each r, so 0700.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_dir_mode(
    options: *mut frondb_options,
    mode: u32,
) -> *mut frondb_error {
    set(options, |options| Ok(options.dir_mode(mode)))
}

/// Size of a log file, bytes: 64 KiB to 1 GiB; 0, the default, means a quarter of the write buffer,
/// but at most 100 MiB.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_log_segment_bytes(
    options: *mut frondb_options,
    bytes: u64,
) -> *mut frondb_error {
    set(options, |options| Ok(options.log_segment_bytes(bytes)))
}

/// Whether log records are compressed with lz4 if that makes them smaller. Default false.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_log_compression(
    options: *mut frondb_options,
    on: bool,
) -> *mut frondb_error {
    set(options, |options| Ok(options.log_compression(on)))
}

/// Whether each block and log record that lz4 or zstd up to level 3 has compressed is decoded and
/// compared before it is written, as is always done for the other codecs. Default false.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_verify_fast_codecs(
    options: *mut frondb_options,
    on: bool,
) -> *mut frondb_error {
    set(options, |options| Ok(options.verify_fast_codecs(on)))
}

/// Number of threads that flush and merge. With 0, this work happens inside the calls that need it.
/// Default: half of the cores, at least 2.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_background_threads(
    options: *mut frondb_options,
    threads: u32,
) -> *mut frondb_error {
    set(options, |options| Ok(options.background_threads(threads as usize)))
}

/// Whether data files bypass the operating system's page cache if the file system supports it.
/// Default true.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_direct_io(
    options: *mut frondb_options,
    on: bool,
) -> *mut frondb_error {
    set(options, |options| Ok(options.direct_io(on)))
}

/// Disk space reserved for deletes and one merge on a full disk, bytes. Default 24 MiB, at most
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

/// About how long, in milliseconds, a message may be on disk only in the log before it is flushed,
/// even if the write buffer has room, so that recovery replays little. Default 0: no limit on the
/// time, only the log's limit of twice the write buffer.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_checkpoint_millis(
    options: *mut frondb_options,
    millis: u64,
) -> *mut frondb_error {
    set(options, |options| Ok(options.checkpoint_period(Duration::from_millis(millis))))
}

/// The most bytes per second that flushes and merges write; if they fall behind, writers are slowed
/// down. Default 0: no limit.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_options_set_background_bytes_per_second(
    options: *mut frondb_options,
    bytes: u64,
) -> *mut frondb_error {
    set(options, |options| Ok(options.background_bytes_per_second(bytes)))
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
