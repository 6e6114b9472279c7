//! `backup`, `restore`, `verify-backup`.

use frondb::{BackupOptions, Db, Options};
use serde_json::json;

use super::inspect::counted;
use super::session::Session;
use crate::args::{Backup, Common, Restore, VerifyBackup};
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;

/// Copies a database.
pub(crate) fn backup(common: &Common, args: &Backup) -> Result<(), Failure> {
    let session = Session::open(common, &args.dir)?;
    let mut options = BackupOptions::new()
        .bytes_per_second(args.bytes_per_second.unwrap_or(0))
        .file_mode(common.file_mode);
    if let Some(since) = &args.since {
        options = options.since(since);
    }
    let mut progress = Progress::bytes(common, Some(0));
    let report = session
        .db
        .backup(&args.to, &options, &mut |done, total| {
            progress.of(done, total);
            true
        })
        .map_err(|error| match error.place() {
            // Of the backup to continue, and not of the database.
            Some(place) if place.file == "BACKUP" => of_backup(error),
            _ => error.into(),
        })?;
    progress.end();
    session.close()?;
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
    .map_err(of_backup)?;
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
    .map_err(of_backup)?;
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

/// What to do about a damaged backup.
const DAMAGED: &str = "make a new backup; of this one nothing is certain";

/// A failure because of a backup. If the backup is damaged, replaces the usual hint for damage, which
/// is for databases.
fn of_backup(error: frondb::Error) -> Failure {
    let failure = Failure::from(error);
    match failure.kind {
        "Corruption" => failure.with_hint(DAMAGED),
        _ => failure,
    }
}
