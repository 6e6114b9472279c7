//! Backups of an open database, and databases from backups.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use frondb::{BackupOptions, Db, Options};

use crate::call::{call, number};
use crate::db::frondb_db;
use crate::error::{c_string, frondb_error};
use crate::handle;
use crate::list::{self, frondb_list};
use crate::options::{OptionsObject, frondb_options};
use crate::slice::{OptionalText, Text, Texts, cleared};
use crate::stats::{self, frondb_stats};
use crate::verify::frondb_progress;

/// Calls `progress` with the bytes that are done and all bytes.
fn reporter(progress: frondb_progress, user_data: *mut c_void) -> impl FnMut(u64, u64) -> bool {
    let name = c_string("");
    move |done, total| {
        progress.is_none_or(|progress| progress(user_data, name.as_ptr(), done, total) == 0)
    }
}

/// Copies the database into the directory `to`, which must be empty or missing and lie outside of the
/// database and its log, while others read and write it. The backup has everything that was committed
/// before the call, and nothing that is committed after the first call of `progress`. Writers wait for
/// some milliseconds while that moment is fixed. frondb_restore() makes a database of it.
///
/// `since` is NULL, or the directory of a complete backup of the same database: the new one then holds
/// only what that one and those before it do not. `bytes_per_second` limits what is read; 0 means no
/// limit. `progress` receives the bytes read and all bytes; its tree is an empty string. `counts` has
/// `bytes` (what the backup holds), `database_bytes`, `log_bytes`, `log_end` and `incremental` (1 or 0).
/// `progress` and `counts` may be NULL.
///
/// While the backup is made, space that the database frees is kept until the backup has read it. If
/// less than 128 MiB of the disk is left, the backup is given up, and not a writer. A backup that fails leaves a file
/// `BACKUP.unfinished` and cannot be restored.
///
/// Threads: any; one backup at a time.
///
/// Errors: FRONDB_EXISTS if `to` has files; FRONDB_INVALID if it overlaps the database, its log or the
/// backup to continue, if the database has not made that backup, or was opened read-only; FRONDB_NOT_FOUND, FRONDB_CORRUPTION and
/// FRONDB_UNSUPPORTED of that backup; FRONDB_BUSY if another backup is being made; FRONDB_CANCELLED;
/// FRONDB_NO_SPACE on either side; FRONDB_POISONED; FRONDB_CLOSED; FRONDB_IO.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_backup(
    db: *mut frondb_db,
    to: Text,
    since: OptionalText,
    bytes_per_second: u64,
    progress: frondb_progress,
    user_data: *mut c_void,
    counts: Option<&mut MaybeUninit<*mut frondb_stats>>,
) -> *mut frondb_error {
    call(|| {
        let counts = cleared(counts);
        let db = handle::shared::<Db>(db)?;
        let mut options = BackupOptions::new().bytes_per_second(bytes_per_second);
        if let Some(since) = since.path()? {
            options = options.since(since);
        }
        let report = db.backup(to.path()?, &options, &mut reporter(progress, user_data))?;
        if counts.is_some() {
            let named = vec![
                ("bytes", report.bytes),
                ("database_bytes", report.database_bytes),
                ("log_bytes", report.log_bytes),
                ("log_end", report.log_end),
                ("incremental", u64::from(report.is_incremental)),
            ];
            stats::give(counts, named, None)?;
        }
        Ok(())
    })
}

/// Makes a database in the directory `to`, which must be empty or missing, from `count` backups: a
/// full one, and the incremental ones after it in the order in which they were made. Every byte is
/// compared with its checksum. Of `options`, which may be NULL, the permission bits count. `progress`,
/// which may be NULL, receives the bytes written and all bytes; its tree is an empty string.
///
/// Until the restore is complete, `to` has only a directory `unfinished-restore` and is not a
/// database. A failed call removes that directory; a killed process leaves it.
///
/// Threads: any.
///
/// Errors: FRONDB_NOT_FOUND if a directory has no complete backup; FRONDB_INVALID if no backup is
/// given, if they do not continue each other or overlap `to`; FRONDB_EXISTS if `to` has files; FRONDB_CORRUPTION if a backup is damaged;
/// FRONDB_UNSUPPORTED; FRONDB_CANCELLED; FRONDB_NO_SPACE; FRONDB_IO.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_restore(
    backups: Texts,
    count: usize,
    to: Text,
    options: *mut frondb_options,
    progress: frondb_progress,
    user_data: *mut c_void,
) -> *mut frondb_error {
    call(|| {
        let options = match handle::optional::<OptionsObject>(options)? {
            Some(options) => options.0.clone(),
            None => Options::new(),
        };
        let backups = backups.paths(count)?;
        Db::restore(&backups, to.path()?, &options, &mut reporter(progress, user_data)).map(drop)
    })
}

/// Reads the backup in the directory `backup`, and compares every byte of it with its checksum.
/// `faults` describes in words what does not match; damage is not an error of this function. What an
/// incremental backup has from those before it is not read: verify each of them. `counts` has `bytes`,
/// `database_bytes`, `log_end`, `incremental` (1 or 0) and `faults`. `progress` receives the bytes read
/// and all bytes; its tree is an empty string. `progress`, `counts` and `faults` may be NULL.
///
/// Threads: any.
///
/// Errors: FRONDB_NOT_FOUND if there is no complete backup; FRONDB_CORRUPTION if its list is damaged;
/// FRONDB_UNSUPPORTED; FRONDB_CANCELLED; FRONDB_IO.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_verify_backup(
    backup: Text,
    progress: frondb_progress,
    user_data: *mut c_void,
    counts: Option<&mut MaybeUninit<*mut frondb_stats>>,
    faults: Option<&mut MaybeUninit<*mut frondb_list>>,
) -> *mut frondb_error {
    call(|| {
        let (counts, faults) = (cleared(counts), cleared(faults));
        let found = Db::verify_backup(backup.path()?, &mut reporter(progress, user_data))?;
        let named = vec![
            ("bytes", found.bytes),
            ("database_bytes", found.database_bytes),
            ("log_end", found.log_end),
            ("incremental", u64::from(found.is_incremental)),
            ("faults", number(found.faults.len())),
        ];
        // The list first: if that fails, no other object has been made.
        if faults.is_some() {
            list::give(faults, found.faults.iter().cloned())?;
        }
        if counts.is_some() {
            stats::give(counts, named, None)?;
        }
        Ok(())
    })
}
