//! Threads that make requests of one size, each thread one request at a time, at shuffled offsets.
//!
//! The threads begin together, once all of them have started. A thread ends with its first request
//! that ends after the deadline. `sample` counts the requests of all threads until the first thread
//! ends.

use std::time::Duration;

use frondb_core::clock::{Nanos, SharedClock};
use frondb_core::executor::Priority;
use frondb_core::mem::Buf;
use frondb_core::prng::Prng;
use frondb_core::sync::atomic::{AtomicUsize, Ordering};
use frondb_core::sync::{Arc, Condvar, Mutex};
use frondb_core::{Error, Result};
use frondb_device::SharedFile;

use crate::file::{random_buf, stamp};
use crate::machine::Machine;
use crate::measurement::Operation;

/// Offsets of all requests of one size in the file: each is used once before any is used again.
#[derive(Debug)]
pub(crate) struct Offsets {
    bytes: u64,
    /// The offsets divided by `bytes`, shuffled.
    order: Vec<u32>,
    next: AtomicUsize,
}

impl Offsets {
    /// Creates the offsets of requests of `bytes` in a file of `file_bytes`.
    pub(crate) fn new(bytes: u64, file_bytes: u64, seed: u64) -> Self {
        let count = u32::try_from(file_bytes / bytes).unwrap_or(u32::MAX);
        let mut order: Vec<u32> = (0..count).collect();
        Prng::new(seed).shuffle(&mut order);
        Self { bytes, order, next: AtomicUsize::new(0) }
    }

    /// Returns the size of a request, bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn take(&self) -> u64 {
        let place = self.next.fetch_add(1, Ordering::Relaxed) % self.order.len().max(1);
        u64::from(self.order.get(place).copied().unwrap_or(0)) * self.bytes
    }
}

/// The data that the threads share.
struct Shared {
    file: SharedFile,
    clock: SharedClock,
    operation: Operation,
    offsets: Arc<Offsets>,
    time: Duration,
    start: Start,
    outcome: Mutex<Outcome>,
}

/// The results of the threads.
#[derive(Default)]
pub(crate) struct Done {
    /// For each thread, the times of its requests in order.
    pub(crate) times: Vec<Vec<Duration>>,
    /// Total time in which the threads were runnable but had no processor.
    pub(crate) processor_wait: Duration,
}

#[derive(Default)]
struct Outcome {
    done: Done,
    error: Option<Error>,
    /// Buffers, kept for the next load.
    buffers: Vec<Buf>,
}

/// Requests of one kind.
pub(crate) struct Load<'a> {
    pub(crate) file: &'a SharedFile,
    pub(crate) operation: Operation,
    pub(crate) threads: usize,
    pub(crate) offsets: &'a Arc<Offsets>,
    /// Period in which the threads begin requests.
    pub(crate) time: Duration,
}

impl Load<'_> {
    /// Makes the requests. `buffers` are kept for the next load.
    ///
    /// # Errors
    /// The error of the first request that failed; `Io` if the system refuses a thread.
    pub(crate) fn run(&self, machine: &Machine, buffers: &mut Vec<Buf>) -> Result<Done> {
        while buffers.len() < self.threads {
            buffers.push(random_buf(buffers.len() as u64 + 2));
        }
        let shared = Arc::new(Shared {
            file: Arc::clone(self.file),
            clock: Arc::clone(&machine.clock),
            operation: self.operation,
            offsets: Arc::clone(self.offsets),
            time: self.time,
            start: Start::new(self.threads),
            outcome: Mutex::default(),
        });
        let mut handles = Vec::with_capacity(self.threads);
        let mut refused = None;
        for buf in buffers.drain(buffers.len() - self.threads..) {
            let of_thread = Arc::clone(&shared);
            let task = Box::new(move || of_thread.work(buf));
            match machine.executor.spawn("frondb-device", Priority::Same, task) {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            }
        }
        if refused.is_some() {
            shared.start.give_up();
        }
        let joined: Vec<Result<()>> = handles.into_iter().map(|handle| handle.join()).collect();
        let outcome = std::mem::take(&mut *shared.outcome.lock());
        buffers.extend(outcome.buffers);
        if let Some(error) = refused.or(outcome.error) {
            return Err(error);
        }
        joined.into_iter().collect::<Result<()>>()?;
        Ok(outcome.done)
    }
}

impl Shared {
    /// Waits for the start, makes the requests of one thread, and adds their times to the outcome.
    fn work(&self, mut buf: Buf) {
        let mut times = Vec::new();
        let waited = self.clock.processor_wait();
        let made = match self.start.wait(&self.clock) {
            Some(start) => self.requests(start, &mut buf, &mut times),
            None => Ok(()),
        };
        let waited = self.clock.processor_wait().saturating_sub(waited);
        let mut outcome = self.outcome.lock();
        outcome.done.times.push(times);
        outcome.done.processor_wait += waited;
        outcome.buffers.push(buf);
        if let Err(error) = made {
            outcome.error.get_or_insert(error);
        }
    }

    fn requests(&self, start: Nanos, buf: &mut Buf, times: &mut Vec<Duration>) -> Result<()> {
        let end = start + self.time;
        let len = usize::try_from(self.offsets.bytes).unwrap_or(usize::MAX).min(buf.len());
        let mut before = start;
        loop {
            let offset = self.offsets.take();
            let request = &mut buf[..len];
            match self.operation {
                Operation::Read => self.file.read_exact_at(offset, request)?,
                Operation::Write => {
                    stamp(request, before.0);
                    self.file.write_at(offset, request)?;
                }
            }
            let now = self.clock.now();
            times.push(now - before);
            if now >= end {
                return Ok(());
            }
            before = now;
        }
    }
}

/// A barrier: all threads begin at the same time.
struct Start {
    state: Mutex<StartState>,
    changed: Condvar,
}

struct StartState {
    missing: usize,
    started: Option<Nanos>,
    given_up: bool,
}

impl Start {
    fn new(threads: usize) -> Self {
        let state = StartState { missing: threads, started: None, given_up: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Waits, and returns the common start time; `None` after [`give_up`](Self::give_up).
    fn wait(&self, clock: &SharedClock) -> Option<Nanos> {
        let mut state = self.state.lock();
        state.missing -= 1;
        if state.missing == 0 {
            state.started = Some(clock.now());
            self.changed.notify_all();
        }
        while state.started.is_none() && !state.given_up {
            self.changed.wait(&mut state);
        }
        state.started
    }

    /// Ends the wait of the threads without a start, because not all threads could be started.
    fn give_up(&self) {
        self.state.lock().given_up = true;
        self.changed.notify_all();
    }
}
