//! Keys and values: as arguments any bytes-like object, as results `bytes`.

use std::ops::Deref;

use pyo3::Borrowed;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString};

/// A key and its value.
pub(crate) type Entry<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

pub(crate) fn value<'py>(py: Python<'py>, value: Option<Vec<u8>>) -> Option<Bound<'py, PyBytes>> {
    value.map(|value| PyBytes::new(py, &value))
}

pub(crate) fn entry<'py>(py: Python<'py>, entry: Option<(Vec<u8>, Vec<u8>)>) -> Option<Entry<'py>> {
    entry.map(|(key, value)| (PyBytes::new(py, &key), PyBytes::new(py, &value)))
}

/// The bytes of an argument. A `bytes` object is borrowed, because it never changes; the bytes of
/// any other object are copied, because another thread may change them while a call runs without
/// the interpreter lock.
pub(crate) enum Bytes<'a, 'py> {
    Borrowed(Borrowed<'a, 'py, PyBytes>),
    Copied(Vec<u8>),
}

impl Deref for Bytes<'_, '_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes.as_bytes(),
            Self::Copied(bytes) => bytes,
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Bytes<'a, 'py> {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.cast::<PyBytes>() {
            Ok(bytes) => Ok(Self::Borrowed(bytes)),
            Err(_) => copied(&object).map(Self::Copied),
        }
    }
}

/// Copies the bytes of an object that has the buffer interface, in the order of its elements.
#[cold]
fn copied(object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(bytes) = object.cast::<PyByteArray>() {
        return Ok(bytes.to_vec());
    }
    if object.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err(
            "keys and values are bytes, not str: encode the text, for example with .encode()",
        ));
    }
    let Ok(view) = PyMemoryView::from(object) else {
        let name = object.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "keys and values are bytes-like objects, not {name}"
        )));
    };
    Ok(view.call_method0("tobytes")?.cast::<PyBytes>()?.as_bytes().to_vec())
}
