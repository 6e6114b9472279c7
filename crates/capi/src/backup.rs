//! Backups of an open database, and restores of databases from backups.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use frondb::{Backup, BackupOptions, BackupReport, Db, Options};
use frondb_core::{Error, Result};

use crate::call::{call, create, free, number};
use crate::db::frondb_db;
use crate::error::{c_string, frondb_error, frondb_kind};
use crate::handle::{self, object};
use crate::list::{self, frondb_list};
use crate::options::{OptionsObject, frondb_options};
use crate::slice::{OptionalText, Text, Texts, cleared, frondb_slice};
use crate::stats::{self, frondb_stats};
use crate::verify::frondb_progress;

/// Returns a closure that calls `progress` with an empty tree name. The closure returns false to
/// stop the work.
fn reporter(progress: frondb_progress, user_data: *mut c_void) -> impl FnMut(u64, u64) -> bool {
    let name = c_string("");
    move |done, total| {
        progress.is_none_or(|progress| progress(user_data, name.as_ptr(), done, total) == 0)
    }
}

fn options(bytes_per_second: u64, since: OptionalText) -> Result<BackupOptions> {
    let options = BackupOptions::new().bytes_per_second(bytes_per_second);
    Ok(match since.path()? {
        Some(since) => options.since(since),
        None => options,
    })
}

fn give_counts(
    report: &BackupReport,
    counts: Option<&mut MaybeUninit<*mut frondb_stats>>,
) -> Result<()> {
    if counts.is_none() {
        return Ok(());
    }
    let named = vec![
        ("bytes", report.bytes),
        ("database_bytes", report.database_bytes),
        ("log_bytes", report.log_bytes),
        ("log_end", report.log_end),
        ("incremental", u64::from(report.is_incremental)),
    ];
    stats::give(counts, named, None)
}

fn copied() -> Error {
    Error::invalid("the copy of this backup has begun already")
}

/// Copies the database, while other threads read and write it, into the directory `to`, which must
/// be empty or missing and lie outside of the database and its log. The backup has everything that
/// was committed before the call, and nothing that is committed after the first call of `progress`.
/// Writers wait for some milliseconds while the moment of the backup is fixed. frondb_restore()
/// makes a database from the backup.
///
/// `since` is NULL, or the directory of a complete backup of the same database: the new backup then
/// has only the data that is neither in that backup nor in the backups before it.
/// `bytes_per_second` limits how fast the database is read; 0 means no limit. `progress` receives
/// the bytes read and the bytes to read, as far as they are known, with an empty tree name.
/// `counts` has `bytes` (the size of the backup), `database_bytes`, `log_bytes`, `log_end` and
/// `incremental` (1 or 0). `progress` and `counts` may be NULL.
///
/// The database does not reuse freed space until the backup has read it. If less than 128 MiB of
/// the disk is left, the backup is given up, so that writers can continue. A backup that fails
/// after it has begun to write leaves a file `BACKUP.unfinished` and cannot be restored.
///
/// Threads: any; one backup at a time.
///
/// Errors: FRONDB_EXISTS if `to` has files; FRONDB_INVALID if `to` overlaps the database, its log
/// or `since`, if this database has not made the backup in `since`, or if the database was opened
/// read-only; FRONDB_NOT_FOUND, FRONDB_CORRUPTION and FRONDB_UNSUPPORTED for the backup in `since`;
/// FRONDB_CORRUPTION also for damaged data of the database; FRONDB_BUSY if another backup is being
/// made; FRONDB_CANCELLED; FRONDB_NO_SPACE for the backup or the database; FRONDB_POISONED;
/// FRONDB_CLOSED; FRONDB_IO.
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
        let options = options(bytes_per_second, since)?;
        let report = db.backup(to.path()?, &options, &mut reporter(progress, user_data))?;
        give_counts(&report, counts)
    })
}

/// A backup that has begun. From frondb_backup_fix() until the backup is copied or freed, the
/// database does not reuse the space that it frees, and keeps log files that it no longer needs. So
/// copy the backup soon.
pub struct frondb_backup {
    _private: [u8; 0],
}

object!(frondb_backup, BackupObject, Backup);

/// A backup; `None` once its copy has begun.
pub struct BackupObject(Option<Backup>);

/// Begins a backup into `to`. frondb_backup_fix() later fixes the moment of the backup: a program
/// that must hold back its writers does so only for that call, some milliseconds, and can add its
/// own files of the same moment with frondb_backup_attach(). frondb_backup_copy() then makes the
/// backup. This call reads the list of files of the backup in `since`, and creates the directory
/// `to`. Free the backup with frondb_backup_free(), copied or not.
///
/// Threads: any. Only one backup at a time can have a fixed moment, until that backup is copied or
/// freed.
///
/// Errors: as frondb_db_backup(), except FRONDB_BUSY.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_begin_backup(
    db: *mut frondb_db,
    to: Text,
    since: OptionalText,
    bytes_per_second: u64,
    backup: Option<&mut MaybeUninit<*mut frondb_backup>>,
) -> *mut frondb_error {
    create(backup, || {
        let options = options(bytes_per_second, since)?;
        let begun = handle::shared::<Db>(db)?.begin_backup(to.path()?, &options)?;
        Ok(BackupObject(Some(begun)))
    })
}

/// Fixes the moment of a backup: the backup will have everything that was committed before this
/// call, and nothing that is committed after this call. Writers wait for some milliseconds. A
/// repeated call fixes a new moment; attached files stay.
///
/// Threads: one at a time.
///
/// Errors: FRONDB_INVALID if the copy has begun; FRONDB_BUSY if another backup has a fixed moment;
/// FRONDB_NO_SPACE; FRONDB_POISONED; FRONDB_CLOSED; FRONDB_IO. After an error the backup has no
/// moment.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_backup_fix(backup: *mut frondb_backup) -> *mut frondb_error {
    call(|| {
        let mut object = handle::exclusive::<BackupObject>(backup)?;
        object.0.as_mut().ok_or_else(copied)?.fix()
    })
}

/// Adds a file to the backup that is not part of the database but belongs to the same moment, for
/// example a position in another log. `name` is a relative path; the file will be in the directory
/// `attached` of the backup. frondb_verify_backup() checks it like all other files;
/// frondb_restore() does not copy it.
///
/// Threads: one at a time.
///
/// Errors: FRONDB_INVALID if `name` is not a relative path without `.` and `..`, has more than 1024
/// bytes or a part with more than 255, was given before, or cannot exist beside a name that was
/// given before (`a` beside `a/b`), or if the copy has begun.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_backup_attach(
    backup: *mut frondb_backup,
    name: Text,
    bytes: frondb_slice,
) -> *mut frondb_error {
    call(|| {
        let mut object = handle::exclusive::<BackupObject>(backup)?;
        let begun = object.0.as_mut().ok_or_else(copied)?;
        begun.attach(name.str("name of the file")?, bytes.bytes()?)
    })
}

/// Copies the state of the database at the moment of the backup; if frondb_backup_fix() was not
/// called, fixes the moment first. `progress` and `counts` are as in frondb_db_backup(). A backup
/// can be copied only once, even if the copy fails.
///
/// Threads: one at a time.
///
/// Errors: FRONDB_EXISTS if the directory is no longer empty; FRONDB_INVALID if the backup was
/// copied before; FRONDB_BUSY if this call must fix the moment and another backup has one;
/// FRONDB_CANCELLED; FRONDB_NO_SPACE for the backup or the database; FRONDB_CORRUPTION;
/// FRONDB_POISONED; FRONDB_CLOSED; FRONDB_IO.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_backup_copy(
    backup: *mut frondb_backup,
    progress: frondb_progress,
    user_data: *mut c_void,
    counts: Option<&mut MaybeUninit<*mut frondb_stats>>,
) -> *mut frondb_error {
    call(|| {
        let counts = cleared(counts);
        let begun = handle::exclusive::<BackupObject>(backup)?.0.take().ok_or_else(copied)?;
        give_counts(&begun.copy(&mut reporter(progress, user_data))?, counts)
    })
}

/// Frees a backup; a backup that was not copied is abandoned. NULL is ignored.
///
/// Threads: any; FRONDB_BUSY, and nothing is freed, while another thread is in a call with it,
/// except in frondb_backup_copy(), which continues.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_backup_free(backup: *mut frondb_backup) -> frondb_kind {
    free::<BackupObject>(backup)
}

/// Makes a database in the directory `to`, which must be empty or missing, from `count` backups: a
/// full one, and the incremental ones after it in the order in which they were made. The call
/// compares every byte with its checksum. It uses only the permission bits of `options`, which may
/// be NULL. `progress`, which may be NULL, receives the bytes written and the total, with an empty
/// tree name.
///
/// Until the restore is complete, `to` contains only a directory `unfinished-restore` and is not a
/// database. A failed call removes that directory; a killed process leaves it.
///
/// Threads: any.
///
/// Errors: FRONDB_NOT_FOUND if a directory has no complete backup; FRONDB_INVALID if no backup is
/// given, if a backup does not continue the one before it, or if a backup and `to` overlap;
/// FRONDB_EXISTS if `to` has files; FRONDB_CORRUPTION if a backup is damaged; FRONDB_UNSUPPORTED;
/// FRONDB_CANCELLED; FRONDB_NO_SPACE; FRONDB_IO.
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

/// Reads the backup in the directory `backup`, and compares every byte with its checksum. `faults`
/// describes in words what is missing or does not match; damage is not an error of this function.
/// An incremental backup shares data with earlier backups; this call does not read that data, so
/// verify the earlier backups too. `counts` has `bytes`, `database_bytes`, `log_end`, `incremental`
/// (1 or 0) and `faults`. `progress` receives the bytes read and the total, with an empty tree
/// name. `progress`, `counts` and `faults` may be NULL.
///
/// Threads: any.
///
/// Errors: FRONDB_NOT_FOUND if there is no complete backup; FRONDB_CORRUPTION if its list of files
/// is damaged; FRONDB_UNSUPPORTED; FRONDB_CANCELLED; FRONDB_IO.
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
        // Make the list first: if that fails, no other object has been made.
        if faults.is_some() {
            list::give(faults, found.faults.iter().cloned())?;
        }
        if counts.is_some() {
            stats::give(counts, named, None)?;
        }
        Ok(())
    })
}
