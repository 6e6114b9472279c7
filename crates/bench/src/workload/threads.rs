//! Threads of a workload.

use std::thread;

use crate::error::{Error, Result};

/// What a thread that has ended returned; a panic is an error of the engine.
pub(super) fn joined<T>(result: thread::Result<Result<T>>) -> Result<T> {
    result.unwrap_or_else(|_| Err(Error::Engine("a thread of the workload panicked".to_owned())))
}
