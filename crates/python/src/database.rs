//! Databases.

use std::path::PathBuf;
use std::sync::Arc;

use frondb::{BackupOptions, Durability, TransactionOptions};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::arguments;
use crate::batch::Batch;
use crate::bulk::BulkLoad;
use crate::bytes::Bytes;
use crate::errors::detached;
use crate::handle::{Database, Life, OpenTree};
use crate::options;
use crate::process::{self, Owned, Running};
use crate::progress::Progress;
use crate::report::{BackupReport, VerifyReport, statistics};
use crate::snapshot::Snapshot;
use crate::transaction::Transaction;
use crate::tree::Tree;

/// Opens the database in a directory, and creates it if there is none.
#[pyfunction]
#[pyo3(signature = (path, *, memory=None, commit_sync=true, **options))]
pub(crate) fn open(
    py: Python<'_>,
    path: PathBuf,
    memory: Option<&Bound<'_, PyAny>>,
    commit_sync: bool,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Db> {
    let options = options::of_database(memory, options)?;
    let durability = if commit_sync { Durability::Sync } else { Durability::NoSync };
    process::check_parent()?;
    let running = Arc::new(Running::begin());
    let db = detached(py, || frondb::Db::open(&path, options))?.with_commit_sync(durability);
    Ok(Db { path, open: Owned::new(Database { db, life: Life::new("database"), running }) })
}

/// An open database; `frondb.open` makes one.
#[pyclass(frozen, weakref, module = "frondb")]
pub(crate) struct Db {
    path: PathBuf,
    open: Owned<Database>,
}

impl Db {
    /// # Errors
    /// `Closed`; `ForkedProcess`.
    fn get_open(&self) -> PyResult<&Database> {
        let open = self.open.get()?;
        open.life.check()?;
        Ok(open)
    }

    /// Runs a call on the database.
    fn call<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&frondb::Db) -> frondb::Result<T> + Send,
    ) -> PyResult<T> {
        let open = self.get_open()?;
        detached(py, || call(&open.db))
    }

    fn tree_of(
        &self,
        py: Python<'_>,
        find: impl FnOnce(&frondb::Db) -> frondb::Result<frondb::Tree> + Send,
    ) -> PyResult<Tree> {
        let tree = self.call(py, find)?;
        Ok(Tree::new(OpenTree { tree, database: self.get_open()?.clone() }))
    }
}

#[pymethods]
impl Db {
    /// The directory of the database, as it was given.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Whether the database was closed.
    #[getter]
    fn closed(&self) -> PyResult<bool> {
        Ok(self.open.get()?.life.is_closed())
    }

    // --- Trees ---

    /// Returns the tree of this name, and creates it if there is none.
    #[pyo3(signature = (name, *, preset=None, counters=false, **options))]
    fn tree(
        &self,
        py: Python<'_>,
        name: &str,
        preset: Option<&str>,
        counters: bool,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Tree> {
        let options = options::of_new_tree(preset, counters, options)?;
        self.tree_of(py, |db| db.open_or_create_tree(name, options))
    }

    /// Creates an empty tree, durably; the options are those of `tree`.
    #[pyo3(signature = (name, *, preset=None, counters=false, **options))]
    fn create_tree(
        &self,
        py: Python<'_>,
        name: &str,
        preset: Option<&str>,
        counters: bool,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Tree> {
        let options = options::of_new_tree(preset, counters, options)?;
        self.tree_of(py, |db| db.create_tree(name, options))
    }

    /// Returns the tree of this name.
    fn open_tree(&self, py: Python<'_>, name: &str) -> PyResult<Tree> {
        self.tree_of(py, |db| db.open_tree(name))
    }

    /// Returns the names of all trees, sorted.
    fn list_trees(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.call(py, |db| Ok(db.list_trees()))
    }

    /// Renames a tree, durably; its handles stay valid.
    fn rename_tree(&self, py: Python<'_>, old: &str, new: &str) -> PyResult<()> {
        self.call(py, |db| db.rename_tree(old, new))
    }

    /// Removes a tree and its data, durably.
    fn drop_tree(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.call(py, |db| db.drop_tree(name))
    }

    // --- Reads and writes of several trees ---

    /// Begins a batch: writes to any number of trees that take effect together.
    #[pyo3(signature = (*, sync=None))]
    fn batch(&self, sync: Option<bool>) -> PyResult<Batch> {
        Ok(Batch::new(self.get_open()?.clone(), sync))
    }

    /// Begins a transaction.
    #[pyo3(signature = (*, isolation="repeatable-read", snapshot_isolation=false,
                        lock_timeout=10.0, sync=None))]
    fn begin(
        &self,
        py: Python<'_>,
        isolation: &str,
        snapshot_isolation: bool,
        lock_timeout: f64,
        sync: Option<bool>,
    ) -> PyResult<Transaction> {
        let open = self.get_open()?;
        let isolation = arguments::isolation(isolation)?;
        let options = TransactionOptions::new()
            .isolation(isolation)
            .snapshot_isolation(snapshot_isolation)
            .lock_timeout(arguments::seconds("lock_timeout", lock_timeout)?)
            .durability(open.durability(sync));
        Transaction::begin(py, open, options, isolation == frondb::Isolation::Serializable)
    }

    /// Takes a snapshot, at which reads see the whole database as it is now.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Snapshot> {
        self.call(py, |db| db.snapshot()).map(Snapshot::new)
    }

    /// Begins a bulk load: much data, in any order, with less work than batches.
    #[pyo3(signature = (*, duplicates="replace", memory=0, sync=None, lock_timeout=60.0))]
    fn bulk_load(
        &self,
        py: Python<'_>,
        duplicates: &str,
        memory: u64,
        sync: Option<bool>,
        lock_timeout: f64,
    ) -> PyResult<BulkLoad> {
        let open = self.get_open()?.clone();
        BulkLoad::begin(py, open, duplicates, memory, sync, lock_timeout)
    }

    // --- Prepared transactions ---

    /// Returns the names of all prepared transactions, sorted.
    fn prepared<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let names = self.call(py, |db| Ok(db.prepared()))?;
        PyList::new(py, names.iter().map(|name| PyBytes::new(py, name)))
    }

    /// Commits a prepared transaction by its name.
    #[pyo3(signature = (xid, *, sync=None))]
    fn commit_prepared(
        &self,
        py: Python<'_>,
        xid: Bytes<'_, '_>,
        sync: Option<bool>,
    ) -> PyResult<()> {
        let (durability, xid) = (self.get_open()?.durability(sync), &*xid);
        self.call(py, |db| db.commit_prepared(xid, durability))
    }

    /// Rolls back a prepared transaction by its name, durably.
    fn rollback_prepared(&self, py: Python<'_>, xid: Bytes<'_, '_>) -> PyResult<()> {
        let xid = &*xid;
        self.call(py, |db| db.rollback_prepared(xid))
    }

    // --- Maintenance ---

    /// Makes everything that was committed so far durable.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, frondb::Db::sync)
    }

    /// Writes all memtables to the data files.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, frondb::Db::flush)
    }

    /// Writes all memtables to the data files and frees the log, so that the next open replays
    /// nothing.
    fn checkpoint(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, frondb::Db::checkpoint)
    }

    /// Waits until background work has caught up.
    fn wait_settled(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, frondb::Db::wait_settled)
    }

    /// Reads all data of all trees and checks it; `VerifyReport.faults` lists the faults.
    #[pyo3(signature = (*, progress=None))]
    fn verify(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<VerifyReport> {
        let db = &self.get_open()?.db;
        let report = Progress::during(py, progress, |progress| {
            db.verify(&mut |tree, done, total| progress.tell_of(tree, done, total))
        })?;
        Ok(report.into())
    }

    /// Copies the database into the directory `to` while others read and write it.
    #[pyo3(signature = (to, *, since=None, bytes_per_second=0, file_mode=None, progress=None))]
    fn backup(
        &self,
        py: Python<'_>,
        to: PathBuf,
        since: Option<PathBuf>,
        bytes_per_second: u64,
        file_mode: Option<u32>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<BackupReport> {
        let db = &self.get_open()?.db;
        let mut options = BackupOptions::new().bytes_per_second(bytes_per_second);
        if let Some(since) = since {
            options = options.since(since);
        }
        if let Some(mode) = file_mode {
            options = options.file_mode(mode);
        }
        let report = Progress::during(py, progress, |progress| {
            db.backup(&to, &options, &mut |done, total| progress.tell(done, total))
        })?;
        Ok(report.into())
    }

    /// Changes the memory budget, bytes; 0 means a quarter of the machine's memory.
    fn set_memory(&self, py: Python<'_>, bytes: u64) -> PyResult<()> {
        self.call(py, |db| db.set_memory_bytes(bytes))
    }

    /// The memory budget, bytes.
    #[getter]
    fn memory(&self, py: Python<'_>) -> PyResult<u64> {
        self.call(py, |db| Ok(db.memory_bytes()))
    }

    /// Returns the statistics by name; docs/operating/status.md explains each.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        statistics(py, self.call(py, |db| Ok(db.stats().named_values()))?)
    }

    /// Returns the statistics and latencies in the text format of Prometheus.
    fn prometheus(&self, py: Python<'_>) -> PyResult<String> {
        self.call(py, |db| Ok(db.prometheus()))
    }

    // --- The end ---

    /// Closes the database and unlocks its directory, even while trees, iterators and transactions
    /// exist.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let open = self.open.get()?;
        open.life.close();
        // A second call returns the error of the first, or waits for it.
        let closed = detached(py, || open.db.close());
        open.running.end();
        closed
    }

    fn __enter__(this: Py<Self>) -> PyResult<Py<Self>> {
        this.get().get_open()?;
        Ok(this)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        let is_open = self.get_open().is_ok();
        format!("<frondb.Db {:?}{}>", self.path, if is_open { "" } else { ", closed" })
    }
}
