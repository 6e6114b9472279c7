//! Backups and checks of files.

use frondb::{BackupOptions, Db, Options};
use napi_derive::napi;

use crate::answer::Answer;
use crate::database::NativeDb;
use crate::pool::CALLS;
use crate::progress::Progress;
use crate::runtime::Runtime;

#[napi]
impl NativeDb {
    /// Copies the database into the directory `to`.
    #[napi]
    pub fn backup(
        &self,
        runtime: &Runtime,
        ticket: u32,
        progress: &Progress,
        to: String,
        since: Option<String>,
        bytes_per_second: f64,
        file_mode: Option<u32>,
    ) {
        let progress = progress.of(runtime, ticket);
        self.spawn(runtime, ticket, move |handle| {
            let mut options = BackupOptions::new().bytes_per_second(bytes_per_second as u64);
            if let Some(since) = since {
                options = options.since(since);
            }
            if let Some(mode) = file_mode {
                options = options.file_mode(mode);
            }
            let report =
                handle.db.backup(&to, &options, &mut |done, total| progress.tell(done, total))?;
            let numbers = vec![
                ("bytes", report.bytes),
                ("databaseBytes", report.database_bytes),
                ("logBytes", report.log_bytes),
                ("isIncremental", u64::from(report.is_incremental)),
            ];
            Ok(Answer::Report(numbers, Vec::new()))
        });
    }

    /// Reads all data and checks it.
    #[napi]
    pub fn verify(&self, runtime: &Runtime, ticket: u32, progress: &Progress) {
        let progress = progress.of(runtime, ticket);
        self.spawn(runtime, ticket, move |handle| {
            let report =
                handle.db.verify(&mut |tree, done, total| progress.tell_of(tree, done, total))?;
            let numbers = vec![
                ("runs", report.runs),
                ("entries", report.entries),
                ("values", report.values),
                ("bytes", report.bytes),
            ];
            let faults = report.faults.iter().map(ToString::to_string).collect();
            Ok(Answer::Report(numbers, faults))
        });
    }
}

/// Makes a database of backups.
#[napi]
pub fn restore(
    runtime: &Runtime,
    ticket: u32,
    progress: &Progress,
    backups: Vec<String>,
    to: String,
) {
    let progress = progress.of(runtime, ticket);
    runtime.inbox().spawn(&CALLS, ticket, move || {
        let report = Db::restore(&backups, &to, &Options::default(), &mut |done, total| {
            progress.tell(done, total)
        })?;
        Ok(Answer::Report(vec![("bytes", report.bytes)], Vec::new()))
    });
}

/// Reads a backup and checks all its bytes.
#[napi]
pub fn verify_backup(runtime: &Runtime, ticket: u32, progress: &Progress, backup: String) {
    let progress = progress.of(runtime, ticket);
    runtime.inbox().spawn(&CALLS, ticket, move || {
        let contents = Db::verify_backup(&backup, &mut |done, total| progress.tell(done, total))?;
        let numbers = vec![
            ("bytes", contents.bytes),
            ("databaseBytes", contents.database_bytes),
            ("isIncremental", u64::from(contents.is_incremental)),
        ];
        Ok(Answer::Report(numbers, contents.faults))
    });
}
