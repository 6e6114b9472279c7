//! Databases that several threads of JavaScript have open.
//!
//! A process can open the directory of a database only once. Worker threads therefore share one
//! [`Database`]: an open of a path that is open already returns another handle to it. The last
//! close, or the end of the last thread that has a handle, closes the engine's database.
//!
//! # The life of a database
//! 1. The first open of a path makes a `Database`, while it holds the latch of the path.
//! 2. Every open makes a [`Handle`]; trees, iterators and transactions keep the handle alive.
//! 3. A close of a handle, or the drop of a handle that was not closed, counts down.
//! 4. The close that reaches zero closes the engine's database, while it holds the latch of the path:
//!    an open of the path waits for it. A drop that reaches zero leaves this to the drop of the
//!    engine's database, on another thread, because it waits for background threads.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Weak};

use frondb::{Db, Durability, Error, Result};
use parking_lot::Mutex;

use crate::failure;
use crate::options::{self, Settings};
use crate::pool::CALLS;

/// The open database of a path, and the latch of its opens and closes.
type Slot = Arc<Mutex<Weak<Database>>>;

/// By resolved path.
static SLOTS: LazyLock<Mutex<HashMap<PathBuf, Slot>>> = LazyLock::new(Mutex::default);

/// A database that this process has open.
pub(crate) struct Database {
    /// `None` only during the drop.
    db: Option<Db>,
    slot: Slot,
    settings: Settings,
    handles: AtomicUsize,
    /// Transactions that have begun and not ended.
    pub(crate) transactions: AtomicUsize,
}

impl Drop for Database {
    fn drop(&mut self) {
        let db = self.db.take();
        // Without a thread to start, the drop happens here.
        let _ = CALLS.run(Box::new(move || drop(db)));
    }
}

/// A transaction, as the handle that it was begun with ends it.
pub(crate) trait Active: Send + Sync {
    /// Ends the wait of its call in progress, or its next one, with `Cancelled`.
    fn cancel(&self);
    /// Rolls back, unless the transaction has ended.
    fn abandon(&self);
}

/// What one call of `open` has opened.
pub(crate) struct Handle {
    pub(crate) db: Db,
    pub(crate) database: Arc<Database>,
    is_closed: AtomicBool,
    /// Those that this handle has begun.
    transactions: Mutex<Vec<Weak<dyn Active>>>,
}

impl Handle {
    /// Opens the database of a directory.
    ///
    /// # Errors
    /// Those of [`Db::open`]; `Invalid` if it is open with other options.
    pub(crate) fn open(path: &Path, settings: Settings, durability: Durability) -> Result<Self> {
        let options = options::of_database(&settings)?;
        let slot = slot_of(path);
        let mut open = slot.lock();
        let database = match open.upgrade().filter(|database| database.is_open()) {
            Some(database) if database.settings == settings => database,
            Some(_) => {
                return Err(Error::invalid(format!(
                    "{} is open in this process with other options: pass the same options in all \
                     threads, or close it there first",
                    path.display()
                )));
            }
            None => {
                let database = Arc::new(Database {
                    db: Some(Db::open(path, options)?),
                    slot: Arc::clone(&slot),
                    settings,
                    handles: AtomicUsize::new(0),
                    transactions: AtomicUsize::new(0),
                });
                *open = Arc::downgrade(&database);
                database
            }
        };
        database.handles.fetch_add(1, Ordering::AcqRel);
        let db = database.db.as_ref().map(|db| db.with_commit_sync(durability));
        let db = db.ok_or_else(|| failure::closed("database"))?;
        Ok(Self { db, database, is_closed: AtomicBool::new(false), transactions: Mutex::default() })
    }

    /// # Errors
    /// `Closed`.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_closed() { Err(failure::closed("database")) } else { Ok(()) }
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Makes later calls with this handle fail.
    ///
    /// Returns whether it was open.
    pub(crate) fn end(&self) -> bool {
        !self.is_closed.swap(true, Ordering::AcqRel)
    }

    /// Notes a transaction of this handle.
    pub(crate) fn add(&self, transaction: Weak<dyn Active>) {
        let mut transactions = self.transactions.lock();
        if transactions.len() == transactions.capacity() {
            transactions.retain(|transaction| transaction.strong_count() > 0);
        }
        transactions.push(transaction);
    }

    /// Ends the waits of this handle's transactions with `Cancelled`.
    pub(crate) fn cancel_transactions(&self) {
        self.active_transactions().iter().for_each(|transaction| transaction.cancel());
    }

    fn active_transactions(&self) -> Vec<Arc<dyn Active>> {
        self.transactions.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Closes the database if this handle was the last one. REQUIRES: [`end`](Self::end) returned
    /// true.
    ///
    /// # Errors
    /// As [`Db::close`].
    pub(crate) fn close(&self) -> Result<()> {
        // Another handle may keep the database open, and must not wait for their locks.
        self.active_transactions().iter().for_each(|transaction| transaction.abandon());
        let mut open = self.database.slot.lock();
        if self.database.handles.fetch_sub(1, Ordering::AcqRel) > 1 {
            return Ok(());
        }
        *open = Weak::new();
        self.db.close()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.end() {
            self.database.handles.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Database {
    fn is_open(&self) -> bool {
        self.handles.load(Ordering::Acquire) > 0
    }
}

/// Returns the slot of a path, and forgets those of databases that are closed.
fn slot_of(path: &Path) -> Slot {
    let path = resolved(path);
    let mut slots = SLOTS.lock();
    slots.retain(|_, slot| {
        Arc::strong_count(slot) > 1 || slot.try_lock().is_none_or(|open| open.strong_count() > 0)
    });
    Arc::clone(slots.entry(path).or_default())
}

/// Returns the path without symbolic links, also of a directory that is not there yet.
fn resolved(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if let Ok(resolved) = absolute.canonicalize() {
        return resolved;
    }
    match (absolute.parent(), absolute.file_name()) {
        (Some(parent), Some(name)) => resolved(parent).join(name),
        _ => absolute,
    }
}
