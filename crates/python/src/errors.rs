//! Exceptions: the engine's errors by kind, and the errors of this module itself.
//!
//! The classes are in `frondb/_errors.py`, because a class with fields of its own that also derives
//! from `OSError` or `ValueError` cannot be written in the stable C interface of Python 3.11.

use frondb::ErrorKind;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyModule, PyType};

static CLASSES: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// Imports the classes, so that an error while the interpreter shuts down needs no import.
pub(crate) fn register(py: Python<'_>) -> PyResult<()> {
    CLASSES.get_or_try_init(py, || py.import("frondb._errors").map(Bound::unbind))?;
    Ok(())
}

/// Returns the exception of an error.
#[cold]
pub(crate) fn of(py: Python<'_>, error: &frondb::Error) -> PyErr {
    let fields = PyDict::new(py);
    exception(py, error, &fields).unwrap_or_else(|failed| failed)
}

fn exception(py: Python<'_>, error: &frondb::Error, fields: &Bound<'_, PyDict>) -> PyResult<PyErr> {
    if let Some(place) = error.place() {
        fields.set_item("file", &place.file)?;
        fields.set_item("offset", place.offset)?;
        fields.set_item("what", place.what)?;
    }
    if let Some(os_error) = error.os_error() {
        fields.set_item("os_error", os_error)?;
    }
    let class = class(py, error.kind().name())?;
    Ok(PyErr::from_value(class.call((error.message(),), Some(fields))?))
}

/// Returns the class of a kind; `Error` for a kind that `_errors.py` does not know.
fn class<'py>(py: Python<'py>, kind: &str) -> PyResult<Bound<'py, PyType>> {
    let classes = CLASSES.get_or_try_init(py, || py.import("frondb._errors").map(Bound::unbind))?;
    let classes = classes.bind(py);
    let class = classes.getattr(kind).or_else(|_| classes.getattr("Error"))?;
    Ok(class.cast_into::<PyType>()?)
}

/// Creates an exception of `kind` that the engine does not raise itself.
#[cold]
pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> PyErr {
    let error = frondb::Error::new(kind, message);
    Python::attach(|py| of(py, &error))
}

/// Creates the exception of a wrong call.
#[cold]
pub(crate) fn invalid(message: impl Into<String>) -> PyErr {
    new(ErrorKind::Invalid, message)
}

/// Creates the exception of a handle that was closed.
#[cold]
pub(crate) fn closed(what: &str) -> PyErr {
    new(ErrorKind::Closed, format!("the {what} is closed"))
}

/// Creates the exception of an object that another thread is using.
#[cold]
pub(crate) fn busy(what: &str) -> PyErr {
    new(
        ErrorKind::Busy,
        format!("another thread is in a call on this {what}: use one {what} for each thread"),
    )
}

/// Creates the exception of a handle that belongs to the process `owner`, the parent of this one.
#[cold]
pub(crate) fn forked(owner: u32) -> PyErr {
    Python::attach(|py| {
        let message = format!(
            "process {owner} had a database open when it forked this one, which can use none: open \
             databases after the fork only, or start processes without a fork (multiprocessing: \
             the start method spawn)"
        );
        match class(py, "ForkedProcess").and_then(|class| class.call1((message,))) {
            Ok(exception) => PyErr::from_value(exception),
            Err(failed) => failed,
        }
    })
}

/// Runs `call` without the interpreter lock, and converts its error.
#[inline]
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    call: impl FnOnce() -> frondb::Result<T> + Send,
) -> PyResult<T> {
    py.detach(call).map_err(|error| of(py, &error))
}
