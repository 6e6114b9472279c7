//! Writes that are not committed yet, and rows as arguments.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyTuple};

use crate::bytes::Bytes;
use crate::errors;
use crate::handle::Database;

/// Bytes after which a call that writes many rows commits a batch.
const LARGE_BYTES: usize = 1 << 20;

/// Writes that are not committed yet.
pub(crate) struct Writes {
    database: Database,
    pub(crate) batch: frondb::Batch,
}

impl Writes {
    pub(crate) fn new(database: Database) -> Self {
        Self { database, batch: frondb::Batch::new() }
    }

    /// Commits the writes. After an error they are still there.
    pub(crate) fn write(&mut self, py: Python<'_>, sync: Option<bool>) -> PyResult<()> {
        let Self { database, batch } = self;
        if batch.is_empty() {
            return database.life.check();
        }
        errors::detached(py, || database.write(batch, sync))?;
        self.batch.clear();
        Ok(())
    }

    /// Commits the writes if they take much memory.
    pub(crate) fn write_if_large(&mut self, py: Python<'_>, sync: Option<bool>) -> PyResult<()> {
        if self.batch.memory_bytes() < LARGE_BYTES { Ok(()) } else { self.write(py, sync) }
    }
}

/// Calls `each` with each row of a mapping, or of an iterable of pairs.
pub(crate) fn for_each_row(
    rows: &Bound<'_, PyAny>,
    mut each: impl FnMut(&[u8], &[u8]) -> PyResult<()>,
) -> PyResult<()> {
    let is_mapping = rows.is_instance_of::<PyDict>() || rows.cast::<PyMapping>().is_ok();
    let items = if is_mapping { Some(rows.call_method0("items")?) } else { None };
    for row in items.as_ref().unwrap_or(rows).try_iter()? {
        let row = row?;
        let (key, value) = pair(&row)?;
        each(&key.extract::<Bytes<'_, '_>>()?, &value.extract::<Bytes<'_, '_>>()?)?;
    }
    Ok(())
}

fn pair<'py>(row: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    if let Ok(row) = row.cast::<PyTuple>()
        && row.len() == 2
    {
        return Ok((row.get_item(0)?, row.get_item(1)?));
    }
    let parts: PyResult<Vec<_>> = row.try_iter().and_then(|parts| parts.collect());
    match parts.as_deref() {
        Ok([key, value]) => Ok((key.clone(), value.clone())),
        _ => Err(PyTypeError::new_err("rows are a mapping, or an iterable of pairs (key, value)")),
    }
}
