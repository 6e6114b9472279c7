//! [`WaitHook`]: who has an order of its own for transactions, as a replica that commits in the order of
//! another server, learns of waits and can end those that go against it.

use frondb_core::sync::atomic::{AtomicBool, Ordering};
use frondb_core::sync::{Arc, RwLock};

/// What a wait hook is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct WaitNotice<'a> {
    /// Number of the transaction that waits.
    pub waiter: u64,
    /// Numbers of those it waits for, ascending.
    pub blockers: &'a [u64],
}

/// Called by the thread that waits, when its wait begins, and again when it waits for more than
/// before. Must not panic: a wait that has begun must come to its end.
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
        // What it captured may do anything when it goes.
        drop(old);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// Tells the hook, with no lock held: it may take its time, and may cancel waits.
    pub(crate) fn call(&self, notice: WaitNotice<'_>) {
        let hook = self.hook.read().clone();
        if let Some(hook) = hook {
            hook(notice);
        }
    }
}
