//! [`Readers`]: the threads that do the waiting of asynchronous calls.
//!
//! ```text
//!   submit -- waiting work, in order --+-- lookups: up to LOOKUPS_MAX at once, blocks read together
//!                                      +-- other work: one at a time
//! ```
//!
//! While threads read, further lookups gather, and the next thread takes many of them together, so
//! a few threads keep the device busy. The threads are started by the first calls that have to
//! wait: a program that makes no such call has none of them.
//!
//! Invariants. Work that was submitted is done, or refused with `Closed` by [`Readers::stop`]. No
//! lock is held while work is done, so a waker may make further calls. A thread has no pointer to
//! the open database, so the drop of the last handle is never left to a thread that it must join;
//! if a waker drops the last handle, the thread does not join itself.

mod lookup;

use std::collections::VecDeque;

use frondb_core::executor::{JoinHandle, Priority, SharedExecutor, ThreadId, current_thread};
use frondb_core::sync::{Arc, Condvar, Mutex};
use frondb_core::{Error, ErrorKind, Result};
use frondb_tree::ReadContext;

pub(crate) use lookup::LookupRequest;

/// Maximum number of threads. A thread reads the blocks of up to [`LOOKUPS_MAX`] lookups at once,
/// so more threads would help the processors more than the device.
const THREADS_MAX: usize = 4;

/// Maximum number of lookups that a thread takes at once. Their results come together, so more of
/// them would add to the latency of the first.
const LOOKUPS_MAX: usize = 32;

/// Work that is no lookup. It gets the error `Closed` if it must not begin.
type Call = Box<dyn FnOnce(Result<()>) + Send>;

/// Work of an asynchronous call.
enum Work {
    Lookup(LookupRequest),
    Call(Call),
}

/// The reader threads of an open database and the work that waits for them.
pub(crate) struct Readers {
    state: Mutex<ReadersState>,
    /// Notified when work is added, and by the stop.
    changed: Condvar,
    reads: Arc<ReadContext>,
    executor: SharedExecutor,
}

#[derive(Default)]
struct ReadersState {
    waiting: VecDeque<Work>,
    /// Threads that wait for work.
    idle: usize,
    threads: Vec<JoinHandle>,
    /// The threads that run, by id.
    running: Vec<ThreadId>,
    is_stopped: bool,
}

impl Readers {
    pub(crate) fn new(reads: Arc<ReadContext>, executor: SharedExecutor) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), changed: Condvar::new(), reads, executor })
    }

    /// Lets a thread look up a key.
    pub(crate) fn look_up(self: &Arc<Self>, request: LookupRequest) {
        self.submit(Work::Lookup(request));
    }

    /// Lets a thread do `call`, which gets an error if it must not begin.
    pub(crate) fn call(self: &Arc<Self>, call: impl FnOnce(Result<()>) + Send + 'static) {
        self.submit(Work::Call(Box::new(call)));
    }

    fn submit(self: &Arc<Self>, work: Work) {
        let mut state = self.state.lock();
        if state.is_stopped {
            drop(state);
            return work.refuse(closed());
        }
        state.waiting.push_back(work);
        if state.idle < state.waiting.len()
            && state.threads.len() < THREADS_MAX
            && let Err(error) = self.start_thread(&mut state)
            && state.threads.is_empty()
        {
            let refused = std::mem::take(&mut state.waiting);
            drop(state);
            refused.into_iter().for_each(|work| work.refuse(error.clone()));
            return;
        }
        drop(state);
        self.changed.notify_one();
    }

    fn start_thread(self: &Arc<Self>, state: &mut ReadersState) -> Result<()> {
        let name = format!("frondb-read-{}", state.threads.len());
        let readers = Arc::clone(self);
        let task = Box::new(move || readers.run());
        state.threads.push(self.executor.spawn(&name, Priority::Same, task)?);
        Ok(())
    }

    /// The loop of a thread.
    fn run(&self) {
        self.state.lock().running.push(current_thread());
        while let Some(taken) = self.take() {
            // Unwind safety: a lookup changes nothing. Work that a panic ends drops its completers,
            // whose futures then return an error.
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                self.perform(taken);
            }));
            if done.is_err() {
                tracing::error!("the work of an asynchronous call panicked");
            }
        }
        self.state.lock().running.retain(|thread| *thread != current_thread());
    }

    /// Waits for work and takes it; `None` once the threads are stopped. Lookups are taken
    /// together, up to the first work of another kind.
    fn take(&self) -> Option<Vec<Work>> {
        let mut state = self.state.lock();
        loop {
            if state.is_stopped {
                return None;
            }
            if let Some(first) = state.waiting.pop_front() {
                let mut taken = vec![first];
                while matches!(taken[0], Work::Lookup(_))
                    && taken.len() < LOOKUPS_MAX
                    && let Some(next) = state.waiting.pop_front_if(|w| matches!(w, Work::Lookup(_)))
                {
                    taken.push(next);
                }
                return Some(taken);
            }
            state.idle += 1;
            self.changed.wait(&mut state);
            state.idle -= 1;
        }
    }

    fn perform(&self, taken: Vec<Work>) {
        let mut requests = Vec::with_capacity(taken.len());
        for work in taken {
            match work {
                Work::Lookup(request) => requests.push(request),
                Work::Call(call) => call(self.reads.health.check_open()),
            }
        }
        lookup::perform(&self.reads, requests);
    }

    /// Stops the threads, and refuses the work that waits. Returns when the threads have ended; if
    /// the caller is one of them, in a waker, returns at once.
    pub(crate) fn stop(&self) {
        let (refused, threads, is_reader) = {
            let mut state = self.state.lock();
            state.is_stopped = true;
            let threads = std::mem::take(&mut state.threads);
            let is_reader = state.running.contains(&current_thread());
            (std::mem::take(&mut state.waiting), threads, is_reader)
        };
        self.changed.notify_all();
        refused.into_iter().for_each(|work| work.refuse(closed()));
        if is_reader {
            return;
        }
        for thread in threads {
            if let Err(error) = thread.join() {
                tracing::error!(%error, "a reader thread failed");
            }
        }
    }
}

impl Work {
    fn refuse(self, error: Error) {
        match self {
            Self::Lookup(request) => request.refuse(error),
            Self::Call(call) => call(Err(error)),
        }
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the database was closed")
}
