//! [`Charge`]: memory of a cursor or run, counted in the memory budget and in a sum over all
//! cursors or runs.

use frondb_core::budget::{Part, Reservation};
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU64, Ordering};

use crate::env::RunEnv;

/// The memory of a reader's window or block, or of a run's top index. Counted in the budget and in
/// the sum of its kind until dropped.
pub(crate) struct Charge {
    env: Arc<RunEnv>,
    sum: Sum,
    pub(crate) bytes: u64,
    _reserved: Reservation,
}

/// Selects the sum to charge, a field of [`RunEnv`].
pub(crate) type Sum = fn(&RunEnv) -> &AtomicU64;

impl Charge {
    /// Creates a charge, or `None` if it would raise the sum above `most`.
    pub(crate) fn within(
        env: &Arc<RunEnv>,
        (part, sum): (Part, Sum),
        bytes: u64,
        most: u64,
    ) -> Option<Self> {
        let before = sum(env).fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > most {
            sum(env).fetch_sub(bytes, Ordering::Relaxed);
            return None;
        }
        let reserved = env.budget.reserve(part, bytes);
        Some(Self { env: Arc::clone(env), sum, bytes, _reserved: reserved })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        (self.sum)(&self.env).fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
