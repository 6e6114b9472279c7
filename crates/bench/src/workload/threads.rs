//! Threads of a workload.

use std::thread;

use crate::error::{Error, Result};

/// Returns the result of a thread that has ended. A panic becomes an error of the engine.
pub(super) fn joined<T>(result: thread::Result<Result<T>>) -> Result<T> {
    result.unwrap_or_else(|_| Err(Error::Engine("a thread of the workload panicked".to_owned())))
}
