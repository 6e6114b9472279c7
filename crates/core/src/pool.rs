//! Objects that are costly to make and are used for a moment by any thread: kept for the process, not for
//! each thread, so that a thousand idle connections hold none.
//!
//! Invariant: a pool holds at most as many as it was made for. Threads: any; the lock is held for a push or
//! a pop, and whoever finds it taken goes without: makes one, or drops one.
//!
//! The lock is parking_lot's own and not that of `sync`: it is no scheduling point worth exploring, and
//! shuttle's locks cannot live in a static.

use parking_lot::Mutex;

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
}
