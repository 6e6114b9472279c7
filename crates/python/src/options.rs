//! Options of databases and trees as keyword arguments.
//!
//! The engine sets every option by its name and a text, so an option that is new in the engine
//! needs no code here.

use frondb::{Options, TreeOptions};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyString};

use crate::counter::Counter;
use crate::errors;

/// Options whose numbers are written in octal.
const MODES: [&str; 2] = ["file_mode", "dir_mode"];

/// Returns the options for opening a database.
pub(crate) fn of_database(
    memory: Option<&Bound<'_, PyAny>>,
    named: Option<&Bound<'_, PyDict>>,
) -> PyResult<Options> {
    let mut options = Options::new().update_fn(Counter);
    if let Some(memory) = memory {
        options = set(memory.py(), options, "memory_bytes", memory, Options::set)?;
    }
    each(named, options, Options::set)
}

/// Returns the options of a new tree.
pub(crate) fn of_new_tree(
    preset: Option<&str>,
    counters: bool,
    named: Option<&Bound<'_, PyDict>>,
) -> PyResult<TreeOptions> {
    let mut options = match preset {
        None => TreeOptions::new(),
        Some("secondary") => TreeOptions::secondary(),
        Some("aggressive") => TreeOptions::aggressive(),
        Some(other) => {
            return Err(errors::invalid(format!(
                "preset is {other:?}; it must be secondary or aggressive"
            )));
        }
    };
    if counters {
        options = options.update_fn(Counter::NAME, 1);
    }
    of_tree(options, named)
}

/// Returns the options of a tree with some of them changed.
pub(crate) fn of_tree(
    options: TreeOptions,
    named: Option<&Bound<'_, PyDict>>,
) -> PyResult<TreeOptions> {
    each(named, options, TreeOptions::set)
}

fn each<T>(
    named: Option<&Bound<'_, PyDict>>,
    mut options: T,
    change: impl Fn(T, &str, &str) -> frondb::Result<T>,
) -> PyResult<T> {
    for (name, value) in named.into_iter().flatten() {
        let name: String = name.extract()?;
        options = set(value.py(), options, &name, &value, &change)?;
    }
    Ok(options)
}

fn set<T>(
    py: Python<'_>,
    options: T,
    name: &str,
    value: &Bound<'_, PyAny>,
    change: impl Fn(T, &str, &str) -> frondb::Result<T>,
) -> PyResult<T> {
    let text = text(name, value)?;
    change(options, name, &text).map_err(|error| errors::of(py, &error))
}

/// Returns the value of an option as the engine reads it.
fn text(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_str()?.to_owned());
    }
    if let Ok(on) = value.cast::<PyBool>() {
        return Ok(if on.is_true() { "on" } else { "off" }.to_owned());
    }
    if value.is_instance_of::<PyInt>() {
        if MODES.contains(&name) {
            return Ok(format!("{:o}", value.extract::<u32>()?));
        }
        return Ok(value.str()?.to_str()?.to_owned());
    }
    if value.is_none() {
        return Ok("default".to_owned());
    }
    if let Ok(seconds) = value.call_method0("total_seconds") {
        let millis: f64 = seconds.extract::<f64>()? * 1000.0;
        return Ok(format!("{millis:.0}ms"));
    }
    let py = value.py();
    let path = py.import("os")?.call_method1("fspath", (value,)).map_err(|_| {
        PyTypeError::new_err(format!(
            "the option {name} is a bool, an int, a str, a timedelta or a path, not {}",
            value.get_type()
        ))
    })?;
    path.extract()
}
