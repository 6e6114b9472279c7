//! What a database has written to its files: of an open one, and of one that another process has open.
//! [`frondb_commit::WearMeter`] counts.

use frondb_core::Result;
use frondb_core::wear::Wear;
use frondb_device::SharedDevice;
use frondb_manifest::Manifest;
use frondb_records::decode_history;

use crate::engine::Engine;

impl Engine {
    /// What the database has written to its files, since its totals began and over the last hour.
    #[must_use]
    pub fn wear(&self) -> Wear {
        self.background().jobs.edits.wear.read()
    }

    /// The wear of the database in `device` when its newest superblock was written; `None` if no
    /// version that counts has written it. The database may be open, here or in another process.
    ///
    /// # Errors
    /// `NotFound` if there is no database, and the other errors of an open that superblocks cause.
    pub fn wear_of(device: &SharedDevice) -> Result<Option<Wear>> {
        let note = Manifest::read_note(device)?;
        let history = decode_history(&note);
        Ok(history.map(|history| history.wear(history.newest().at, &history.newest().sums)))
    }
}

#[cfg(all(test, not(shuttle)))]
#[path = "wear_tests.rs"]
mod tests;
