//! [`Spares`]: what transactions that have ended leave for those to come.
//!
//! A transaction of one row would spend a tenth of its time on getting memory and giving it back:
//! for its locks, what wakes it, its messages, its list of trees.
//!
//! Any thread may use it. LOCK order: a leaf.

use frondb_core::sync::{Arc, Mutex};
use frondb_locks::Locker;
use frondb_writeset::WriteSet;

use super::roster::Card;
use frondb_tree::TreeCore;

/// More than this many transactions at a time make their own again.
const SPARES_MAX: usize = 64;

/// Parts of a transaction, empty, with the memory that they have.
pub(super) struct Spare {
    /// To be renewed.
    pub(super) locker: Locker,
    pub(super) writes: WriteSet,
    pub(super) trees: Vec<Arc<TreeCore>>,
    /// On the roster, without a transaction.
    pub(super) card: Arc<Card>,
}

/// The spare parts of an engine.
#[derive(Default)]
pub(crate) struct Spares {
    list: Mutex<Vec<Spare>>,
}

impl Spares {
    pub(super) fn take(&self) -> Option<Spare> {
        self.list.lock().pop()
    }

    pub(super) fn give(&self, spare: Spare) {
        let mut list = self.list.lock();
        if list.len() < SPARES_MAX {
            list.push(spare);
            return;
        }
        // Freed without the lock.
        drop(list);
        drop(spare);
    }
}
