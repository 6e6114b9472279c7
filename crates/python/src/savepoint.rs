//! Savepoints.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::errors::detached;
use crate::handle::{Life, OpenTransaction};
use crate::process::Owned;

/// A savepoint of a transaction; `Transaction.savepoint` makes one.
#[pyclass(frozen, module = "frondb")]
pub(crate) struct Savepoint {
    open: Owned<Arc<OpenTransaction>>,
    savepoint: frondb::Savepoint,
    /// Whether the savepoint was released.
    life: Arc<Life>,
}

impl Savepoint {
    pub(crate) fn new(open: Arc<OpenTransaction>, savepoint: frondb::Savepoint) -> Self {
        Self { open: Owned::new(open), savepoint, life: Life::new("savepoint") }
    }
}

#[pymethods]
impl Savepoint {
    /// Undoes all writes since the savepoint, which stays set. The locks stay, too.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        let open = self.open.get()?;
        detached(py, || open.transaction.roll_back_to(self.savepoint))
    }

    /// Removes the savepoint and later ones, and keeps the writes.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        let open = self.open.get()?;
        detached(py, || open.transaction.release(self.savepoint))?;
        self.life.close();
        Ok(())
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
        if self.life.is_closed() || self.open.get()?.life.is_closed() {
            return Ok(());
        }
        if raised.is_none() {
            return self.release(py);
        }
        // After a deadlock the whole transaction is rolled back already; the exception of the body
        // says so.
        let _ = self.rollback(py).and_then(|()| self.release(py));
        Ok(())
    }
}
