//! Handles of the engine that a forked child process does not touch.
//!
//! A fork copies the memory of a process and only the thread that forks. In the child the engine's
//! worker threads are missing, its latches may be held by threads that do not exist, and a drop of
//! the database would unlock the directory under the parent. So the child may neither use nor drop
//! a handle: [`Owned`] refuses the first and leaks the second.
//!
//! Python tells of a fork (`os.register_at_fork`), so a check costs one load instead of a system
//! call. All Python code that forks tells, `multiprocessing` and `subprocess` included.

use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::prelude::*;

use crate::errors;

/// The pid of this process; 0 before the module is imported.
static PID: AtomicU32 = AtomicU32::new(0);

/// Notes the pid, now and in each forked child.
pub(crate) fn register(py: Python<'_>) -> PyResult<()> {
    note_pid();
    let child = wrap_pyfunction!(note_pid, py)?;
    let arguments = pyo3::types::PyDict::new(py);
    arguments.set_item("after_in_child", child)?;
    py.import("os")?.getattr("register_at_fork")?.call((), Some(&arguments))?;
    Ok(())
}

#[pyfunction]
fn note_pid() {
    PID.store(std::process::id(), Ordering::Relaxed);
}

/// A handle of the engine, or of something that refers to an open database. Only the process that
/// made the handle can use it. Dropped without the interpreter lock, because the drop of the last
/// handle of a database waits for its worker threads.
pub(crate) struct Owned<T: Send> {
    /// `None` only during the drop.
    value: Option<T>,
    pid: u32,
}

impl<T: Send> Owned<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Some(value), pid: PID.load(Ordering::Relaxed) }
    }

    /// Returns the handle.
    ///
    /// # Errors
    /// `ForkedProcess` in a forked child.
    #[inline]
    pub(crate) fn get(&self) -> PyResult<&T> {
        match &self.value {
            Some(value) if self.is_of_this_process() => Ok(value),
            _ => Err(errors::forked(self.pid)),
        }
    }

    #[inline]
    pub(crate) fn is_of_this_process(&self) -> bool {
        self.pid == PID.load(Ordering::Relaxed)
    }
}

impl<T: Send> Drop for Owned<T> {
    fn drop(&mut self) {
        let Some(value) = self.value.take() else { return };
        if !self.is_of_this_process() {
            std::mem::forget(value);
            return;
        }
        // While the interpreter shuts down, the lock cannot be taken again after a release.
        let mut value = Some(value);
        Python::try_attach(|py| py.detach(|| drop(value.take())));
    }
}
