//! `backup`, `restore`, `verify-backup`.

use std::path::Path;

use frondb::{BackupOptions, Db, ErrorKind, Options};
use serde_json::json;

use super::inspect::counted;
use super::session::{Source, note, of_database, of_owner};
use crate::args::{Backup, Common, Restore, VerifyBackup};
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;

/// Names of the engine's folder in the data directory of MariaDB: in this version, and in early
/// ones.
const FOLDERS_OF_MARIADB: [&str; 2] = ["#sql-frondb", "#frondb"];

pub(crate) fn backup(common: &Common, args: &Backup) -> Result<(), Failure> {
    let source = Source::open(common, &args.dir)?;
    let mut options =
        BackupOptions::new().bytes_per_second(args.bytes_per_second).file_mode(common.file_mode);
    if let Some(since) = &args.since {
        options = options.since(since);
    }
    let mut shown = Progress::bytes(common, Some(0));
    let mut progress = |done, total| {
        shown.of(done, total);
        true
    };
    let made = match &source {
        Source::Session(session) => session.db.backup(&args.to, &options, &mut progress),
        Source::Owner(owner) => owner.backup(&args.to, &options, &mut progress),
    };
    let report = made.map_err(|error| match (error.place(), &source) {
        // `BACKUP` is the list of files of the backup that --since names: that backup is damaged,
        // not the database.
        (Some(place), _) if place.file == "BACKUP" => of_backup(&args.to, error),
        (_, Source::Session(_)) => of_database(&args.to, error),
        (_, Source::Owner(_)) if error.kind() == ErrorKind::Io => of_owner(error).with_hint(
            "the process that has the database open writes the backup, as its own user: run the command as this user \
             or as root, and give a directory that this user may write to",
        ),
        (_, Source::Owner(_)) => of_owner(error),
    })?;
    shown.end();
    if let Source::Session(session) = source {
        session.close()?;
    }
    if FOLDERS_OF_MARIADB.iter().any(|name| args.dir.ends_with(name)) {
        note(
            common,
            "the definitions of MariaDB's tables are not in this backup: `SET frondb_backup_dir` in the server makes one that has them",
        );
    }
    let mut out = Output::new(common);
    let result = json!({
        "bytes": report.bytes,
        "database_bytes": report.database_bytes,
        "log_bytes": report.log_bytes,
        "log_end": report.log_end,
        "incremental": report.is_incremental,
    });
    out.done(&result, |_| {
        let (bytes, all) = (report.bytes, report.database_bytes);
        match report.is_incremental {
            true => format!("{bytes} bytes copied, of a database of {all} bytes"),
            false => format!("{bytes} bytes copied"),
        }
    })?;
    out.finish()
}

/// Makes a database from backups.
pub(crate) fn restore(common: &Common, args: &Restore) -> Result<(), Failure> {
    let options = Options::new().file_mode(common.file_mode);
    let mut progress = Progress::bytes(common, Some(0));
    let report = Db::restore(&args.backups, &args.to, &options, &mut |done, total| {
        progress.of(done, total);
        true
    })
    .map_err(|error| of_backup(&args.to, error))?;
    progress.end();
    let mut out = Output::new(common);
    let result = json!({ "bytes": report.bytes, "log_end": report.log_end });
    out.done(&result, |_| format!("{} bytes restored in {}", report.bytes, args.to.display()))?;
    out.finish()
}

/// Compares a backup with its checksums.
pub(crate) fn verify(common: &Common, args: &VerifyBackup) -> Result<(), Failure> {
    let mut progress = Progress::bytes(common, Some(0));
    let found = Db::verify_backup(&args.backup, &mut |done, total| {
        progress.of(done, total);
        true
    })
    .map_err(|error| of_backup(&args.backup, error))?;
    progress.end();
    let mut out = Output::new(common);
    if !common.json {
        for fault in &found.faults {
            out.raw(format!("{fault}\n").as_bytes())?;
        }
    }
    let result = json!({
        "bytes": found.bytes,
        "database_bytes": found.database_bytes,
        "log_end": found.log_end,
        "incremental": found.is_incremental,
        "faults": found.faults,
    });
    let faults = counted(found.faults.len() as u64, "fault");
    out.done(&result, |_| format!("{} bytes: {faults}", found.bytes))?;
    out.finish()?;
    if found.faults.is_empty() {
        return Ok(());
    }
    let message = format!("{faults} found in the backup in {}", args.backup.display());
    Err(Failure::damaged(message).with_hint(DAMAGED))
}

/// The hint for a damaged backup.
const DAMAGED: &str = "make a new backup; of this one nothing is certain";

/// Makes a failure from the error of a call that makes, reads or restores a backup. `dir` is as in
/// [`of_database`]. For a damaged backup, replaces the usual hint for damage, which is for
/// databases.
fn of_backup(dir: &Path, error: frondb::Error) -> Failure {
    let failure = of_database(dir, error);
    match failure.kind {
        "Corruption" => failure.with_hint(DAMAGED),
        _ => failure,
    }
}
