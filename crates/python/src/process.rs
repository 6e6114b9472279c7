//! Handles of the engine that a forked child process does not touch.
//!
//! A fork copies the memory of a process and only the thread that forks. In the child the engine's
//! worker threads are missing, its latches may be held by threads that do not exist, and a drop of
//! the database would unlock the directory under the parent. So the child may neither use nor drop
//! a handle: [`Owned`] refuses the first and leaks the second.
//!
//! Nor may the child open a database of its own if the parent had one open: at the moment of the fork
//! a worker of the parent may have held a latch of the whole process, such as those of parking_lot's
//! table of waiting threads, and the child would wait for it for ever. [`Running`] counts the open
//! databases.
//!
//! Python tells of a fork (`os.register_at_fork`), so a check costs one load instead of a system
//! call. All Python code that forks tells, `multiprocessing` and `subprocess` included.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use pyo3::prelude::*;

use crate::errors;

/// The pid of this process; 0 before the module is imported.
static PID: AtomicU32 = AtomicU32::new(0);
/// Open databases of this process, or of its parent at the fork.
static RUNNING: AtomicU32 = AtomicU32::new(0);
/// The pid of the parent if it had a database open at the fork, or its own parent had; otherwise 0.
static BUSY_PARENT: AtomicU32 = AtomicU32::new(0);

/// Notes the pid, now and in each forked child.
pub(crate) fn register(py: Python<'_>) -> PyResult<()> {
    PID.store(std::process::id(), Ordering::Relaxed);
    let child = wrap_pyfunction!(note_fork, py)?;
    let arguments = pyo3::types::PyDict::new(py);
    arguments.set_item("after_in_child", child)?;
    py.import("os")?.getattr("register_at_fork")?.call((), Some(&arguments))?;
    Ok(())
}

#[pyfunction]
fn note_fork() {
    let parent = PID.swap(std::process::id(), Ordering::Relaxed);
    if RUNNING.swap(0, Ordering::Relaxed) > 0 {
        BUSY_PARENT.store(parent, Ordering::Relaxed);
    }
}

/// Checks that this process can run an engine.
///
/// # Errors
/// `ForkedProcess` in a child of a process that had a database open at the fork.
pub(crate) fn check_parent() -> PyResult<()> {
    match BUSY_PARENT.load(Ordering::Relaxed) {
        0 => Ok(()),
        parent => Err(errors::forked(parent)),
    }
}

/// An open database, whose worker threads run until it is closed or dropped.
pub(crate) struct Running {
    pid: u32,
    has_ended: AtomicBool,
}

impl Running {
    /// Counts a database, before its threads begin.
    pub(crate) fn begin() -> Self {
        RUNNING.fetch_add(1, Ordering::Relaxed);
        Self { pid: PID.load(Ordering::Relaxed), has_ended: AtomicBool::new(false) }
    }

    /// Notes that the threads have ended.
    pub(crate) fn end(&self) {
        if !self.has_ended.swap(true, Ordering::Relaxed) && self.pid == PID.load(Ordering::Relaxed)
        {
            RUNNING.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
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
