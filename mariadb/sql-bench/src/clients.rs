//! Concurrent clients, each in its own thread: runs them for a fixed time and measures the
//! latencies of their transactions.

use std::thread;
use std::time::{Duration, Instant};

use frondb_bench::measure::Histogram;
use frondb_bench::{Error, Result};
use frondb_core::sync::atomic::{AtomicBool, Ordering};

use crate::session::Conflicts;

/// One client with its connection.
pub(crate) trait Worker: Send {
    /// Runs one transaction and repeats it after each conflict until it succeeds; returns its kind.
    fn step(&mut self) -> Result<usize>;

    /// Number of conflicts so far.
    fn conflicts(&self) -> Conflicts;
}

/// What clients did in a period. A latency includes the repetitions after conflicts.
pub(crate) struct Outcome {
    /// Seconds from the start to the end of the last transaction.
    pub(crate) seconds: f64,
    /// Latencies of all transactions.
    pub(crate) all: Histogram,
    /// Latencies of the transactions of each kind.
    pub(crate) kinds: Vec<Histogram>,
    /// Transactions that a conflict ended and that were then repeated.
    pub(crate) conflicts: Conflicts,
}

impl Outcome {
    /// The outcome of clients that have not started yet.
    pub(crate) fn empty(kinds: usize) -> Self {
        let kinds = vec![Histogram::default(); kinds];
        Self { seconds: 0.0, all: Histogram::default(), kinds, conflicts: [0; 3] }
    }

    /// Transactions a second.
    pub(crate) fn per_s(&self) -> f64 {
        self.all.count() as f64 / self.seconds.max(1e-9)
    }

    /// Adds the outcome of the same clients in another period: times and counts add up.
    pub(crate) fn then(&mut self, other: &Self) {
        self.seconds += other.seconds;
        self.beside(other);
    }

    /// Adds the outcome of other clients in the same period: only counts add up.
    fn beside(&mut self, other: &Self) {
        self.all.merge(&other.all);
        for (mine, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            mine.merge(theirs);
        }
        for (mine, theirs) in self.conflicts.iter_mut().zip(other.conflicts) {
            *mine += theirs;
        }
    }
}

/// Lets all clients work for `seconds`. The first error ends the work of all.
pub(crate) fn run(workers: &mut [Box<dyn Worker>], kinds: usize, seconds: f64) -> Result<Outcome> {
    let end = Duration::from_secs_f64(seconds);
    let (begin, stop) = (Instant::now(), AtomicBool::new(false));
    let panicked = |_| Err(Error::Engine("a client panicked".to_owned()));
    let work = |worker: &mut Box<dyn Worker>| {
        let outcome = drive(worker.as_mut(), kinds, begin, end, &stop);
        if outcome.is_err() {
            stop.store(true, Ordering::Relaxed);
        }
        outcome
    };
    let outcomes: Vec<Result<Outcome>> = thread::scope(|scope| {
        let begin = |worker| scope.spawn(|| work(worker));
        let begun: Vec<_> = workers.iter_mut().map(begin).collect();
        begun.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
    });
    let mut sum = Outcome::empty(kinds);
    for outcome in outcomes {
        sum.beside(&outcome?);
    }
    sum.seconds = begin.elapsed().as_secs_f64();
    Ok(sum)
}

fn drive(
    worker: &mut dyn Worker,
    kinds: usize,
    begin: Instant,
    end: Duration,
    stop: &AtomicBool,
) -> Result<Outcome> {
    let mut outcome = Outcome::empty(kinds);
    let before = worker.conflicts();
    let mut now = Instant::now();
    while now - begin < end && !stop.load(Ordering::Relaxed) {
        let kind = worker.step()?;
        let after = Instant::now();
        outcome.all.record(after - now);
        outcome.kinds[kind].record(after - now);
        now = after;
    }
    let after = worker.conflicts();
    outcome.conflicts = std::array::from_fn(|kind| after[kind] - before[kind]);
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs kinds 0 and 1 alternately, and fails at its step `fails_at`.
    struct Fake {
        steps: u64,
        fails_at: u64,
    }

    impl Worker for Fake {
        fn step(&mut self) -> Result<usize> {
            self.steps += 1;
            match self.steps == self.fails_at {
                true => Err(Error::Wrong("as planned".to_owned())),
                false => Ok((self.steps % 2) as usize),
            }
        }

        fn conflicts(&self) -> Conflicts {
            [self.steps / 2, 0, 0]
        }
    }

    fn fakes(fails_at: [u64; 2]) -> Vec<Box<dyn Worker>> {
        let fake = |fails_at| Box::new(Fake { steps: 0, fails_at }) as Box<dyn Worker>;
        fails_at.map(fake).into_iter().collect()
    }

    #[test]
    fn kinds_and_repetitions_are_counted() {
        let mut workers = fakes([0, 0]);
        let mut outcome = run(&mut workers, 2, 0.001).unwrap();
        let kinds: u64 = outcome.kinds.iter().map(Histogram::count).sum();
        assert_eq!(outcome.all.count(), kinds);
        let conflicts: u64 = workers.iter().map(|worker| worker.conflicts()[0]).sum();
        assert_eq!(outcome.conflicts, [conflicts, 0, 0]);
        let (count, seconds) = (outcome.all.count(), outcome.seconds);
        let more = run(&mut workers, 2, 0.001).unwrap();
        outcome.then(&more);
        assert_eq!(outcome.all.count(), count + more.all.count());
        assert_eq!(outcome.seconds, seconds + more.seconds);
    }

    /// If one client's error did not stop the other client, the test would take an hour.
    #[test]
    fn an_error_of_one_client_ends_all() {
        assert!(run(&mut fakes([0, 3]), 2, 3_600.0).is_err());
    }
}
