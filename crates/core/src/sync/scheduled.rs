//! The locks of [`sync`](super) under `--cfg shuttle`: parking_lot's API over shuttle's locks. At
//! each acquisition, the scheduler may switch threads.
//!
//! Poison is ignored, because a panic under shuttle ends the whole run. A guard has shuttle's guard
//! in an `Option`, because shuttle's condition variable takes a guard by value, and this API takes
//! a reference. The option is empty only inside [`Condvar::wait`] and [`Condvar::wait_for`], where
//! no other code can see it.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, TryLockError};
use std::time::Duration;

use shuttle::rand::Rng;
use shuttle::sync as inner;

pub use shuttle::sync::{Arc, Weak, atomic};

/// Mutual exclusion.
#[derive(Default)]
pub struct Mutex<T: ?Sized>(inner::Mutex<T>);

/// Access to the value of a [`Mutex`]. The drop unlocks the mutex.
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a inner::Mutex<T>,
    held: Option<inner::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    /// Creates an unlocked mutex with `value`.
    #[track_caller]
    pub const fn new(value: T) -> Self {
        Self(inner::Mutex::new(value))
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        MutexGuard { mutex: &self.0, held: Some(held) }
    }

    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let held = match self.0.try_lock() {
            Ok(held) => held,
            Err(TryLockError::Poisoned(held)) => held.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(MutexGuard { mutex: &self.0, held: Some(held) })
    }

    /// Returns the value without locking, because `&mut self` excludes other access.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Do not lock: that would be a scheduling point, and a debug output must not change the
        // schedule.
        f.write_str("Mutex { .. }")
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.held.as_deref().unwrap_or_else(|| unreachable!("the guard is lent to a condvar"))
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.held.as_deref_mut().unwrap_or_else(|| unreachable!("the guard is lent to a condvar"))
    }
}

/// Many readers or one writer.
#[derive(Default)]
pub struct RwLock<T: ?Sized>(inner::RwLock<T>);

/// Shared access to the value of a [`RwLock`].
pub type RwLockReadGuard<'a, T> = inner::RwLockReadGuard<'a, T>;

/// Exclusive access to the value of a [`RwLock`].
pub type RwLockWriteGuard<'a, T> = inner::RwLockWriteGuard<'a, T>;

impl<T> RwLock<T> {
    /// Creates an unlocked lock with `value`.
    #[track_caller]
    pub const fn new(value: T) -> Self {
        Self(inner::RwLock::new(value))
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits until no writer holds the lock.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no thread holds the lock.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns shared access if no writer holds the lock.
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        match self.0.try_read() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Returns exclusive access if no thread holds the lock.
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        match self.0.try_write() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Returns the value without locking.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RwLock { .. }")
    }
}

/// A condition variable, for waits until the value of a [`Mutex`] has changed.
#[derive(Default)]
pub struct Condvar(inner::Condvar);

/// The result of a wait with a timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether the wait timed out.
    #[must_use]
    pub fn timed_out(self) -> bool {
        self.0
    }
}

impl Condvar {
    /// Creates a condition variable.
    #[must_use]
    #[track_caller]
    pub const fn new() -> Self {
        Self(inner::Condvar::new())
    }

    /// Unlocks the mutex, waits for a notification, and locks the mutex again.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        if let Some(held) = guard.held.take() {
            guard.held = Some(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Waits as [`Condvar::wait`] does, again and again while `condition` returns `true`.
    pub fn wait_while<T>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) {
        while condition(guard) {
            self.wait(guard);
        }
    }

    /// Waits as [`Condvar::wait`] does, for at most the timeout.
    ///
    /// Shuttle has no time. Its own timed wait never times out, so shuttle would report code that
    /// relies on a timeout as a deadlock. This wait lets other threads run for a while and then
    /// ends; a random choice of the schedule decides whether it ends by timeout or by a spurious
    /// wake-up.
    pub fn wait_for<T>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        _timeout: Duration,
    ) -> WaitTimeoutResult {
        drop(guard.held.take());
        shuttle::thread::yield_now();
        guard.held = Some(guard.mutex.lock().unwrap_or_else(PoisonError::into_inner));
        WaitTimeoutResult(shuttle::rand::thread_rng().r#gen())
    }

    /// Wakes one waiting thread.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all waiting threads.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Condvar { .. }")
    }
}

#[cfg(test)]
mod shuttle_tests {
    use super::atomic::{AtomicU32, Ordering};
    use super::*;
    use crate::executor::{Executor, Priority, ThreadExecutor};

    const SCHEDULES: usize = 500;

    /// Two threads read and write without a common lock, so some schedule loses an update.
    #[test]
    #[should_panic(expected = "an update was lost")]
    fn a_race_is_found() {
        let race = || {
            let counter = Arc::new(AtomicU32::new(0));
            let shared = Arc::clone(&counter);
            let add = move || {
                let seen = shared.load(Ordering::SeqCst);
                shared.store(seen + 1, Ordering::SeqCst);
            };
            let thread =
                ThreadExecutor.spawn("adder", Priority::Same, Box::new(add.clone())).unwrap();
            add();
            thread.join().unwrap();
            assert_eq!(counter.load(Ordering::SeqCst), 2, "an update was lost");
        };
        shuttle::check_random(race, SCHEDULES);
    }

    #[test]
    fn a_notified_waiter_wakes_in_every_schedule() {
        let hand_over = || {
            let pair = Arc::new((Mutex::new(0_u32), Condvar::new()));
            let shared = Arc::clone(&pair);
            let give = move || {
                *shared.0.lock() = 7;
                shared.1.notify_one();
            };
            let thread = ThreadExecutor.spawn("giver", Priority::Same, Box::new(give)).unwrap();
            let mut value = pair.0.lock();
            pair.1.wait_while(&mut value, |value| *value == 0);
            assert_eq!(*value, 7);
            drop(value);
            thread.join().unwrap();
        };
        shuttle::check_random(hand_over, SCHEDULES);
    }

    /// No thread notifies, so only the timeout can end the wait.
    #[test]
    fn a_timed_wait_ends_by_itself() {
        let wait = || {
            let (mutex, condvar) = (Mutex::new(()), Condvar::new());
            let mut guard = mutex.lock();
            while !condvar.wait_for(&mut guard, Duration::from_secs(1)).timed_out() {}
        };
        shuttle::check_random(wait, SCHEDULES);
    }

    #[test]
    fn readers_share_and_writers_do_not() {
        let share = || {
            let lock = Arc::new(RwLock::new(1));
            let held = lock.read();
            let shared = Arc::clone(&lock);
            let look = move || {
                assert!(shared.try_read().is_some());
                assert!(shared.try_write().is_none());
            };
            ThreadExecutor.spawn("looker", Priority::Same, Box::new(look)).unwrap().join().unwrap();
            drop(held);
            *lock.write() += 1;
            assert_eq!(*lock.read(), 2);
        };
        shuttle::check_random(share, 10);
    }
}
