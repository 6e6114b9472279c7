//! [`Pool`]: what transactions that have ended leave for those to come.
//!
//! A transaction of one row would spend a tenth of its time on getting memory and giving it back:
//! for its locks, what wakes it, its messages, its list of trees.
//!
//! Any thread may use it. LOCK order: a leaf.

use frondb_core::sync::{Arc, Mutex};
use frondb_locks::Locker;
use frondb_writeset::WriteSet;

use crate::registry::Entry;
use frondb_tree::TreeCore;

/// More than this many transactions at a time make their own again.
const POOL_MAX: usize = 64;

/// Parts of a transaction, empty, with the memory that they have.
pub(crate) struct Spare {
    /// To be renewed.
    pub locker: Locker,
    pub writes: WriteSet,
    pub trees: Vec<Arc<TreeCore>>,
    /// On the registry, without a transaction.
    pub entry: Arc<Entry>,
}

/// The spare parts of an engine.
#[derive(Default)]
pub(crate) struct Pool {
    list: Mutex<Vec<Spare>>,
}

impl Pool {
    pub(crate) fn take(&self) -> Option<Spare> {
        self.list.lock().pop()
    }

    pub(crate) fn give(&self, spare: Spare) {
        let mut list = self.list.lock();
        if list.len() < POOL_MAX {
            list.push(spare);
            return;
        }
        // Freed without the lock.
        drop(list);
        drop(spare);
    }
}
