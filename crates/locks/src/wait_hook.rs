//! [`WaitHook`]: reports lock waits to an embedder that orders transactions itself, such as a
//! replica that commits in the order of another server. The embedder can cancel waits that
//! contradict its order.

use frondb_core::sync::atomic::{AtomicBool, Ordering};
use frondb_core::sync::{Arc, RwLock};

/// The argument of a wait hook.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct WaitNotice<'a> {
    /// Id of the waiting transaction.
    pub waiter: u64,
    /// Ids of the transactions for which it waits, ascending.
    pub blockers: &'a [u64],
}

/// A function that the waiting thread calls when its wait begins, and again when it waits for more
/// transactions than before. The function must not panic, because the wait must still be ended.
pub type WaitHook = Arc<dyn Fn(WaitNotice<'_>) + Send + Sync>;

/// The hook of a lock manager, if one is set. Any thread may set it.
#[derive(Default)]
pub(crate) struct HookSlot {
    is_set: AtomicBool,
    hook: RwLock<Option<WaitHook>>,
}

impl HookSlot {
    pub(crate) fn set(&self, hook: Option<WaitHook>) {
        let mut held = self.hook.write();
        self.is_set.store(hook.is_some(), Ordering::Release);
        let old = std::mem::replace(&mut *held, hook);
        drop(held);
        // Drop the old hook without the lock, because destructors of captured values may do
        // anything.
        drop(old);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// Calls the hook without holding a lock, because the hook may take long and may cancel waits.
    pub(crate) fn call(&self, notice: WaitNotice<'_>) {
        let hook = self.hook.read().clone();
        if let Some(hook) = hook {
            hook(notice);
        }
    }
}
