//! The asynchronous calls of [`Tree`] and [`Db`]: each first does what it can without waiting, and
//! leaves the rest to a reader thread ([`Readers`](crate::readers::Readers)).

use frondb_commit::Calls;
use frondb_core::sync::Arc;
use frondb_core::{Direction, Lsn, Result};
use frondb_tree::{CursorOptions, Health, Range, Snapshot, get_in_memory};
use frondb_wal::Wal;

use crate::async_range::AsyncRange;
use crate::db::Db;
use crate::pending::Pending;
use crate::readers::LookupRequest;
use crate::tree::Tree;

impl Tree {
    /// Returns the value of `key`, or `None` if the key has no value, without waiting for the
    /// device. If the answer is in memory, the future returns it at the first poll. Otherwise a
    /// thread of the database reads the blocks, together with blocks of other such calls, and wakes
    /// the task. The future sees every commit that was visible when this call began, and may see
    /// later ones.
    ///
    /// The future is `Send`, borrows nothing, and works under any runtime. It waits for nothing
    /// that another task must do, so it may be awaited while the task holds a transaction.
    /// [`Pending`] says what a drop and a close do.
    ///
    /// ```
    /// # use frondb::{Db, Options, TreeOptions};
    /// # fn main() -> frondb::Result<()> {
    /// # let dir = frondb_testkit::TempDir::new("doc");
    /// # let db = Db::open(dir.path(), Options::default())?;
    /// let users = db.open_or_create_tree("users", TreeOptions::default())?;
    /// users.put("1", "Ada")?;
    /// users.put("2", "Bob")?;
    ///
    /// let names = async {
    ///     // Both lookups begin here, and may wait for the device at the same time.
    ///     let (ada, bob) = (users.get_async("1"), users.get_async("2"));
    ///     Ok::<_, frondb::Error>((ada.await?, bob.await?))
    /// };
    /// // Any runtime will do.
    /// let (ada, bob) = futures::executor::block_on(names)?;
    /// assert_eq!((ada.as_deref(), bob.as_deref()), (Some(&b"Ada"[..]), Some(&b"Bob"[..])));
    /// # db.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`get`](Self::get); `Io` if no thread can be started.
    pub fn get_async(&self, key: impl AsRef<[u8]>) -> Pending<Option<Vec<u8>>> {
        self.get_or_wait(key.as_ref(), None)
    }

    /// Returns the value of `key` at a snapshot, otherwise as [`get_async`](Self::get_async). The
    /// future keeps the snapshot until it has its result.
    ///
    /// # Errors
    /// As [`get_at`](Self::get_at); `Io` if no thread can be started.
    pub fn get_async_at(&self, key: impl AsRef<[u8]>, at: &Snapshot) -> Pending<Option<Vec<u8>>> {
        self.get_or_wait(key.as_ref(), Some(at))
    }

    /// Returns the entries of a range in key order, for a task that must not wait for the device.
    /// `options` are those of a cursor: the range or the prefix, and the snapshot.
    ///
    /// # Errors
    /// As [`cursor_with`](Self::cursor_with). The entries have the errors of [`range`](Self::range)
    /// and `Io` if no thread can be started.
    pub fn range_async(&self, options: CursorOptions) -> Result<AsyncRange> {
        self.async_range(options, Direction::Forward)
    }

    /// Returns the entries of a range in descending key order, otherwise as
    /// [`range_async`](Self::range_async).
    ///
    /// # Errors
    /// As [`range_async`](Self::range_async).
    pub fn range_async_rev(&self, options: CursorOptions) -> Result<AsyncRange> {
        self.async_range(options, Direction::Backward)
    }

    fn async_range(&self, options: CursorOptions, direction: Direction) -> Result<AsyncRange> {
        let range = Range::over(self.cursor_with(options)?);
        Ok(AsyncRange::new(Arc::clone(&self.open().readers), range, direction))
    }

    fn get_or_wait(&self, key: &[u8], at: Option<&Snapshot>) -> Pending<Option<Vec<u8>>> {
        let tried =
            self.read(at, |reads, tree, seq| get_in_memory(reads, tree, key, seq)).transpose();
        if let Some(result) = tried {
            return Pending::ready(result);
        }
        let (pending, completer) = Pending::new();
        let open = self.open();
        let request = LookupRequest::new(&open.budget, &self.core, key, at, completer);
        open.readers.look_up(request);
        pending
    }
}

impl Db {
    /// Makes everything committed so far durable, as [`sync`](Self::sync) does, without waiting on
    /// the calling thread. Calls of many tasks share syncs of the disk.
    ///
    /// A durable commit of a task is a write without a sync and then this call. The commit is
    /// visible to others as soon as the write returns, as with
    /// [`Durability::Sync`](crate::Durability::Sync).
    ///
    /// ```
    /// # use frondb::{Batch, Db, Durability, Options, TreeOptions};
    /// # fn main() -> frondb::Result<()> {
    /// # let dir = frondb_testkit::TempDir::new("doc");
    /// # let db = Db::open(dir.path(), Options::default())?;
    /// let orders = db.open_or_create_tree("orders", TreeOptions::default())?;
    /// let order = async {
    ///     let mut batch = Batch::new();
    ///     batch.put(&orders, "1", "two books");
    ///     db.write(&batch, Durability::NoSync)?;
    ///     db.sync_async().await // and now the order is durable
    /// };
    /// futures::executor::block_on(order)?;
    /// # db.close()
    /// # }
    /// ```
    ///
    /// The write itself waits only in a write stall, or for a row lock of a transaction. A task
    /// that must not wait there either makes the call in its runtime's pool for blocking calls.
    ///
    /// # Errors
    /// As [`sync`](Self::sync); `Io` if no thread can be started.
    pub fn sync_async(&self) -> Pending<()> {
        let open = self.shared();
        let begun = open.begin_call().map(|_call| (open.wal.end_lsn(), open.wal.durable_lsn()));
        let end = match begun {
            Err(error) => return Pending::ready(Err(error)),
            Ok((end, durable)) if durable >= end => return Pending::ready(Ok(())),
            Ok((end, _)) => end,
        };
        let (pending, completer) = Pending::new();
        let (calls, wal) = (Arc::clone(&open.txns.calls), Arc::clone(&open.wal));
        let health = Arc::clone(&open.health);
        open.readers.call(move |begun| completer.complete(sync(&calls, &wal, &health, end, begun)));
        pending
    }
}

/// Makes the log durable up to `end`. Also succeeds if the close of the database has done so.
fn sync(calls: &Calls, wal: &Wal, health: &Health, end: Lsn, begun: Result<()>) -> Result<()> {
    let _call = calls.begin_unchecked();
    if wal.durable_lsn() >= end {
        return health.check_unpoisoned();
    }
    begun?;
    health.check()?;
    wal.sync_to(end).inspect_err(|error| health.poison_unless_full(error))
}
