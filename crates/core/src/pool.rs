//! Objects that are costly to make and are used for a moment by any thread: kept for the process, not for
//! each thread, so that a thousand idle connections hold none.
//!
//! Invariant: a pool holds at most as many as it was made for. Threads: any; the lock is held for a push or
//! a pop, and whoever finds it taken goes without: makes one, or drops one.
//!
//! A [`Limited`] pool makes no more objects than that: whoever finds all of them in use waits for one.
//!
//! The lock is parking_lot's own and not that of `sync`: it is no scheduling point worth exploring, and
//! shuttle's locks cannot live in a static.

use std::num::NonZeroUsize;

use parking_lot::{Condvar, Mutex};

/// Spare objects. For a static.
pub struct Pool<T> {
    spare: Mutex<Vec<T>>,
    most: usize,
}

impl<T> Pool<T> {
    /// An empty pool that keeps up to `most` objects.
    #[must_use]
    pub const fn new(most: usize) -> Self {
        Self { spare: Mutex::new(Vec::new()), most }
    }

    /// The object that was put back last, if there is one.
    #[inline]
    #[must_use]
    pub fn take(&self) -> Option<T> {
        self.spare.try_lock()?.pop()
    }

    /// Puts an object back, or drops it if there are enough.
    #[inline]
    pub fn put(&self, object: T) {
        if let Some(mut spare) = self.spare.try_lock()
            && spare.len() < self.most
        {
            spare.push(object);
        }
    }

    /// Drops all that it has: for a database that falls idle.
    pub fn clear(&self) {
        let spare = std::mem::take(&mut *self.spare.lock());
        drop(spare);
    }
}

/// Objects of which there are at most two for each processor, for a static: some threads that have one are not
/// running. Who works with one must wait for nothing, so
/// that whoever waits for it waits no longer than that work takes.
pub struct Limited<T> {
    held: Mutex<Held<T>>,
    put_back: Condvar,
}

struct Held<T> {
    /// How many objects there may be; 0 before the first one is asked for.
    most: usize,
    spare: Vec<T>,
    /// Objects in use.
    in_use: usize,
}

impl<T: Default> Limited<T> {
    /// An empty pool.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            held: Mutex::new(Held { most: 0, spare: Vec::new(), in_use: 0 }),
            put_back: Condvar::new(),
        }
    }

    /// What `work` makes of an object: of one that nobody uses, or of a new one if there may be more.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let object = {
            let mut held = self.held.lock();
            if held.most == 0 {
                held.most = 2 * std::thread::available_parallelism().map_or(2, NonZeroUsize::get);
            }
            while held.spare.is_empty() && held.in_use >= held.most {
                self.put_back.wait(&mut held);
            }
            held.in_use += 1;
            held.spare.pop()
        };
        let mut lent = Lent { pool: self, object };
        work(lent.object.get_or_insert_with(T::default))
    }

    /// Drops all that nobody uses.
    pub fn clear(&self) {
        let spare = std::mem::take(&mut self.held.lock().spare);
        drop(spare);
    }
}

impl<T: Default> Default for Limited<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// An object in use. It goes back even if the work panics: another thread may wait for it.
struct Lent<'a, T> {
    pool: &'a Limited<T>,
    object: Option<T>,
}

impl<T> Drop for Lent<'_, T> {
    fn drop(&mut self) {
        let mut held = self.pool.held.lock();
        held.in_use -= 1;
        held.spare.extend(self.object.take());
        drop(held);
        self.pool.put_back.notify_one();
    }
}

/// A value that all threads share, for a static: whoever finds it in use goes without.
pub struct Shared<T>(Mutex<T>);

impl<T> Shared<T> {
    /// Shares `value`.
    #[must_use]
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// What `with` makes of it; `None` if another thread is at it.
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
    fn keeps_the_last_ones_up_to_its_size() {
        static POOL: Pool<u32> = Pool::new(2);
        assert_eq!(POOL.take(), None);
        (1..=3).for_each(|n| POOL.put(n));
        assert_eq!([POOL.take(), POOL.take(), POOL.take()], [Some(2), Some(1), None]);
        POOL.put(4);
        POOL.clear();
        assert_eq!(POOL.take(), None);
    }

    #[test]
    fn no_more_are_made_than_may_be_and_each_has_one_user() {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        struct Counted(usize);
        impl Default for Counted {
            fn default() -> Self {
                MADE.fetch_add(1, Ordering::Relaxed);
                Self(0)
            }
        }
        let pool = Limited::<Counted>::new();
        pool.held.lock().most = 3;
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..1000).for_each(|_| pool.with(|counted| counted.0 += 1)));
            }
        });
        assert!((1..=3).contains(&MADE.load(Ordering::Relaxed)));
        let held = pool.held.lock();
        assert_eq!(held.in_use, 0);
        assert_eq!(held.spare.iter().map(|counted| counted.0).sum::<usize>(), 8000);
        drop(held);
        pool.clear();
        assert!(pool.held.lock().spare.is_empty());
    }

    #[test]
    fn an_object_comes_back_from_work_that_panics() {
        let pool = Limited::<u32>::new();
        pool.held.lock().most = 1;
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pool.with(|_| panic!("the work"));
        }));
        assert!(panicked.is_err());
        assert_eq!(pool.with(|object| *object), 0);
    }
}
