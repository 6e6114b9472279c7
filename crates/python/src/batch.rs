//! Batches: writes to any number of trees that are committed together.

use parking_lot::Mutex;
use pyo3::prelude::*;

use crate::arguments::Keys;
use crate::bytes::Bytes;
use crate::counter;
use crate::errors;
use crate::handle::Database;
use crate::process::Owned;
use crate::tree::Tree;
use crate::writes::{Writes, for_each_row};

/// Writes to any number of trees that are committed together; `Db.batch` makes one.
#[pyclass(frozen, module = "frondb")]
pub(crate) struct Batch {
    /// `None` once the batch was left.
    writes: Owned<Mutex<Option<Writes>>>,
    sync: Option<bool>,
}

impl Batch {
    pub(crate) fn new(database: Database, sync: Option<bool>) -> Self {
        Self { writes: Owned::new(Mutex::new(Some(Writes::new(database)))), sync }
    }

    /// Calls `call` with the writes.
    ///
    /// # Errors
    /// `Busy` if another thread is in a call on the batch: a wait for it, with the interpreter lock
    /// that it may need, could be for ever.
    #[inline]
    fn with<T>(&self, call: impl FnOnce(&mut Writes) -> PyResult<T>) -> PyResult<T> {
        let mut writes = self.writes.get()?.try_lock().ok_or_else(|| errors::busy("batch"))?;
        call(writes.as_mut().ok_or_else(|| errors::closed("batch"))?)
    }
}

#[pymethods]
impl Batch {
    /// Adds a write that sets the value of a key.
    fn put(
        &self,
        tree: &Bound<'_, Tree>,
        key: Bytes<'_, '_>,
        value: Bytes<'_, '_>,
    ) -> PyResult<()> {
        let tree = &tree.get().get_open()?.tree;
        self.with(|writes| {
            writes.batch.put(tree, &*key, &*value);
            Ok(())
        })
    }

    /// Adds writes of all rows of a mapping, or of an iterable of pairs.
    fn put_many(&self, tree: &Bound<'_, Tree>, rows: &Bound<'_, PyAny>) -> PyResult<()> {
        let tree = &tree.get().get_open()?.tree;
        // The rows may be a generator that uses this batch itself, so the latch is not held for all.
        for_each_row(rows, |key, value| {
            self.with(|writes| {
                writes.batch.put(tree, key, value);
                Ok(())
            })
        })
    }

    /// Adds a write that removes a key.
    fn delete(&self, tree: &Bound<'_, Tree>, key: Bytes<'_, '_>) -> PyResult<()> {
        let tree = &tree.get().get_open()?.tree;
        self.with(|writes| {
            writes.batch.delete(tree, &*key);
            Ok(())
        })
    }

    /// Adds a write that removes a range; its arguments are those of `Tree.delete_range`.
    #[pyo3(signature = (tree, start=None, stop=None, *, prefix=None))]
    fn delete_range(
        &self,
        tree: &Bound<'_, Tree>,
        start: Option<Bytes<'_, '_>>,
        stop: Option<Bytes<'_, '_>>,
        prefix: Option<Bytes<'_, '_>>,
    ) -> PyResult<()> {
        let tree = &tree.get().get_open()?.tree;
        let keys = Keys::new(start, stop, prefix);
        keys.check_given()?;
        self.with(|writes| {
            let (lower, upper) = keys.bounds();
            writes.batch.delete_range(tree, lower, upper);
            Ok(())
        })
    }

    /// Adds a write that adds a number to a counter; see `Tree.add`.
    #[pyo3(signature = (tree, key, number=1))]
    fn add(&self, tree: &Bound<'_, Tree>, key: Bytes<'_, '_>, number: i64) -> PyResult<()> {
        let tree = &tree.get().get_open()?.tree;
        self.with(|writes| {
            writes.batch.update(tree, &*key, counter::value(number));
            Ok(())
        })
    }

    /// Commits the writes; the batch is then empty and can be used again.
    #[pyo3(signature = (*, sync=None))]
    fn write(&self, py: Python<'_>, sync: Option<bool>) -> PyResult<()> {
        self.with(|writes| writes.write(py, sync.or(self.sync)))
    }

    /// Drops the writes.
    fn clear(&self) -> PyResult<()> {
        self.with(|writes| {
            writes.batch.clear();
            Ok(())
        })
    }

    /// The size of the batch in memory, bytes.
    #[getter]
    fn memory_bytes(&self) -> PyResult<usize> {
        self.with(|writes| Ok(writes.batch.memory_bytes()))
    }

    fn __len__(&self) -> PyResult<usize> {
        self.with(|writes| Ok(writes.batch.len()))
    }

    /// A batch is true also without writes, as a file is without bytes.
    fn __bool__(&self) -> bool {
        true
    }

    fn __enter__(this: Py<Self>) -> PyResult<Py<Self>> {
        this.get().with(|_| Ok(()))?;
        Ok(this)
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        raised: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let mut guard = self.writes.get()?.try_lock().ok_or_else(|| errors::busy("batch"))?;
        let Some(mut writes) = guard.take() else { return Ok(()) };
        if raised.is_none() { writes.write(py, self.sync) } else { Ok(()) }
    }
}
