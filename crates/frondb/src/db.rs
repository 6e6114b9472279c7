//! [`Db`]: an open database.
//!
//! ```text
//!  this file        the handle, its default durability, writes, snapshots and the close
//!  trees.rs         trees: create, open, list, rename, drop
//!  transactions.rs  transactions, the prepared ones, hooks, locks
//!  settings.rs      settings that can be changed while the database is open
//!  maintenance.rs   flushes, checkpoints, background work, files, statistics
//!  wear.rs          what the database has written to its files
//! ```

mod maintenance;
mod settings;
mod transactions;
mod trees;
mod wear;

use std::path::PathBuf;

use frondb_commit::Durability;
use frondb_core::Result;
use frondb_core::sync::Arc;
use frondb_tree::Snapshot;
use frondb_txn::{BulkOptions, KeepOpen};

use crate::attachment::owner::Owner;
use crate::bulk::BulkLoad;
use crate::open::Open;
use crate::open::parts::Parts;
use frondb_commit::Batch;

/// An open database. Clones are cheap and refer to the same database. Any thread may use it.
///
/// # How durable a write is
/// Three settings decide. For one write: the [`Durability`] passed to [`write`](Self::write). For
/// writes that take no such argument: the default of the handle
/// ([`with_commit_sync`](Self::with_commit_sync)). For the whole database: what
/// [`Durability::Sync`] waits for ([`set_sync_mode`](Self::set_sync_mode)).
#[derive(Clone, Debug)]
pub struct Db {
    /// Answers other processes. Declared before `open`, so that it is dropped first, while the
    /// directory is still locked.
    owner: Option<Arc<Owner>>,
    open: Arc<Open>,
    /// The directory of the database, and of its log if the options named one, resolved at the
    /// open; empty if [`Db::open`] has not opened the database.
    directories: Arc<[PathBuf]>,
    /// Default durability of this handle's transactions, and of single writes to trees that it
    /// creates or opens.
    commit_sync: Durability,
}

impl Db {
    pub(crate) fn of(open: Open) -> Self {
        Self::of_shared(Arc::new(open), &[])
    }

    /// Creates a handle to an open database in these directories.
    pub(crate) fn of_shared(open: Arc<Open>, directories: &[PathBuf]) -> Self {
        Self {
            owner: None,
            open,
            directories: directories.into(),
            commit_sync: Durability::default(),
        }
    }

    pub(crate) fn answering(self, owner: Owner) -> Self {
        Self { owner: Some(Arc::new(owner)), ..self }
    }

    pub(crate) fn in_directories(self, directories: Vec<PathBuf>) -> Self {
        Self { directories: directories.into(), ..self }
    }

    pub(crate) fn directories(&self) -> &[PathBuf] {
        &self.directories
    }

    pub(crate) fn shared(&self) -> &Arc<Open> {
        &self.open
    }

    /// Returns a handle to the same database with another default durability. The default holds for
    /// single writes ([`Tree::put`](crate::Tree::put) and similar) to trees that the new handle
    /// creates or opens, and for its transactions ([`begin`](Self::begin)) unless their options say
    /// otherwise. This handle and trees that are open already keep their defaults.
    /// [`open`](Self::open) returns a handle with [`Durability::Sync`].
    ///
    /// ```
    /// use frondb::{Db, Durability, Options, TreeOptions};
    ///
    /// # fn main() -> frondb::Result<()> {
    /// # let dir = frondb_testkit::TempDir::new("doc");
    /// let db = Db::open(dir.path(), Options::default())?;
    /// let bulk = db.with_commit_sync(Durability::NoSync);
    /// let lines = bulk.create_tree("lines", TreeOptions::new())?;
    /// for number in 0..1000_u32 {
    ///     lines.put(&number.to_be_bytes(), b"a line")?; // waits for no disk
    /// }
    /// db.sync()?; // and now they are all durable
    /// # db.close()
    /// # }
    /// ```
    #[must_use]
    pub fn with_commit_sync(&self, durability: Durability) -> Self {
        Self { commit_sync: durability, ..self.clone() }
    }

    /// Returns the default durability of this handle.
    #[must_use]
    pub fn commit_sync(&self) -> Durability {
        self.commit_sync
    }

    /// Returns the largest [`Batch::memory_bytes`] that can be committed: a quarter of the memory
    /// budget, at most 512 MiB.
    #[must_use]
    pub fn batch_bytes_max(&self) -> u64 {
        self.open.shares.now().batch_bytes()
    }

    /// Commits a batch atomically. If transactions hold locks on one of its trees, the batch locks
    /// its keys and ranges as a transaction would, and waits for these locks; otherwise it takes no
    /// locks.
    ///
    /// # Errors
    /// `LockTimeout`, `Deadlock` or `TooManyLocks` while the batch took locks: nothing changed.
    /// `Invalid` for an invalid write in the batch or a batch that is too large; `NotFound` if a
    /// tree was dropped; `NoSpace`: nothing changed, and the call may be repeated; `Poisoned`;
    /// `Closed`.
    pub fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        self.open.write(batch, durability)
    }

    /// Begins a bulk load; see [`BulkLoad`].
    ///
    /// # Errors
    /// `Invalid` if the database was opened read-only; `Poisoned`, `Closed`.
    pub fn bulk_load(&self, options: BulkOptions) -> Result<BulkLoad> {
        let Parts { catalog, txns, .. } = &self.open.parts;
        let keep_open = Arc::clone(&self.open) as KeepOpen;
        let inner = txns.bulk_load(options, Arc::clone(catalog), keep_open)?;
        Ok(BulkLoad::new(Arc::clone(&self.open), inner, self.commit_sync))
    }

    /// Takes a snapshot, at which reads see the whole database as it is now. The space of rows that
    /// a live snapshot can see is not freed.
    ///
    /// # Errors
    /// `Closed`.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.open.txns.snapshot()
    }

    /// Makes everything committed so far durable.
    ///
    /// # Errors
    /// `Poisoned` if the sync failed: commits that were not durable before may be lost; `NoSpace`;
    /// `Closed`.
    pub fn sync(&self) -> Result<()> {
        let _call = self.open.begin_call()?;
        let synced = self.open.wal.sync();
        synced.inspect_err(|error| self.open.health.poison_unless_full(error))
    }

    /// Closes the database and unlocks its directory, even while handles exist. Later calls on
    /// clones, trees, cursors and transactions that read or write data fail with `Closed`; calls
    /// that return no `Result`, such as [`stats`](Self::stats), still work. Flushes memtables whose
    /// replay would take long. A database that is dropped without `close` loses nothing; the next
    /// open replays the log.
    ///
    /// # Errors
    /// `Poisoned`, `NoSpace` or `Io` if something could not be written. The database is closed
    /// nevertheless, durable commits stay durable, and another `close` returns the same error.
    pub fn close(&self) -> Result<()> {
        // The directory is still locked, so no other process can have a socket there.
        if let Some(owner) = &self.owner {
            owner.stop();
        }
        self.open.close()
    }
}
