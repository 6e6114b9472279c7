//! [`Health`]: whether an open database accepts calls, and the reason if it does not.
//!
//! | state | reads | writes | ends with |
//! |---|---|---|---|
//! | open | yes | yes, unless it was opened read-only | |
//! | disk full | yes | deletes only | freed space |
//! | poisoned: a sync failed, so it is not known what is durable | yes | no | the next open |
//! | closed | no | no | |

use std::collections::VecDeque;

use frondb_core::events::{Event, Events};
use frondb_core::sync::atomic::{AtomicBool, Ordering};
use frondb_core::sync::{Arc, Mutex};
use frondb_core::{Error, ErrorKind, Result};

/// The health of an open database. Any thread may read and change it.
#[derive(Debug, Default)]
pub struct Health {
    read_only: bool,
    closed: AtomicBool,
    poisoned: AtomicBool,
    poison: Mutex<Option<Error>>,
    full: Mutex<Option<Error>>,
    is_full: AtomicBool,
    events: Arc<Events>,
    /// Changes between a full disk (with its error) and a disk with space (`None`), not yet
    /// reported to the listener.
    untold: Mutex<VecDeque<Option<Error>>>,
    /// Serialises the reports, so that they arrive in order.
    telling: Mutex<()>,
}

impl Health {
    /// Returns the health of a database that was just opened.
    #[must_use]
    pub fn new(read_only: bool, events: Arc<Events>) -> Self {
        Self { read_only, events, ..Self::default() }
    }

    /// Fails if the database was closed or is poisoned.
    ///
    /// # Errors
    /// `Closed`, `Poisoned`.
    pub fn check(&self) -> Result<()> {
        self.check_open()?;
        self.check_unpoisoned()
    }

    /// Fails if the database was closed. A poisoned database can still be read.
    ///
    /// # Errors
    /// `Closed`.
    pub fn check_open(&self) -> Result<()> {
        if self.is_closed() {
            return Err(Error::new(ErrorKind::Closed, "the database was closed"));
        }
        Ok(())
    }

    /// Fails if the database was opened read-only.
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
    /// `Poisoned`, with the message of the first error that poisoned it.
    pub fn check_unpoisoned(&self) -> Result<()> {
        if self.poisoned.load(Ordering::Acquire) {
            let poison = self.poison.lock().clone();
            return Err(poison.unwrap_or_else(|| {
                Error::internal("the database is poisoned, and the cause was not recorded")
            }));
        }
        Ok(())
    }

    /// Returns the result of `read`, or `Closed` if the database was closed during the read: then
    /// another process may have changed the files. A close sets the flag before it releases the
    /// lock of the directory, so one check after the read is enough.
    ///
    /// # Errors
    /// The errors of `read`; `Closed`.
    pub fn while_open<T>(&self, read: impl FnOnce() -> Result<T>) -> Result<T> {
        let result = read();
        self.check_open().and(result)
    }

    /// Closes the database to calls. Returns `false` if it was closed already.
    pub fn set_closed(&self) -> bool {
        !self.closed.swap(true, Ordering::AcqRel)
    }

    /// Returns whether the database was closed.
    #[inline]
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Poisons the database: it is not known which writes are durable, so nothing more is written.
    /// Keeps the first error.
    pub fn poison(&self, error: &Error) {
        {
            let mut poison = self.poison.lock();
            if poison.is_some() {
                return;
            }
            tracing::error!(%error, "the database is poisoned; close and reopen it to write again");
            *poison = Some(error.clone().with_kind(ErrorKind::Poisoned));
            self.poisoned.store(true, Ordering::Release);
        }
        self.events.tell(Event::Poisoned(error));
    }

    /// Poisons the database unless `error` has the kind `NoSpace`: in that case, the records that
    /// did not fit are abandoned, and everything before them is in the log.
    pub fn poison_unless_full(&self, error: &Error) {
        if error.kind() != ErrorKind::NoSpace {
            self.poison(error);
        }
    }

    /// Poisons the database if `error` has the kind `Poisoned`: a sync of the log, the manifest or
    /// a data file has failed.
    pub fn poison_if_unknown(&self, error: &Error) {
        if error.kind() == ErrorKind::Poisoned {
            self.poison(error);
        }
    }

    /// Records the error of background work that found no space on the disk, or `None` once such
    /// work succeeds again.
    pub fn set_full(&self, error: Option<Error>) {
        let mut full = self.full.lock();
        if let (Some(error), None) = (&error, &*full) {
            tracing::warn!(%error, "the disk is full; writes fail until space is freed");
        }
        if error.is_some() != full.is_some() {
            self.untold.lock().push_back(error.clone());
        }
        self.is_full.store(error.is_some(), Ordering::Release);
        *full = error;
    }

    /// Reports to the listener the changes that [`set_full`](Self::set_full) has recorded.
    /// `set_full` does not report them, because its callers hold locks. REQUIRES: the caller holds
    /// no lock.
    pub fn tell_full(&self) {
        let _in_order = self.telling.lock();
        loop {
            let change = self.untold.lock().pop_front();
            let Some(change) = change else { return };
            self.events.tell(match &change {
                Some(error) => Event::DiskFull(error),
                None => Event::DiskHasSpace,
            });
        }
    }

    /// Returns whether the database is poisoned.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Acquire)
    }

    /// Returns the error of background work that found no space on the disk; `None` while there is
    /// space.
    #[must_use]
    pub fn full(&self) -> Option<Error> {
        if self.is_full.load(Ordering::Acquire) { self.full.lock().clone() } else { None }
    }
}
