//! The bytes that a database has written to its files; [`frondb_commit::WearMeter`] counts them.

use std::path::Path;

use frondb_core::wear::Wear;
use frondb_core::{Error, ErrorKind, Result};
use frondb_device::{Modes, SharedDevice};
use frondb_manifest::Manifest;
use frondb_records::decode_history;

use super::Db;
use crate::directory::existing;

impl Db {
    /// Returns the bytes and requests that the database has written to its files, by cause, since
    /// it was created (or first opened by a version that counts writes) and over the last hour. The
    /// totals are kept across restarts; a crash loses the counts of the last minutes.
    /// [`Wear::page`] shows everything as text, with the lifetime of a drive.
    ///
    /// ```
    /// use frondb::{Db, Options, TreeOptions, WriteCause};
    ///
    /// # fn main() -> frondb::Result<()> {
    /// # let dir = frondb_testkit::TempDir::new("doc");
    /// # let db = Db::open(dir.path(), Options::default())?;
    /// db.create_tree("t", TreeOptions::default())?.put(b"k", b"v")?;
    /// let total = db.wear().total.sums;
    /// let causes = WriteCause::ALL.map(|cause| total.of(cause).bytes);
    /// assert_eq!(total.total().bytes, causes.iter().sum::<u64>());
    /// println!("write amplification {:?}", total.amplification());
    /// // With the lifetime of a drive of 600 TBW at this rate.
    /// println!("{}", db.wear().page(600.0));
    /// # db.close()
    /// # }
    /// ```
    #[must_use]
    pub fn wear(&self) -> Wear {
        self.open.wear.read()
    }

    /// Returns the wear of the database in a directory as last recorded, at a checkpoint, a merge
    /// or the close. The call does not open the database. If the database is open in this or
    /// another process, the record is some minutes old ([`Wear::until`]). Returns `None` if only
    /// versions that do not count writes have written the database.
    ///
    /// # Errors
    /// `NotFound` if there is no database; `Invalid`, `Unsupported` and `Corruption` if its
    /// superblocks cannot be read; `Io`.
    pub fn recorded_wear(path: impl AsRef<Path>) -> Result<Option<Wear>> {
        let path = path.as_ref();
        let Some(device) = existing(path, Modes::default())? else {
            let message = format!("there is no FronDB database in {}", path.display());
            return Err(Error::new(ErrorKind::NotFound, message));
        };
        recorded_in(&device)
    }
}

/// Returns the wear that the newest superblock of the database in `device` has recorded; `None` if
/// the superblock has no record of wear.
fn recorded_in(device: &SharedDevice) -> Result<Option<Wear>> {
    let history = decode_history(&Manifest::read_note(device)?);
    Ok(history.map(|history| history.wear(history.newest().at, &history.newest().sums)))
}

#[cfg(all(test, not(shuttle)))]
#[path = "wear_tests.rs"]
mod tests;
