//! What the objects of a database share: the database, its trees, and whether they are closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use frondb::{Batch, Durability};
use pyo3::prelude::*;

use crate::errors;
use crate::process::Running;

/// Whether something was closed, for the objects that refer to it. The engine refuses calls after a
/// close too; this flag also stops iterators that have rows left of their last read.
#[derive(Debug)]
pub(crate) struct Life {
    what: &'static str,
    is_closed: AtomicBool,
}

impl Life {
    pub(crate) fn new(what: &'static str) -> Arc<Self> {
        Arc::new(Self { what, is_closed: AtomicBool::new(false) })
    }

    /// # Errors
    /// `Closed`.
    #[inline]
    pub(crate) fn check(&self) -> PyResult<()> {
        if self.is_closed() { Err(errors::closed(self.what)) } else { Ok(()) }
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Closes it, and returns whether it was open.
    pub(crate) fn close(&self) -> bool {
        !self.is_closed.swap(true, Ordering::AcqRel)
    }
}

/// An open database.
#[derive(Clone)]
pub(crate) struct Database {
    pub(crate) db: frondb::Db,
    pub(crate) life: Arc<Life>,
    /// After `db`, so that the threads have ended when the last of these is dropped.
    pub(crate) running: Arc<Running>,
}

impl Database {
    /// Commits a batch with this durability, or with that of the handle.
    pub(crate) fn write(&self, batch: &Batch, sync: Option<bool>) -> frondb::Result<()> {
        self.db.write(batch, self.durability(sync))
    }

    pub(crate) fn durability(&self, sync: Option<bool>) -> Durability {
        crate::arguments::durability(sync, self.db.commit_sync())
    }
}

/// A tree of an open database.
#[derive(Clone)]
pub(crate) struct OpenTree {
    pub(crate) tree: frondb::Tree,
    pub(crate) database: Database,
}

/// A transaction that has begun.
pub(crate) struct OpenTransaction {
    pub(crate) transaction: frondb::Transaction,
    /// The transaction keeps the database open.
    pub(crate) _running: Arc<Running>,
    /// Whether the transaction has ended, or was prepared: a `with` block then leaves it as it is.
    pub(crate) life: Arc<Life>,
    /// Whether its plain reads lock what they read.
    pub(crate) is_serializable: bool,
}
