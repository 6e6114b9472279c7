//! Those who wait for a sync of the log, each with a place of its own to be woken at.
//!
//! One condition for all would wake every waiter at every sync, also those whose records came too late
//! for it, and have each take the log's lock to find out: with 16 threads that commit, nine switches of
//! threads a commit instead of two. Here a sync wakes those it was for, who need no lock any more, and
//! one of the others, who leads the next sync.
//!
//! # Invariant
//! Who is in the queue is woken by the next sync that ends, by records given up, or by the poison; so
//! while the queue is not empty a sync is under way, or one who was told to [`Woken::Look`] has not
//! looked yet. Whoever looks either leads a sync, or queues behind one, or returns because of
//! something that woke all.

use frondb_core::Lsn;
use frondb_core::sync::{Arc, Condvar, Mutex};

/// What a waiter is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Woken {
    /// Its record is durable.
    Durable,
    /// Something has changed: it must look at the log's state, and lead if nobody does.
    Look,
}

/// A place to be woken at, once.
#[derive(Debug, Default)]
pub(crate) struct Waiter {
    woken: Mutex<Option<Woken>>,
    changed: Condvar,
}

impl Waiter {
    /// Waits to be woken. The log's lock must not be held.
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

/// The queue; under the log's lock.
#[derive(Debug, Default)]
pub(crate) struct Waiters(Vec<(Lsn, Arc<Waiter>)>);

impl Waiters {
    /// Queues one who waits for the record that ends at `lsn`.
    pub(crate) fn join(&mut self, lsn: Lsn) -> Arc<Waiter> {
        let waiter = Arc::new(Waiter::default());
        self.0.push((lsn, Arc::clone(&waiter)));
        waiter
    }

    /// Takes out those whose records are durable, and before them the one who leads next: the first
    /// of the others.
    pub(crate) fn after_sync(&mut self, durable: Lsn) -> Wakeups {
        let mut wakeups = Vec::with_capacity(self.0.len());
        if let Some(next) = self.0.iter().position(|(lsn, _)| *lsn > durable) {
            wakeups.push((Woken::Look, self.0.remove(next).1));
        }
        let synced = self.0.extract_if(.., |(lsn, _)| *lsn <= durable);
        wakeups.extend(synced.map(|(_, waiter)| (Woken::Durable, waiter)));
        Wakeups(wakeups)
    }

    /// Takes all out, to look for themselves.
    pub(crate) fn all(&mut self) -> Wakeups {
        Wakeups(self.0.drain(..).map(|(_, waiter)| (Woken::Look, waiter)).collect())
    }
}

/// Those who are to be woken, once the log's lock is free.
#[must_use]
#[derive(Debug)]
pub(crate) struct Wakeups(Vec<(Woken, Arc<Waiter>)>);

impl Wakeups {
    /// Wakes them, in their order.
    pub(crate) fn wake(self) {
        for (how, waiter) in self.0 {
            waiter.wake(how);
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    fn told(wakeups: &Wakeups) -> Vec<Woken> {
        wakeups.0.iter().map(|(how, _)| *how).collect()
    }

    #[test]
    fn a_sync_wakes_those_it_was_for_and_one_who_leads_the_next() {
        let mut waiters = Waiters::default();
        let places: Vec<_> = [30, 10, 20, 40].map(|lsn| waiters.join(Lsn(lsn))).to_vec();
        let wakeups = waiters.after_sync(Lsn(20));
        assert_eq!(told(&wakeups), [Woken::Look, Woken::Durable, Woken::Durable]);
        wakeups.wake();
        assert_eq!(places[0].wait(), Woken::Look);
        assert_eq!([&places[1], &places[2]].map(|place| place.wait()), [Woken::Durable; 2]);
        assert_eq!(told(&waiters.after_sync(Lsn(50))), [Woken::Durable]);
        assert_eq!(told(&waiters.after_sync(Lsn(50))), []);
    }

    #[test]
    fn after_a_failure_everyone_looks() {
        let mut waiters = Waiters::default();
        let places = [10, 20].map(|lsn| waiters.join(Lsn(lsn)));
        waiters.all().wake();
        assert_eq!(places.map(|place| place.wait()), [Woken::Look; 2]);
        assert_eq!(told(&waiters.all()), []);
    }
}
