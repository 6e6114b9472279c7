//! Hooks. The commit hook: who keeps a log of its own, as a server's binary log, learns of commits in
//! their order. The wait hook is the lock manager's; here it is kept from panicking.

use frondb_core::sync::atomic::{AtomicBool, Ordering};
use frondb_core::sync::{Arc, RwLock};
use frondb_core::{Lsn, SeqNo};
use frondb_locks::{WaitHook, WaitNotice};

/// What a commit hook is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CommitInfo {
    /// Number of the transaction; 0 for a plain batch.
    pub transaction: u64,
    /// The largest SeqNo of the commit: a snapshot at it, or above, sees the commit.
    pub seq: SeqNo,
    /// Where its record ends: durable when the log is durable up to there.
    pub end: Lsn,
}

/// Called for each commit, in their order.
pub type CommitHook = Arc<dyn Fn(&CommitInfo) + Send + Sync>;

/// The hook of an engine, if one is set. Any thread may set it.
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
        // What it captured may do anything when it goes.
        drop(old);
    }

    /// Tells the hook. The commit has happened, so a panic of the hook goes no further: whoever commits
    /// would take it for one that did not, and give back what the trees have now.
    ///
    /// REQUIRES: the commit lock.
    #[inline]
    pub(crate) fn call(&self, info: &CommitInfo) {
        if self.is_set.load(Ordering::Acquire)
            && let Some(hook) = &*self.hook.read()
        {
            let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| hook(info)));
            if told.is_err() {
                let transaction = info.transaction;
                tracing::error!(transaction, "the commit hook panicked; the commit has happened");
            }
        }
    }
}

/// A wait hook whose panic goes no further: the wait has begun, and must come to its end.
pub fn guarded(hook: WaitHook) -> WaitHook {
    Arc::new(move |notice: WaitNotice<'_>| {
        let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| hook(notice)));
        if told.is_err() {
            tracing::error!(waiter = notice.waiter, "the wait hook panicked; the wait goes on");
        }
    })
}
