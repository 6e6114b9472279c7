//! Writers of a bulk load: each collects rows, and hands many at once to the engine, without the
//! interpreter lock, because the engine may write them to disk.

use frondb::Result;
use parking_lot::Mutex;
use pyo3::prelude::*;

use super::columns::Column;
use crate::bytes::Bytes;
use crate::errors::{self, detached};
use crate::process::Owned;
use crate::tree::Tree;
use crate::writes::for_each_row;

/// Bytes of collected rows that are handed to the engine at once.
const PIECE_BYTES: usize = 256 << 10;

/// Rows of one tree.
#[derive(Default)]
struct Collected {
    tree: Option<frondb::Tree>,
    bytes: Vec<u8>,
    /// The ends of each key and of its value in `bytes`.
    ends: Vec<(usize, usize)>,
}

impl Collected {
    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((end, self.bytes.len()));
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.bytes.shrink_to(PIECE_BYTES * 2);
    }
}

struct Open {
    writer: frondb::BulkWriter,
    collected: Collected,
}

impl Open {
    /// Hands the collected rows to the engine.
    fn flush(&mut self) -> Result<()> {
        let Self { writer, collected } = self;
        let mut start = 0;
        if let Some(tree) = &collected.tree {
            for &(key, value) in &collected.ends {
                let bytes = &collected.bytes;
                writer.put(tree, &bytes[start..key], &bytes[key..value])?;
                start = value;
            }
        }
        collected.clear();
        Ok(())
    }

    fn put(
        &mut self,
        py: Python<'_>,
        tree: &frondb::Tree,
        key: &[u8],
        value: &[u8],
    ) -> PyResult<()> {
        let is_same = self.collected.tree.as_ref().is_some_and(|last| last.id() == tree.id());
        if !is_same {
            detached(py, || self.flush())?;
            self.collected.tree = Some(tree.clone());
        }
        self.collected.push(key, value);
        if self.collected.bytes.len() < PIECE_BYTES {
            return Ok(());
        }
        detached(py, || self.flush())
    }
}

/// A writer of a bulk load, for one thread at a time; `BulkLoad.writer` makes one.
#[pyclass(frozen, module = "frondb")]
pub(crate) struct BulkWriter {
    /// `None` once it is finished.
    open: Owned<Mutex<Option<Open>>>,
}

impl BulkWriter {
    pub(crate) fn new(writer: frondb::BulkWriter) -> Self {
        let open = Open { writer, collected: Collected::default() };
        Self { open: Owned::new(Mutex::new(Some(open))) }
    }

    fn with<T>(&self, call: impl FnOnce(&mut Open) -> PyResult<T>) -> PyResult<T> {
        let mut open = self.open.get()?.try_lock().ok_or_else(|| errors::busy("bulk writer"))?;
        call(open.as_mut().ok_or_else(|| errors::closed("bulk writer"))?)
    }

    /// Whether it is not finished.
    pub(super) fn is_open(&self) -> bool {
        self.with(|_| Ok(())).is_ok()
    }

    pub(super) fn finish_if_open(&self, py: Python<'_>) -> PyResult<()> {
        let mut guard = self.open.get()?.try_lock().ok_or_else(|| errors::busy("bulk writer"))?;
        let Some(mut open) = guard.take() else { return Ok(()) };
        detached(py, || {
            open.flush()?;
            open.writer.finish()
        })
    }
}

#[pymethods]
impl BulkWriter {
    /// Adds a row; see `BulkLoad.put`.
    pub(super) fn put(
        &self,
        py: Python<'_>,
        tree: &Bound<'_, Tree>,
        key: Bytes<'_, '_>,
        value: Bytes<'_, '_>,
    ) -> PyResult<()> {
        let tree = &tree.get().get_open()?.tree;
        self.with(|open| open.put(py, tree, &key, &value))
    }

    /// Adds rows; see `BulkLoad.put_many`.
    pub(super) fn put_many(
        &self,
        py: Python<'_>,
        tree: &Bound<'_, Tree>,
        rows: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let tree = &tree.get().get_open()?.tree;
        // The rows may be a generator that uses this writer itself, so the latch is not held for all.
        for_each_row(rows, |key, value| self.with(|open| open.put(py, tree, key, value)))
    }

    /// Adds rows from buffers; see `BulkLoad.put_columns`.
    pub(super) fn put_columns(
        &self,
        py: Python<'_>,
        tree: &Bound<'_, Tree>,
        key_offsets: &Bound<'_, PyAny>,
        key_data: &Bound<'_, PyAny>,
        value_offsets: &Bound<'_, PyAny>,
        value_data: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let tree = &tree.get().get_open()?.tree;
        let keys = Column::new("key", key_offsets, key_data)?;
        let values = Column::new("value", value_offsets, value_data)?;
        keys.check_rows_of(&values)?;
        let mut row = 0;
        while row < keys.rows() {
            let piece =
                keys.rows_within(row, PIECE_BYTES).min(values.rows_within(row, PIECE_BYTES));
            let (key, value) = (keys.copy(row, piece)?, values.copy(row, piece)?);
            let mut rows = key.strings().zip(value.strings());
            self.with(|open| {
                detached(py, || {
                    open.flush()?;
                    rows.try_for_each(|(key, value)| open.writer.put(tree, key, value))
                })
            })?;
            py.check_signals()?;
            row += piece;
        }
        Ok(())
    }

    /// Hands the rows to the load.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.with(|_| Ok(()))?;
        self.finish_if_open(py)
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
        if raised.is_none() { self.finish_if_open(py) } else { Ok(()) }
    }
}
