//! [`Health`]: whether an open database still takes calls, and why not.
//!
//! | state | reads | writes | ends with |
//! |---|---|---|---|
//! | open | yes | yes, unless it was opened read-only | |
//! | disk full | yes | deletes only | space |
//! | poisoned: what is durable is not known | yes | no | the next open |
//! | closed | no | no | |

use frondb_core::sync::Mutex;
use frondb_core::sync::atomic::{AtomicBool, Ordering};
use frondb_core::{Error, ErrorKind, Result};

/// The health of an open database. Any thread may ask and change it.
#[derive(Debug, Default)]
pub struct Health {
    read_only: bool,
    closed: AtomicBool,
    poisoned: AtomicBool,
    poison: Mutex<Option<Error>>,
    full: Mutex<Option<Error>>,
    is_full: AtomicBool,
}

impl Health {
    /// Of a database that was just opened.
    #[must_use]
    pub fn new(read_only: bool) -> Self {
        Self { read_only, ..Self::default() }
    }

    /// Fails if the database was closed or is poisoned.
    ///
    /// # Errors
    /// `Closed`, `Poisoned`.
    pub fn check(&self) -> Result<()> {
        self.check_open()?;
        self.check_unpoisoned()
    }

    /// Fails if the database was closed. A poisoned one can still be read.
    ///
    /// # Errors
    /// `Closed`.
    pub fn check_open(&self) -> Result<()> {
        if self.is_closed() {
            return Err(Error::new(ErrorKind::Closed, "the database was closed"));
        }
        Ok(())
    }

    /// Fails if the database was opened without the right to write.
    ///
    /// # Errors
    /// `Invalid`.
    pub fn check_writable(&self) -> Result<()> {
        if self.read_only {
            return Err(Error::invalid("the database was opened read-only"));
        }
        Ok(())
    }

    /// Fails if the database is poisoned.
    ///
    /// # Errors
    /// `Poisoned`, with the first cause.
    pub fn check_unpoisoned(&self) -> Result<()> {
        if self.poisoned.load(Ordering::Acquire) {
            let poison = self.poison.lock().clone();
            return Err(poison.unwrap_or_else(|| Error::internal("poisoned without a cause")));
        }
        Ok(())
    }

    /// What `read` returns, unless the database was closed meanwhile: another process may own the
    /// files then. The flag is set before the directory's lock goes, so asking afterwards is enough.
    ///
    /// # Errors
    /// Those of `read`; `Closed`.
    pub fn while_open<T>(&self, read: impl FnOnce() -> Result<T>) -> Result<T> {
        let result = read();
        self.check_open().and(result)
    }

    /// Closes the database to calls. Returns whether this call did.
    pub fn set_closed(&self) -> bool {
        !self.closed.swap(true, Ordering::AcqRel)
    }

    /// Whether the database was closed.
    #[inline]
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Poisons the database: what is durable is not known, so nothing is written any more.
    pub fn poison(&self, error: &Error) {
        let mut poison = self.poison.lock();
        if poison.is_none() {
            tracing::error!(%error, "the engine is poisoned; close and reopen it");
            *poison = Some(error.clone().with_kind(ErrorKind::Poisoned));
            self.poisoned.store(true, Ordering::Release);
        }
    }

    /// Poisons the database if a part that it is made of is poisoned: a sync of that part has failed.
    pub fn poison_if_unknown(&self, error: &Error) {
        if error.kind() == ErrorKind::Poisoned {
            self.poison(error);
        }
    }

    /// Notes that background work fails for want of space (`None`: no longer).
    pub fn set_full(&self, error: Option<Error>) {
        let mut full = self.full.lock();
        if let (Some(error), None) = (&error, &*full) {
            tracing::warn!(%error, "the disk is full; writes fail until space is freed");
        }
        self.is_full.store(error.is_some(), Ordering::Release);
        *full = error;
    }

    /// The error of background work that fails for want of space.
    #[must_use]
    pub fn full(&self) -> Option<Error> {
        if self.is_full.load(Ordering::Acquire) { self.full.lock().clone() } else { None }
    }
}
