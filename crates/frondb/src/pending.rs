//! [`Pending`]: the result of an asynchronous call, as a future, and [`Completer`], the side of the
//! thread that makes the result.
//!
//! ```text
//!   call --+-- the result is in memory -----------------------------> Pending: Ready
//!          +-- else: Completer to a reader thread, shared state ----> Pending: Shared
//!                       complete() stores the result and wakes the task; a drop stores an error
//! ```
//!
//! Invariant: the future always gets a result: a [`Completer`] that is dropped without one, because
//! its work panicked, stores the error `Internal`. No lock is held while a waker, which is code of
//! the caller, is cloned, called or dropped. Any thread may use either side.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use frondb_core::sync::{Arc, Mutex};
use frondb_core::{Error, Result};

/// The result of an asynchronous call such as [`Tree::get_async`](crate::Tree::get_async): a future
/// that needs no particular runtime.
///
/// The call begins its work at once, not at the first poll. So several calls made one after the
/// other work at the same time. If the result is in memory, the first poll returns it. Otherwise a
/// thread of the database makes the result and wakes the task; the first calls that have to wait
/// start these threads, at most four, whatever the options say of background threads. After
/// [`Db::close`](crate::Db::close), or if the database is dropped, a future without a result
/// returns the error `Closed`. Dropping the future is always safe. A read that no thread has begun
/// by then is left out.
///
/// The waker is called on a thread of the database, so it must not wait for anything. The wakers of
/// common runtimes do not.
#[derive(Debug)]
#[must_use = "the result is in the future: await it"]
pub struct Pending<T>(State<T>);

#[derive(Debug)]
enum State<T> {
    /// The result; `None` once it was taken.
    Ready(Option<Result<T>>),
    Shared(Arc<Shared<T>>),
}

#[derive(Debug)]
struct Shared<T>(Mutex<Progress<T>>);

#[derive(Debug)]
enum Progress<T> {
    /// No result yet; the waker of the last poll, if there was one.
    Waiting(Option<Waker>),
    Done(Result<T>),
    /// The future has taken the result, or was dropped.
    Over,
}

/// Gives a [`Pending`] its result.
pub(crate) struct Completer<T>(Option<Arc<Shared<T>>>);

impl<T> Pending<T> {
    /// Returns a future that has its result.
    pub(crate) fn ready(result: Result<T>) -> Self {
        Self(State::Ready(Some(result)))
    }

    /// Returns a future without a result, and the object that gives it one.
    pub(crate) fn new() -> (Self, Completer<T>) {
        let shared = Arc::new(Shared(Mutex::new(Progress::Waiting(None))));
        (Self(State::Shared(Arc::clone(&shared))), Completer(Some(shared)))
    }
}

/// The result does not point into the future.
impl<T> Unpin for Pending<T> {}

impl<T> Future for Pending<T> {
    type Output = Result<T>;

    /// Returns the result if it is there. A further poll fails with `Invalid`.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        let result = match &mut self.0 {
            State::Ready(result) => result.take(),
            State::Shared(shared) => match shared.poll(context.waker()) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(result) => result,
            },
        };
        let again = || Err(Error::invalid("the future was polled after it had returned"));
        Poll::Ready(result.unwrap_or_else(again))
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        if let State::Shared(shared) = &self.0 {
            shared.replace(Progress::Over);
        }
    }
}

impl<T> Shared<T> {
    /// Takes the result, or stores the waker. Returns `Ready(None)` if the result was taken before.
    fn poll(&self, waker: &Waker) -> Poll<Option<Result<T>>> {
        let waker = waker.clone();
        let mut progress = self.0.lock();
        let (result, before) = match std::mem::replace(&mut *progress, Progress::Over) {
            Progress::Waiting(Some(same)) if same.will_wake(&waker) => {
                *progress = Progress::Waiting(Some(same));
                return Poll::Pending;
            }
            Progress::Waiting(before) => {
                *progress = Progress::Waiting(Some(waker));
                (Poll::Pending, before)
            }
            Progress::Done(result) => (Poll::Ready(Some(result)), None),
            Progress::Over => (Poll::Ready(None), None),
        };
        drop(progress);
        drop(before);
        result
    }

    /// Replaces the progress, and drops the old one after the lock is released.
    fn replace(&self, new: Progress<T>) {
        let old = std::mem::replace(&mut *self.0.lock(), new);
        drop(old);
    }
}

impl<T> Completer<T> {
    /// Returns whether the future still exists.
    pub(crate) fn is_wanted(&self) -> bool {
        let is_over = |shared: &Arc<Shared<T>>| matches!(*shared.0.lock(), Progress::Over);
        self.0.as_ref().is_some_and(|shared| !is_over(shared))
    }

    /// Calls `work` unless the future was dropped, and gives the future the result.
    pub(crate) fn complete_with(self, work: impl FnOnce() -> Result<T>) {
        if self.is_wanted() {
            let result = work();
            self.complete(result);
        }
    }

    /// Gives the future its result and wakes the task that waits for it.
    pub(crate) fn complete(mut self, result: Result<T>) {
        self.store(result);
    }

    fn store(&mut self, result: Result<T>) {
        let Some(shared) = self.0.take() else { return };
        let mut progress = shared.0.lock();
        if let Progress::Waiting(waker) = &mut *progress {
            let waker = waker.take();
            *progress = Progress::Done(result);
            drop(progress);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

impl<T> Drop for Completer<T> {
    fn drop(&mut self) {
        self.store(Err(Error::internal("the work for an asynchronous call ended in a panic")));
    }
}
