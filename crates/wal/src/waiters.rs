//! The threads that wait for a sync of the log. Each has its own condition variable.
//!
//! With a single condition variable, every sync would wake every waiter, also the threads whose
//! records came too late for that sync, and each would take the log's lock to find out: with 16
//! committing threads, nine context switches per commit instead of two. Here a sync wakes the
//! threads whose records it made durable, which no longer need the lock, and one other thread,
//! which leads the next sync.
//!
//! # Invariant
//! A queued thread is woken by the next sync that ends, when records are abandoned, or when the log
//! is poisoned. Therefore, while the queue is not empty, a sync is under way, or a thread that was
//! woken with [`Woken::Recheck`] has not checked the state yet. A thread that checks the state
//! either leads a sync, queues behind one, or returns because of an event that woke all queued
//! threads.

use frondb_core::Lsn;
use frondb_core::sync::{Arc, Condvar, Mutex};

/// Why a waiter was woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Woken {
    /// The thread's record is durable.
    Durable,
    /// The state has changed: the thread must check it again, and lead a sync if none is under way.
    Recheck,
}

/// Wakes one thread, once.
#[derive(Debug, Default)]
pub(crate) struct Waiter {
    woken: Mutex<Option<Woken>>,
    changed: Condvar,
}

impl Waiter {
    /// Waits to be woken. REQUIRES: the caller does not hold the log's lock.
    pub(crate) fn wait(&self) -> Woken {
        let mut woken = self.woken.lock();
        loop {
            if let Some(woken) = *woken {
                return woken;
            }
            self.changed.wait(&mut woken);
        }
    }

    fn wake(&self, how: Woken) {
        *self.woken.lock() = Some(how);
        self.changed.notify_one();
    }
}

/// The queue of waiting threads. Guarded by the log's lock.
#[derive(Debug, Default)]
pub(crate) struct Waiters(Vec<(Lsn, Arc<Waiter>)>);

impl Waiters {
    /// Queues a waiter for the record that ends at `lsn`.
    pub(crate) fn join(&mut self, lsn: Lsn) -> Arc<Waiter> {
        let waiter = Arc::new(Waiter::default());
        self.0.push((lsn, Arc::clone(&waiter)));
        waiter
    }

    /// Removes the waiters whose records are durable, and the first other waiter, which leads the
    /// next sync and is woken before them.
    pub(crate) fn after_sync(&mut self, durable: Lsn) -> Wakeups {
        let mut wakeups = Vec::with_capacity(self.0.len());
        if let Some(next) = self.0.iter().position(|(lsn, _)| *lsn > durable) {
            wakeups.push((Woken::Recheck, self.0.remove(next).1));
        }
        let synced = self.0.extract_if(.., |(lsn, _)| *lsn <= durable);
        wakeups.extend(synced.map(|(_, waiter)| (Woken::Durable, waiter)));
        Wakeups(wakeups)
    }

    /// Removes all waiters. Each checks the state itself after it is woken.
    pub(crate) fn take_all(&mut self) -> Wakeups {
        Wakeups(self.0.drain(..).map(|(_, waiter)| (Woken::Recheck, waiter)).collect())
    }
}

/// Waiters to wake once the log's lock is free.
#[must_use]
#[derive(Debug)]
pub(crate) struct Wakeups(Vec<(Woken, Arc<Waiter>)>);

impl Wakeups {
    /// Wakes the waiters in order.
    pub(crate) fn wake(self) {
        for (how, waiter) in self.0 {
            waiter.wake(how);
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    fn outcomes(wakeups: &Wakeups) -> Vec<Woken> {
        wakeups.0.iter().map(|(how, _)| *how).collect()
    }

    #[test]
    fn a_sync_wakes_its_waiters_and_the_next_leader() {
        let mut waiters = Waiters::default();
        let places: Vec<_> = [30, 10, 20, 40].map(|lsn| waiters.join(Lsn(lsn))).to_vec();
        let wakeups = waiters.after_sync(Lsn(20));
        assert_eq!(outcomes(&wakeups), [Woken::Recheck, Woken::Durable, Woken::Durable]);
        wakeups.wake();
        assert_eq!(places[0].wait(), Woken::Recheck);
        assert_eq!([&places[1], &places[2]].map(|place| place.wait()), [Woken::Durable; 2]);
        assert_eq!(outcomes(&waiters.after_sync(Lsn(50))), [Woken::Durable]);
        assert_eq!(outcomes(&waiters.after_sync(Lsn(50))), []);
    }

    #[test]
    fn after_a_failure_every_waiter_rechecks() {
        let mut waiters = Waiters::default();
        let places = [10, 20].map(|lsn| waiters.join(Lsn(lsn)));
        waiters.take_all().wake();
        assert_eq!(places.map(|place| place.wait()), [Woken::Recheck; 2]);
        assert_eq!(outcomes(&waiters.take_all()), []);
    }
}
