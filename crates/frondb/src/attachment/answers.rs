//! The answers of the process that has a database open: statistics, the page for Prometheus, and
//! backups.
//!
//! [`OfDatabase`] has only a weak pointer to the database. A thread that answers a question keeps
//! the database open until the question is answered. Thread-safe.

use std::path::{Path, PathBuf};
use std::time::Duration;

use frondb_core::clock::SharedClock;
use frondb_core::executor::SharedExecutor;
use frondb_core::sync::{Arc, Weak};
use frondb_core::{Error, ErrorKind, Result};
use frondb_device::{Connection, PosixDevice};

use super::format::{BACKUP, Fields, Frame, PROGRESS, PROMETHEUS, STATS, TREE, send};
use super::owner::{Answers, Owner};
use crate::backup::make::BackupReport;
use crate::backup::options::BackupOptions;
use crate::db::Db;
use crate::open::Open;

/// Shortest time between two frames of progress.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

struct OfDatabase {
    open: Weak<Open>,
    directories: Vec<PathBuf>,
    clock: SharedClock,
}

/// Starts answering questions about the database.
///
/// # Errors
/// `Exists` if `SOCKET` is a file of another kind; `Io` if the socket cannot be made, or the
/// system refuses a thread.
pub(crate) fn start(
    device: &PosixDevice,
    db: &Db,
    clock: SharedClock,
    executor: &SharedExecutor,
) -> Result<Owner> {
    let open = Arc::downgrade(db.shared());
    let answers = OfDatabase { open, directories: db.directories().to_vec(), clock };
    Owner::start(device, Box::new(answers), executor)
}

impl Answers for OfDatabase {
    fn answer(&self, mut question: Frame, asker: &Connection) -> Result<Fields> {
        let closed = || Error::new(ErrorKind::Closed, "the database was closed");
        let db = Db::of_shared(self.open.upgrade().ok_or_else(closed)?, &self.directories);
        match question.what {
            STATS => stats(&db, asker),
            PROMETHEUS => Ok(Fields::default().bytes(db.prometheus().as_bytes())),
            BACKUP => self.backup(&db, &mut question, asker),
            other => {
                let message =
                    format!("the database does not know question {other} of a newer program");
                Err(Error::new(ErrorKind::Unsupported, message))
            }
        }
    }
}

/// Sends the statistics of each tree in a frame of its own, so that memory does not grow with the
/// number of trees. Returns the statistics of the database.
fn stats(db: &Db, asker: &Connection) -> Result<Fields> {
    for name in db.list_trees() {
        let stats = match db.open_tree(&name).and_then(|tree| tree.stats()) {
            // The tree was dropped after it was listed.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            other => other?,
        };
        let fields = Fields::default().bytes(name.as_bytes()).bytes(stats.to_string().as_bytes());
        send(asker, TREE, &fields.numbers(&stats.named_values())).map_err(|error| gone(&error))?;
    }
    let (found, latencies) = (db.stats(), db.latencies());
    let numbers = [found.named_values(), latencies.named_values()].concat();
    Ok(Fields::default().bytes(format!("{found}{latencies}").as_bytes()).numbers(&numbers))
}

fn gone(error: &std::io::Error) -> Error {
    Error::io("write to", "the process that asked", error)
}

impl OfDatabase {
    fn backup(&self, db: &Db, question: &mut Frame, asker: &Connection) -> Result<Fields> {
        if !asker.is_from_own_user() {
            // The asking process may not have the rights with which this process would write files.
            return Err(Error::new(
                ErrorKind::Io,
                "cannot make a backup for another user than the one that has the database open, and root: \
                 permission denied",
            ));
        }
        let mut options = BackupOptions::new().bytes_per_second(question.number()?);
        let mode = question.number()?;
        options = options.file_mode(u32::try_from(mode).unwrap_or(u32::MAX));
        let to = path(question.bytes()?);
        let since = path(question.bytes()?);
        if !to.is_absolute() {
            return Err(Error::invalid("the directory of a backup needs an absolute path"));
        }
        if !since.as_os_str().is_empty() {
            options = options.since(since);
        }
        let mut told = None;
        let report = db.backup(to, &options, &mut |done, total| {
            let now = self.clock.now();
            if told.is_some_and(|told| now - told < PROGRESS_EVERY) {
                return true;
            }
            told = Some(now);
            // If the asking process has ended, for example by Ctrl-C, cancel the backup.
            send(asker, PROGRESS, &Fields::default().number(done).number(total)).is_ok()
        })?;
        let BackupReport { bytes, database_bytes, log_bytes, log_end, is_incremental, .. } = report;
        let numbers = [bytes, database_bytes, log_bytes, log_end, is_incremental.into()];
        Ok(numbers.into_iter().fold(Fields::default(), Fields::number))
    }
}

fn path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(bytes)).to_owned()
}
