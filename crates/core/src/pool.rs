//! Object pools for objects that are costly to make and are used briefly by any thread. A pool
//! belongs to the process, not to a thread, so a thousand idle connections hold no objects.
//!
//! Invariant: a pool holds at most as many objects as it was made for. Threads: any. The lock is
//! held for one push or one pop. A thread that finds the lock taken does not wait: it makes a new
//! object, or drops the one that it wanted to return.
//!
//! A [`Limited`] pool never makes more objects than its limit: a thread that finds all of them in
//! use waits for one.
//!
//! The lock is parking_lot's own and not that of `sync`: it is no scheduling point worth exploring,
//! and shuttle's locks cannot live in a static.

use std::num::NonZeroUsize;

use parking_lot::{Condvar, Mutex};

/// An object pool. For a static.
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

    /// The object that was returned last, if any.
    #[inline]
    #[must_use]
    pub fn take(&self) -> Option<T> {
        self.spare.try_lock()?.pop()
    }

    /// Returns an object to the pool, or drops it if the pool is full.
    #[inline]
    pub fn put(&self, object: T) {
        if let Some(mut spare) = self.spare.try_lock()
            && spare.len() < self.most
        {
            spare.push(object);
        }
    }

    /// Drops all pooled objects, for a database that falls idle.
    pub fn clear(&self) {
        let spare = std::mem::take(&mut *self.spare.lock());
        drop(spare);
    }
}

/// A pool with at most two objects per processor, for a static: some threads that hold an object
/// are not running. A thread must not wait for anything while it uses an object, so that another
/// thread waits no longer than that use takes.
pub struct Limited<T> {
    held: Mutex<Held<T>>,
    put_back: Condvar,
}

struct Held<T> {
    /// Limit of the number of objects; 0 before the first use.
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

    /// Runs `work` with an idle object, or with a new one if the limit allows.
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

    /// Drops all idle objects.
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

/// An object in use. It is returned even if `work` panics, because another thread may be waiting
/// for it.
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

/// A value that all threads share, for a static. A thread that finds it in use does without it.
pub struct Shared<T>(Mutex<T>);

impl<T> Shared<T> {
    /// Shares `value`.
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
