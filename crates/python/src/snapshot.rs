//! Snapshots.

use std::sync::Arc;

use parking_lot::Mutex;
use pyo3::prelude::*;

use crate::errors;
use crate::process::Owned;

/// A fixed state of the whole database, for the argument `snapshot` of reads.
#[pyclass(frozen, module = "frondb")]
pub(crate) struct Snapshot {
    /// `None` once it is closed. The latch is held for a clone only, never without the interpreter
    /// lock.
    held: Owned<Mutex<Option<Arc<frondb::Snapshot>>>>,
}

impl Snapshot {
    pub(crate) fn new(snapshot: frondb::Snapshot) -> Self {
        Self { held: Owned::new(Mutex::new(Some(Arc::new(snapshot)))) }
    }

    /// # Errors
    /// `Closed`; `ForkedProcess`.
    pub(crate) fn get(&self) -> PyResult<Arc<frondb::Snapshot>> {
        self.held.get()?.lock().clone().ok_or_else(|| errors::closed("snapshot"))
    }
}

/// Returns the snapshot of an optional argument. The caller drops it without the interpreter lock: it
/// may be the last handle of the snapshot.
pub(crate) fn at(
    snapshot: Option<&Bound<'_, Snapshot>>,
) -> PyResult<Option<Arc<frondb::Snapshot>>> {
    snapshot.map(|snapshot| snapshot.get().get()).transpose()
}

#[pymethods]
impl Snapshot {
    /// Releases the snapshot. Iterators that have begun continue.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let snapshot = self.held.get()?.lock().take();
        py.detach(|| drop(snapshot));
        Ok(())
    }

    fn __enter__(this: Py<Self>) -> PyResult<Py<Self>> {
        this.get().get()?;
        Ok(this)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        match self.get() {
            Ok(snapshot) => format!("<frondb.Snapshot at {}>", snapshot.seq()),
            Err(_) => "<frondb.Snapshot, closed>".to_owned(),
        }
    }
}
