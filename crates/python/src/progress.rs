//! Calls that take long: the caller's function that they tell how far they are, and Ctrl-C.

use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::errors;

/// The caller's function, and the exception that ended the call, if any.
pub(crate) struct Progress {
    function: Option<Py<PyAny>>,
    raised: Option<PyErr>,
}

impl Progress {
    /// Runs a long call without the interpreter lock. The call gets a function for
    /// [`tell`](Self::tell), which takes the lock.
    ///
    /// # Errors
    /// The exception of the caller's function or of a signal handler, else that of the call.
    pub(crate) fn during<T: Send>(
        py: Python<'_>,
        function: Option<Py<PyAny>>,
        call: impl FnOnce(&mut Self) -> frondb::Result<T> + Send,
    ) -> PyResult<T> {
        let mut progress = Self { function, raised: None };
        let result = py.detach(|| call(&mut progress));
        match progress.raised {
            Some(raised) => Err(raised),
            None => result.map_err(|error| errors::of(py, &error)),
        }
    }

    /// Calls the caller's function. Returns whether to continue: not if the function returned
    /// `False` or raised an exception, or if a signal handler did, as that of Ctrl-C does.
    pub(crate) fn tell(&mut self, done: u64, total: u64) -> bool {
        self.call(|py, function| function.call1(py, (done, total)))
    }

    /// As [`tell`](Self::tell), with the name of the tree that the call is at.
    pub(crate) fn tell_of(&mut self, name: &str, done: u64, total: u64) -> bool {
        self.call(|py, function| function.call1(py, (name, done, total)))
    }

    fn call(&mut self, call: impl Fn(Python<'_>, &Py<PyAny>) -> PyResult<Py<PyAny>>) -> bool {
        let answer = Python::attach(|py| {
            py.check_signals()?;
            let Some(function) = &self.function else { return Ok(true) };
            let answer = call(py, function)?;
            Ok(answer.bind(py).cast::<PyBool>().map_or(true, |answer| answer.is_true()))
        });
        answer.unwrap_or_else(|raised| {
            self.raised = Some(raised);
            false
        })
    }
}
