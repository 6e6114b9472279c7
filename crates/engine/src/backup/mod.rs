//! Backups: copies of a database as of one moment, made while it is used.
//!
//! ```text
//!  begin.rs    the state of the manifest and the end of the log, taken together      milliseconds
//!  cut.rs      the log up to that end, copied; every extent that the two name
//!  make.rs     these extents, copied while writers go on                             no lock
//!  history.rs  the names of backups, noted in the database
//!  list.rs     `BACKUP`: what was copied, with checksums                             last of all
//!  restore.rs  a database from a full backup and the incremental ones after it
//!  verify.rs   whether a backup is what was copied
//! ```
//!
//! # Why the copy is consistent
//! A run and a large value never change, so an extent that the cut names has the same bytes until it
//! is used again, and [`Retention`](frondb_space::Retention) prevents that while the backup is made.
//! The manifest's state and the log up to a durable record are what a crash at that moment would have
//! left, so what opens a restored backup is recovery, and nothing else.
//!
//! # The directory of a backup
//! | file | content |
//! |---|---|
//! | `BACKUP` | the list; it exists only if the backup is complete |
//! | `BACKUP.unfinished` | says that the backup is being made, or was given up |
//! | `manifest` | the state of the manifest: the edits of a snapshot |
//! | `wal/` | the part of the log that belongs to it |
//! | `attached/` | files of the caller, such as definitions of tables |
//! | `data-NNNN.fdb` | extents, at their addresses in the database; elsewhere a hole |
//!
//! An incremental backup has the extents that the backup before it does not have. A run is known by its
//! id, which is never used again in one history of a database, and by the checksum of its metadata; a
//! large value, which has no id, by its checksum. A restored database has an id of its own, and a
//! database continues only backups that it has made.

mod begin;
mod cut;
mod history;
mod list;
mod make;
mod meter;
mod restore;
mod target;
mod verify;

pub use begin::{Backup, BackupOptions};
pub(crate) use history::HISTORY_FILE;
pub(crate) use list::check_list;
pub use make::BackupReport;
pub use restore::{RestoreReport, restore};
pub use verify::{BackupContents, verify_backup};
