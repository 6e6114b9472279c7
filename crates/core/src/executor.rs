//! [`Executor`]: starts all threads of the engine.
//!
//! No other code of the engine starts threads, for three reasons. All threads have names, so a
//! profile or a stack dump shows which part is running. If the system refuses a thread, that is an
//! error instead of a panic. And a test can supply an executor that chooses the schedule: under
//! `--cfg shuttle`, [`ThreadExecutor`] starts shuttle's threads, whose interleaving can be replayed
//! from a seed.

use crate::error::{Error, ErrorKind, Result};
use crate::sync::Arc;
use std::any::Any;
use std::fmt;

#[cfg(not(shuttle))]
use std::thread;

#[cfg(shuttle)]
use shuttle::thread;

pub use thread::ThreadId;

/// Returns the id of the calling thread, by which the thread can be recognised later.
#[must_use]
pub fn current_thread() -> ThreadId {
    thread::current().id()
}

/// The function that a thread runs.
pub type Task = Box<dyn FnOnce() + Send + 'static>;

/// Scheduling priority of a thread, which matters if there are more runnable threads than cores.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Priority {
    /// The priority of the thread that starts the new one.
    Same,
    /// Lower than the priority of threads that serve calls, but not so low that these threads can
    /// starve the new one. With equal priorities and few cores, a point read would spend most of
    /// its time waiting for a merge to release the processor, because a merge uses all the
    /// processor time that it gets.
    Background,
}

/// Runs each task on its own thread.
pub trait Executor: Send + Sync + fmt::Debug {
    /// Starts `task` on a new thread with this `name`, of which the kernel shows the first 15
    /// bytes.
    ///
    /// # Errors
    /// `Io` if the system refuses another thread, `Invalid` if `name` contains a zero byte; then
    /// `task` is dropped and does not run.
    fn spawn(&self, name: &str, priority: Priority, task: Task) -> Result<JoinHandle>;
}

/// An executor that the parts of the engine share.
pub type SharedExecutor = Arc<dyn Executor>;

/// A started thread. Dropping the handle detaches the thread, which continues to run.
#[must_use = "a thread that no other thread joins may outlive what it works on"]
pub struct JoinHandle {
    name: String,
    join: Box<dyn FnOnce() -> std::result::Result<(), Box<dyn Any + Send>> + Send>,
}

impl JoinHandle {
    /// Creates a handle, for a custom executor. `join` waits for the task. If the task panicked,
    /// `join` returns the payload of the panic as its error.
    pub fn new(
        name: impl Into<String>,
        join: impl FnOnce() -> std::result::Result<(), Box<dyn Any + Send>> + Send + 'static,
    ) -> Self {
        Self { name: name.into(), join: Box::new(join) }
    }

    /// Returns the thread's name.
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
    /// Creates a shared executor.
    #[must_use]
    pub fn shared() -> SharedExecutor {
        Arc::new(Self)
    }
}

/// The number that is added to the nice value of a background thread. Each step is a factor of
/// 1.25, so the thread gets a tenth of the processor time of a foreground thread on the same core.
#[cfg(all(target_os = "linux", not(shuttle)))]
const BACKGROUND_NICENESS: i32 = 10;

/// Lowers the priority of the calling thread. If the system refuses, the thread keeps its priority.
/// Only on Linux, which has a nice value per thread: elsewhere the call would lower the priority of
/// the whole process.
fn lower_priority() {
    #[cfg(all(target_os = "linux", not(shuttle)))]
    let _ = rustix::process::nice(BACKGROUND_NICENESS);
}

impl Executor for ThreadExecutor {
    fn spawn(&self, name: &str, priority: Priority, task: Task) -> Result<JoinHandle> {
        if name.contains('\0') {
            return Err(Error::invalid(format!("thread name {name:?} contains a zero byte")));
        }
        let task = move || {
            if priority == Priority::Background {
                lower_priority();
            }
            task();
        };
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
    use crate::sync::atomic::{AtomicBool, AtomicI32, Ordering};

    #[cfg(target_os = "linux")]
    #[test]
    fn only_a_background_thread_has_a_lower_priority() {
        let nice = |priority| {
            let found = Arc::new(AtomicI32::new(i32::MIN));
            let set = Arc::clone(&found);
            let task = Box::new(move || {
                // `nice(0)` changes nothing and returns the current value.
                set.store(rustix::process::nice(0).unwrap(), Ordering::SeqCst);
            });
            ThreadExecutor.spawn("nice", priority, task).unwrap().join().unwrap();
            found.load(Ordering::SeqCst)
        };
        let own = rustix::process::nice(0).unwrap();
        assert_eq!(nice(Priority::Same), own);
        assert_eq!(nice(Priority::Background), (own + BACKGROUND_NICENESS).min(19));
        assert_eq!(rustix::process::nice(0).unwrap(), own);
    }

    #[test]
    fn a_task_runs_under_its_name() {
        let ran = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&ran);
        let task = Box::new(move || {
            flag.store(thread::current().name() == Some("flusher"), Ordering::SeqCst);
        });
        let handle = ThreadExecutor.spawn("flusher", Priority::Same, task).unwrap();
        assert_eq!(handle.name(), "flusher");
        handle.join().unwrap();
        assert!(ran.load(Ordering::SeqCst));
    }

    #[test]
    fn a_panic_becomes_an_internal_error_with_its_message() {
        let task = Box::new(|| std::panic::resume_unwind(Box::new("out of memory")));
        let error =
            ThreadExecutor.spawn("merger", Priority::Same, task).unwrap().join().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert_eq!(error.message(), "thread merger panicked: out of memory");
    }

    #[test]
    fn a_name_with_a_zero_byte_is_refused() {
        let error = ThreadExecutor.spawn("a\0b", Priority::Same, Box::new(|| ())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
}
