//! The threads on which calls of the engine run while JavaScript goes on.
//!
//! The addon does not use libuv's pool. That pool has four threads for the whole process, and a
//! transaction that waits for a lock would keep one: four waiting transactions would stop the
//! commit that releases their locks, and every file and name lookup of the program with it.
//!
//! | lane | threads | its jobs |
//! |---|---|---|
//! | [`READS`] | 4 | gets and scans without locks, which wait for the disk only |
//! | [`WRITES`] | 64 | commits of batches, which may wait for locks of transactions |
//! | [`CALLS`] | as many as jobs | calls of transactions, one at a time for each; opens, backups |
//!
//! So a commit of a transaction always gets a thread: the number of jobs in [`CALLS`] is that of
//! transactions with a call in progress, plus long calls. Threads start when a job finds none idle,
//! and end after ten seconds without a job.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// How long a thread waits for its next job.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// Jobs of one kind, and the threads that run them in the order in which they came.
pub(crate) struct Lane {
    name: &'static str,
    threads_max: usize,
    state: Mutex<State>,
    added: Condvar,
}

struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

pub(crate) static READS: Lane = Lane::new("frondb-reads", 4);
pub(crate) static WRITES: Lane = Lane::new("frondb-writes", 64);
pub(crate) static CALLS: Lane = Lane::new("frondb-calls", usize::MAX);

impl Lane {
    const fn new(name: &'static str, threads_max: usize) -> Self {
        let state = State { jobs: VecDeque::new(), threads: 0, idle: 0 };
        Self { name, threads_max, state: Mutex::new(state), added: Condvar::new() }
    }

    /// Runs a job on a thread of the lane. Returns the job if no thread can be started and none
    /// will become free.
    pub(crate) fn run(&'static self, job: Job) -> Result<(), Job> {
        let mut state = self.state.lock();
        state.jobs.push_back(job);
        if state.idle >= state.jobs.len() {
            drop(state);
            self.added.notify_one();
            return Ok(());
        }
        if state.threads >= self.threads_max {
            return Ok(());
        }
        let started = std::thread::Builder::new()
            .name(self.name.to_owned())
            .spawn(move || self.serve())
            .is_ok();
        if started {
            state.threads += 1;
        } else if state.threads == 0 {
            return state.jobs.pop_back().map_or(Ok(()), Err);
        }
        // Otherwise a thread that exists takes the job later.
        Ok(())
    }

    /// Returns how many threads the lane has.
    pub(crate) fn threads(&self) -> usize {
        self.state.lock().threads
    }

    fn serve(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                job();
                state = self.state.lock();
                continue;
            }
            state.idle += 1;
            let waited = self.added.wait_for(&mut state, IDLE_TIMEOUT);
            state.idle -= 1;
            if waited.timed_out() && state.jobs.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }
}
