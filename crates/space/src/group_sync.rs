//! Group sync: one fsync for all threads that request it at the same time.
//!
//! A flush and a merge that finish together would each sync the same file, and the second sync
//! would wait for the first in the kernel. Instead one thread leads and the others wait.
//!
//! The naive version, "wait for the running sync", is wrong: that sync may have begun before the
//! caller's last write and promises nothing about it. So each caller needs a sync that *starts*
//! after the call:
//!
//! ```text
//!   A  |--- sync 1 ---|
//!   B      write, call |--- sync 2 ---|     B leads the next one
//!   C            write, call ~~~~~~~~~|     C waits for sync 2 too: it started after C's call
//! ```
//!
//! A failed sync poisons the group forever: the kernel may have dropped the pages that it could not
//! write and marked them clean, so a successful second sync proves nothing.

use frondb_core::sync::{Condvar, Mutex, OnceLock};
use frondb_core::{Error, ErrorKind, Result};

/// The group of threads that share syncs; see the module documentation.
#[derive(Default)]
pub(crate) struct GroupSync {
    state: Mutex<SyncState>,
    done: Condvar,
    /// The error of the failed sync.
    poison: OnceLock<Error>,
}

#[derive(Default)]
struct SyncState {
    /// Number of the last sync that started.
    started: u64,
    /// Number of the last sync that succeeded.
    finished: u64,
    running: bool,
}

impl GroupSync {
    /// Returns when a call of `work` that began after this call has succeeded. Fails once any call
    /// of `work` has failed. All callers pass the same `work`.
    pub(crate) fn sync(&self, work: impl Fn() -> Result<()>) -> Result<()> {
        let mut state = self.state.lock();
        let needed = state.started + 1;
        loop {
            self.check()?;
            if state.finished >= needed {
                return Ok(());
            }
            if state.running {
                self.done.wait(&mut state);
                continue;
            }
            state.running = true;
            state.started += 1;
            let number = state.started;
            drop(state);
            let result = work();
            state = self.state.lock();
            state.running = false;
            match result {
                Ok(()) => state.finished = number,
                Err(error) => drop(self.poison.set(poisoned(error))),
            }
            self.done.notify_all();
        }
    }

    /// Returns the error of the failed sync, if one failed.
    pub(crate) fn check(&self) -> Result<()> {
        self.poison.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Returns the number of successful syncs so far.
    pub(crate) fn count(&self) -> u64 {
        self.state.lock().finished
    }
}

fn poisoned(error: Error) -> Error {
    error
        .with_kind(ErrorKind::Poisoned)
        .context("a failed sync left the data files in an unknown state; reopen the database")
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn a_caller_gets_a_sync_that_began_after_its_write() {
        let group = GroupSync::default();
        // A sync makes durable everything written before it began.
        let (written, durable) = (AtomicU64::new(0), AtomicU64::new(0));
        let work = || {
            let seen = written.load(Ordering::SeqCst);
            std::thread::yield_now();
            durable.fetch_max(seen, Ordering::SeqCst);
            Ok(())
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let mine = written.fetch_add(1, Ordering::SeqCst) + 1;
                        group.sync(work).unwrap();
                        assert!(durable.load(Ordering::SeqCst) >= mine);
                    }
                });
            }
        });
        assert!(group.count() <= 2000);
    }

    #[test]
    fn a_failed_sync_is_never_repeated() {
        let group = GroupSync::default();
        group.sync(|| Ok(())).unwrap();
        let error = group.sync(|| Err(Error::new(ErrorKind::Io, "bad sector"))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Poisoned);
        assert!(error.message().contains("bad sector"));
        let error = group.sync(|| panic!("a failed sync was repeated")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Poisoned);
        assert_eq!(group.check().unwrap_err().kind(), ErrorKind::Poisoned);
    }
}

#[cfg(test)]
#[cfg(shuttle)]
mod schedules {
    use super::*;
    use frondb_core::sync::Arc;
    use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use shuttle::thread;

    /// Tests three callers, each with a write of its own, and a device whose second sync may fail:
    /// a caller that gets `Ok` has a durable write, any other caller gets the poison, and none
    /// waits forever.
    fn callers(fails: bool) {
        let group = Arc::new(GroupSync::default());
        let (written, durable) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (calls, inside) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let threads: Vec<_> = (0..3)
            .map(|caller| {
                let (group, written) = (Arc::clone(&group), Arc::clone(&written));
                let (durable, calls) = (Arc::clone(&durable), Arc::clone(&calls));
                let inside = Arc::clone(&inside);
                thread::spawn(move || {
                    let mine = 1 << caller;
                    written.fetch_or(mine, Ordering::SeqCst);
                    let result = group.sync(|| {
                        assert!(
                            !inside.swap(true, Ordering::SeqCst),
                            "two syncs ran at the same time"
                        );
                        let seen = written.load(Ordering::SeqCst);
                        thread::yield_now();
                        let call = calls.fetch_add(1, Ordering::SeqCst);
                        inside.store(false, Ordering::SeqCst);
                        if fails && call == 1 {
                            return Err(Error::new(ErrorKind::Io, "bad sector"));
                        }
                        durable.fetch_or(seen, Ordering::SeqCst);
                        Ok(())
                    });
                    match result {
                        Ok(()) => assert_ne!(durable.load(Ordering::SeqCst) & mine, 0),
                        Err(error) => assert_eq!(error.kind(), ErrorKind::Poisoned),
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(calls.load(Ordering::SeqCst) <= 3);
    }

    #[test]
    fn every_schedule_keeps_the_promise() {
        shuttle::check_random(|| callers(false), 5_000);
        shuttle::check_random(|| callers(true), 5_000);
        shuttle::check_pct(|| callers(true), 5_000, 3);
    }
}
