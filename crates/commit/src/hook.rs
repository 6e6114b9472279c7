//! Hooks. The commit hook reports the commits in their order to an application that keeps a log of
//! its own, such as the binary log of a server. The wait hook belongs to the lock manager; this
//! module only catches its panics.

use frondb_core::sync::atomic::{AtomicBool, Ordering};
use frondb_core::sync::{Arc, RwLock};
use frondb_core::{Lsn, SeqNo};
use frondb_locks::{WaitHook, WaitNotice};

/// The argument of a commit hook.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CommitInfo {
    /// The number of the transaction; 0 for a batch.
    pub transaction: u64,
    /// The largest SeqNo of the commit: a snapshot at this SeqNo or a larger one sees the commit.
    pub seq: SeqNo,
    /// The end of the commit's log record: the commit is durable when the log is durable up to this
    /// position.
    pub end: Lsn,
}

/// A function that is called for each commit that has messages, in commit order.
pub type CommitHook = Arc<dyn Fn(&CommitInfo) + Send + Sync>;

/// The commit hook of a database, if one is set. Any thread may set it.
#[derive(Default)]
pub(crate) struct Hook {
    is_set: AtomicBool,
    hook: RwLock<Option<CommitHook>>,
}

impl Hook {
    pub(crate) fn set(&self, hook: Option<CommitHook>) {
        let mut held = self.hook.write();
        self.is_set.store(hook.is_some(), Ordering::Release);
        let old = std::mem::replace(&mut *held, hook);
        drop(held);
        // Drop the old hook without the lock: destructors of captured values may run any code.
        drop(old);
    }

    /// Calls the hook. The commit has happened, so a panic of the hook must not reach the
    /// committing thread. The thread would treat the commit as failed and free runs and large
    /// values that the trees now refer to.
    ///
    /// REQUIRES: the commit lock.
    #[inline]
    pub(crate) fn call(&self, info: &CommitInfo) {
        if self.is_set.load(Ordering::Acquire)
            && let Some(hook) = &*self.hook.read()
        {
            let called = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| hook(info)));
            if called.is_err() {
                let transaction = info.transaction;
                tracing::error!(transaction, "the commit hook panicked; the commit has happened");
            }
        }
    }
}

/// Wraps a wait hook so that a panic in it is logged and not propagated: the lock wait has begun
/// and must end normally.
pub fn guarded(hook: WaitHook) -> WaitHook {
    Arc::new(move |notice: WaitNotice<'_>| {
        let called = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| hook(notice)));
        if called.is_err() {
            tracing::error!(waiter = notice.waiter, "the wait hook panicked; the wait goes on");
        }
    })
}
