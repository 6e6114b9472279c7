//! Object pools, for objects that are expensive to create and that any thread uses for a short
//! time. A pool belongs to the process and not to a thread, so a thousand idle connections have no
//! objects.
//!
//! Invariant: a [`Pool`] never holds more idle objects than its capacity. Threads: any. A thread
//! holds the lock for one push or one pop. [`Pool::take`] and [`Pool::put`] do not wait for the
//! lock: while another thread has it, the caller creates a new object, or `put` drops the object.
//!
//! A [`Limited`] pool never creates more objects than its limit: if all are in use, a thread waits
//! for one.
//!
//! The lock is parking_lot's and not the one of `sync`: it need not be a scheduling point of
//! shuttle, and a static cannot contain shuttle's locks.

use std::num::NonZeroUsize;

use parking_lot::{Condvar, Mutex};

/// An object pool, for a static.
pub struct Pool<T> {
    idle: Mutex<Vec<T>>,
    capacity: usize,
}

impl<T> Pool<T> {
    /// Creates an empty pool that keeps up to `capacity` objects.
    #[must_use]
    pub const fn new(capacity: usize) -> Self {
        Self { idle: Mutex::new(Vec::new()), capacity }
    }

    /// Takes the object that was returned last. `None` if the pool is empty or another thread has
    /// its lock.
    #[inline]
    #[must_use]
    pub fn take(&self) -> Option<T> {
        self.idle.try_lock()?.pop()
    }

    /// Returns an object to the pool. Drops the object if the pool is full or another thread has
    /// its lock.
    #[inline]
    pub fn put(&self, object: T) {
        if let Some(mut idle) = self.idle.try_lock()
            && idle.len() < self.capacity
        {
            idle.push(object);
        }
    }

    /// Drops all pooled objects, to free their memory. Waits for the lock.
    pub fn clear(&self) {
        let idle = std::mem::take(&mut *self.idle.lock());
        drop(idle);
    }
}

/// A pool with at most two objects per processor, for a static. One per processor would be too few,
/// because some threads with an object are not running. REQUIRES: a thread waits for nothing while
/// it uses an object, so that other threads do not wait long for one.
pub struct Limited<T> {
    state: Mutex<LimitedState<T>>,
    returned: Condvar,
}

struct LimitedState<T> {
    /// The limit on the number of objects; 0 before the first use.
    capacity: usize,
    idle: Vec<T>,
    /// Objects in use.
    in_use: usize,
}

impl<T: Default> Limited<T> {
    /// Creates an empty pool.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            state: Mutex::new(LimitedState { capacity: 0, idle: Vec::new(), in_use: 0 }),
            returned: Condvar::new(),
        }
    }

    /// Runs `work` with an idle object, or with a new one if the limit allows it. Otherwise waits
    /// until another thread returns an object.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let object = {
            let mut state = self.state.lock();
            if state.capacity == 0 {
                state.capacity =
                    2 * std::thread::available_parallelism().map_or(2, NonZeroUsize::get);
            }
            while state.idle.is_empty() && state.in_use >= state.capacity {
                self.returned.wait(&mut state);
            }
            state.in_use += 1;
            state.idle.pop()
        };
        let mut in_use = InUse { pool: self, object };
        work(in_use.object.get_or_insert_with(T::default))
    }

    /// Drops all idle objects.
    pub fn clear(&self) {
        let idle = std::mem::take(&mut self.state.lock().idle);
        drop(idle);
    }
}

impl<T: Default> Default for Limited<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// An object in use. The drop returns it, even if `work` panics, because another thread may wait
/// for an object.
struct InUse<'a, T> {
    pool: &'a Limited<T>,
    object: Option<T>,
}

impl<T> Drop for InUse<'_, T> {
    fn drop(&mut self) {
        let mut state = self.pool.state.lock();
        state.in_use -= 1;
        state.idle.extend(self.object.take());
        drop(state);
        self.pool.returned.notify_one();
    }
}

/// A value that all threads share, for a static. A thread that finds the value in use continues
/// without the value.
pub struct Shared<T>(Mutex<T>);

impl<T> Shared<T> {
    /// Creates a shared value.
    #[must_use]
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Runs `with` on the value; `None` if another thread is using it.
    #[inline]
    pub fn try_with<R>(&self, with: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.0.try_lock().map(|mut held| with(&mut held))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_pool_keeps_the_newest_objects_up_to_its_size() {
        static POOL: Pool<u32> = Pool::new(2);
        assert_eq!(POOL.take(), None);
        (1..=3).for_each(|n| POOL.put(n));
        assert_eq!([POOL.take(), POOL.take(), POOL.take()], [Some(2), Some(1), None]);
        POOL.put(4);
        POOL.clear();
        assert_eq!(POOL.take(), None);
    }

    #[test]
    fn a_limited_pool_keeps_its_limit_and_each_object_has_one_user() {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        struct Counted(usize);
        impl Default for Counted {
            fn default() -> Self {
                MADE.fetch_add(1, Ordering::Relaxed);
                Self(0)
            }
        }
        let pool = Limited::<Counted>::new();
        pool.state.lock().capacity = 3;
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..1000).for_each(|_| pool.with(|counted| counted.0 += 1)));
            }
        });
        assert!((1..=3).contains(&MADE.load(Ordering::Relaxed)));
        let state = pool.state.lock();
        assert_eq!(state.in_use, 0);
        assert_eq!(state.idle.iter().map(|counted| counted.0).sum::<usize>(), 8000);
        drop(state);
        pool.clear();
        assert!(pool.state.lock().idle.is_empty());
    }

    #[test]
    fn an_object_is_returned_when_the_work_panics() {
        let pool = Limited::<u32>::new();
        pool.state.lock().capacity = 1;
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pool.with(|_| panic!("the work"));
        }));
        assert!(panicked.is_err());
        assert_eq!(pool.with(|object| *object), 0);
    }
}
