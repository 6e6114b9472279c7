//! Bulk loads.

mod columns;
mod writer;

use frondb::{BulkOptions, BulkProgress, Duplicates};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arguments;
use crate::bytes::Bytes;
use crate::errors::{self, detached};
use crate::handle::Database;
use crate::options;
use crate::process::Owned;
use crate::progress::Progress;
use crate::report::BulkReport;
use crate::tree::Tree;

pub(crate) use writer::BulkWriter;

/// A load of much data into any number of trees; `Db.bulk_load` makes one.
#[pyclass(frozen, module = "frondb")]
pub(crate) struct BulkLoad {
    load: Owned<(frondb::BulkLoad, Database)>,
    /// The writer of the load's own `put`, `put_many` and `put_columns`.
    writer: BulkWriter,
}

impl BulkLoad {
    pub(crate) fn begin(
        py: Python<'_>,
        database: Database,
        duplicates: &str,
        memory: u64,
        sync: Option<bool>,
        lock_timeout: f64,
    ) -> PyResult<Self> {
        let duplicates = match duplicates {
            "replace" => Duplicates::Replace,
            "fail" => Duplicates::Fail,
            other => {
                return Err(errors::invalid(format!(
                    "duplicates is {other:?}; it must be replace or fail"
                )));
            }
        };
        let options = BulkOptions {
            duplicates,
            memory_bytes: memory,
            durability: database.durability(sync),
            lock_timeout: arguments::seconds("lock_timeout", lock_timeout)?,
        };
        let load = detached(py, || database.db.bulk_load(options))?;
        let writer = BulkWriter::new(load.writer());
        Ok(Self { load: Owned::new((load, database)), writer })
    }
}

#[pymethods]
impl BulkLoad {
    /// Makes a tree that exists from the commit of this load on; the options are those of
    /// `Db.tree`.
    #[pyo3(signature = (name, *, preset=None, counters=false, **options))]
    fn new_tree(
        &self,
        py: Python<'_>,
        name: &str,
        preset: Option<&str>,
        counters: bool,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Tree> {
        let (load, database) = self.load.get()?;
        let options = options::of_new_tree(preset, counters, options)?;
        let tree = detached(py, || load.new_tree(name, options))?;
        Ok(Tree::new(crate::handle::OpenTree { tree, database: database.clone() }))
    }

    /// Returns a writer, for a load by several threads, one writer for each.
    fn writer(&self, py: Python<'_>) -> PyResult<BulkWriter> {
        let (load, _) = self.load.get()?;
        Ok(BulkWriter::new(py.detach(|| load.writer())))
    }

    /// Adds a row.
    fn put(
        &self,
        py: Python<'_>,
        tree: &Bound<'_, Tree>,
        key: Bytes<'_, '_>,
        value: Bytes<'_, '_>,
    ) -> PyResult<()> {
        self.writer.put(py, tree, key, value)
    }

    /// Adds all rows of a mapping, or of an iterable of pairs.
    fn put_many(
        &self,
        py: Python<'_>,
        tree: &Bound<'_, Tree>,
        rows: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.writer.put_many(py, tree, rows)
    }

    /// Adds rows from buffers, as Apache Arrow has them.
    fn put_columns(
        &self,
        py: Python<'_>,
        tree: &Bound<'_, Tree>,
        key_offsets: &Bound<'_, PyAny>,
        key_data: &Bound<'_, PyAny>,
        value_offsets: &Bound<'_, PyAny>,
        value_data: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.writer.put_columns(py, tree, key_offsets, key_data, value_offsets, value_data)
    }

    /// Sorts the rows of all writers and commits them.
    #[pyo3(signature = (*, progress=None))]
    fn finish(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<BulkReport> {
        let (load, database) = self.load.get()?;
        database.life.check()?;
        self.writer.finish_if_open(py)?;
        let report = Progress::during(py, progress, |progress| {
            load.finish(&mut |BulkProgress { done, total }| progress.tell(done, total))
        })?;
        Ok(report.into())
    }

    /// Makes all calls of the load, also those of other threads, fail with `Cancelled`.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        let (load, _) = self.load.get()?;
        py.detach(|| load.cancel());
        Ok(())
    }

    /// Returns a key that was given twice, if there is one.
    fn duplicate<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let (load, _) = self.load.get()?;
        let duplicate = py.detach(|| load.duplicate());
        Ok(duplicate.map(|duplicate| PyBytes::new(py, &duplicate.key)))
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        raised: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if !raised.is_none() {
            return self.cancel(py);
        }
        // A body may have called `finish` itself, for its report.
        if self.writer.is_open() { self.finish(py, None).map(drop) } else { Ok(()) }
    }
}
