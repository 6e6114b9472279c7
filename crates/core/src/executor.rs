//! Threads through one door: whoever needs a thread is handed an [`Executor`].
//!
//! The engine never calls `std::thread` itself. So all its threads have names (a profile and a
//! stack dump say which part is at work), a refused thread is an error instead of a panic, and a
//! test can put an executor that chooses the schedule in its place: under `--cfg shuttle`
//! [`ThreadExecutor`] spawns shuttle's threads, whose interleaving is replayed from a seed.

use crate::error::{Error, ErrorKind, Result};
use crate::sync::Arc;
use std::any::Any;
use std::fmt;

#[cfg(not(shuttle))]
use std::thread;

#[cfg(shuttle)]
use shuttle::thread;

/// What a thread runs.
pub type Task = Box<dyn FnOnce() + Send + 'static>;

/// Runs tasks on threads of their own.
pub trait Executor: Send + Sync + fmt::Debug {
    /// Starts `task` on a new thread called `name` (the kernel shows its first 15 bytes).
    ///
    /// # Errors
    /// `Io` if the system gives no more threads; the task was not run then.
    fn spawn(&self, name: &str, task: Task) -> Result<JoinHandle>;
}

/// An executor as the parts of the engine hold it.
pub type SharedExecutor = Arc<dyn Executor>;

/// A started thread. Dropping it lets the thread run on.
#[must_use = "a thread that nobody joins may outlive what it works on"]
pub struct JoinHandle {
    name: String,
    join: Box<dyn FnOnce() -> std::result::Result<(), Box<dyn Any + Send>> + Send>,
}

impl JoinHandle {
    /// A handle for an executor of one's own: `join` waits for the task and returns what it
    /// panicked with.
    pub fn new(
        name: impl Into<String>,
        join: impl FnOnce() -> std::result::Result<(), Box<dyn Any + Send>> + Send + 'static,
    ) -> Self {
        Self { name: name.into(), join: Box::new(join) }
    }

    /// The thread's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits until the task has ended.
    ///
    /// # Errors
    /// `Internal` with the panic's message if the task panicked.
    pub fn join(self) -> Result<()> {
        let Self { name, join } = self;
        join().map_err(|panic| {
            let reason = panic
                .downcast_ref::<&str>()
                .map(|reason| (*reason).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "no message".to_owned());
            Error::internal(format!("thread {name} panicked: {reason}"))
        })
    }
}

impl fmt::Debug for JoinHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinHandle({})", self.name)
    }
}

/// The executor of production: one named thread of the operating system for each task.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadExecutor;

impl ThreadExecutor {
    /// A new executor, ready to be handed around.
    #[must_use]
    pub fn shared() -> SharedExecutor {
        Arc::new(Self)
    }
}

impl Executor for ThreadExecutor {
    fn spawn(&self, name: &str, task: Task) -> Result<JoinHandle> {
        if name.contains('\0') {
            return Err(Error::invalid(format!("thread name {name:?} contains a zero byte")));
        }
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(task)
            .map_err(|source| Error::io("start thread", name, &source).with_kind(ErrorKind::Io))?;
        Ok(JoinHandle::new(name, move || thread.join()))
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_task_runs_under_its_name() {
        let ran = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&ran);
        let task = Box::new(move || {
            flag.store(thread::current().name() == Some("flusher"), Ordering::SeqCst);
        });
        let handle = ThreadExecutor.spawn("flusher", task).unwrap();
        assert_eq!(handle.name(), "flusher");
        handle.join().unwrap();
        assert!(ran.load(Ordering::SeqCst));
    }

    #[test]
    fn a_panic_becomes_an_internal_error_with_its_message() {
        let task = Box::new(|| std::panic::resume_unwind(Box::new("out of cheese")));
        let error = ThreadExecutor.spawn("merger", task).unwrap().join().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert_eq!(error.message(), "thread merger panicked: out of cheese");
    }

    #[test]
    fn a_name_with_a_zero_byte_is_refused() {
        let error = ThreadExecutor.spawn("a\0b", Box::new(|| ())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
}
