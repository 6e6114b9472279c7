//! Virtual time for several threads: a clock that jumps to the next wake-up as soon as all threads
//! sleep on it, and the executor that registers the threads with it. Seconds of waiting take no
//! time, and the times that threads see do not depend on the machine.
//!
//! A thread that waits for another thread (on a lock, a condition variable, a join) counts as
//! awake, so time stands still while it waits. Threads that the executor did not start, such as the
//! test's own thread, may sleep while no thread of the executor runs.

use std::time::Duration;

use frondb_core::Result;
use frondb_core::clock::{Clock, Nanos};
use frondb_core::executor::{Executor, JoinHandle, Priority, Task, ThreadExecutor};
use frondb_core::sync::{Arc, Condvar, Mutex};

/// The clock; starts at zero.
#[derive(Debug, Default)]
pub struct VirtualClock {
    state: Mutex<VirtualState>,
    jumped: Condvar,
}

#[derive(Debug, Default)]
struct VirtualState {
    now: Nanos,
    /// Number of threads of the executor that have not ended.
    threads: usize,
    /// The times at which the sleeping threads wake up.
    wake_ups: Vec<Nanos>,
}

impl VirtualClock {
    /// Jumps if all threads sleep.
    fn jump(&self, state: &mut VirtualState) {
        if state.wake_ups.len() < state.threads {
            return;
        }
        let Some(next) = state.wake_ups.iter().copied().min() else { return };
        state.now = state.now.max(next);
        state.wake_ups.retain(|wake_up| *wake_up > next);
        self.jumped.notify_all();
    }

    fn change(&self, change: impl FnOnce(&mut VirtualState)) {
        let mut state = self.state.lock();
        change(&mut state);
        self.jump(&mut state);
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Nanos {
        self.state.lock().now
    }

    fn sleep(&self, length: Duration) {
        let mut state = self.state.lock();
        let until = state.now + length;
        state.wake_ups.push(until);
        self.jump(&mut state);
        while state.now < until {
            self.jumped.wait(&mut state);
        }
    }
}

/// Starts threads that are registered with a [`VirtualClock`].
#[derive(Debug)]
pub struct VirtualExecutor {
    clock: Arc<VirtualClock>,
}

impl VirtualExecutor {
    /// Creates an executor for threads that sleep on `clock`.
    #[must_use]
    pub fn new(clock: Arc<VirtualClock>) -> Self {
        Self { clock }
    }
}

/// A thread that has not ended.
struct Living(Arc<VirtualClock>);

impl Drop for Living {
    fn drop(&mut self) {
        self.0.change(|state| state.threads -= 1);
    }
}

impl Executor for VirtualExecutor {
    fn spawn(&self, name: &str, priority: Priority, task: Task) -> Result<JoinHandle> {
        // Count the thread before it runs, so that no time passes until it has begun.
        self.clock.state.lock().threads += 1;
        let living = Living(Arc::clone(&self.clock));
        let task = Box::new(move || {
            let _living = living;
            task();
        });
        ThreadExecutor.spawn(name, priority, task)
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn time_passes_while_all_threads_sleep() -> Result<()> {
        let clock = Arc::new(VirtualClock::default());
        clock.sleep(Duration::from_secs(5));
        let executor = VirtualExecutor::new(Arc::clone(&clock));
        let ends = Arc::new(Mutex::new(Vec::new()));
        let mut handles = Vec::new();
        for seconds in [3, 1, 2] {
            let (clock, ends) = (Arc::clone(&clock), Arc::clone(&ends));
            let task = move || {
                for _ in 0..6 / seconds {
                    clock.sleep(Duration::from_secs(seconds));
                    ends.lock().push((clock.now().0 / 1_000_000_000, seconds));
                }
            };
            handles.push(executor.spawn("sleeper", Priority::Same, Box::new(task))?);
        }
        handles.into_iter().try_for_each(JoinHandle::join)?;
        let mut ends = ends.lock().clone();
        ends.sort_unstable();
        let at = |ends: &[(u64, u64)], second| {
            ends.iter().filter(|end| end.0 == second).map(|end| end.1).collect::<Vec<_>>()
        };
        assert_eq!(at(&ends, 6), [1]);
        assert_eq!(at(&ends, 7), [1, 2]);
        assert_eq!(at(&ends, 8), [1, 3]);
        assert_eq!(at(&ends, 11), [1, 2, 3]);
        assert_eq!(clock.now(), Nanos(11_000_000_000));
        Ok(())
    }
}
