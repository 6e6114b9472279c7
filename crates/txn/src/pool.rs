//! [`Pool`]: the object pool, which keeps the memory of ended transactions for new ones.
//!
//! Without the pool, a transaction of one row spends a tenth of its time on allocating and freeing
//! the memory of its locks, its wakeup, its messages and its list of trees.
//!
//! Any thread may use the pool. Lock order: the lock of the pool is a leaf.

use frondb_core::sync::{Arc, Mutex};
use frondb_locks::Locker;
use frondb_tree::TreeCore;
use frondb_writeset::WriteSet;

use crate::registry::Entry;

/// Maximum number of objects that the pool keeps.
const POOL_MAX: usize = 64;

/// A pooled object: the emptied parts of a transaction, with their memory.
pub(crate) struct PooledParts {
    /// Still has the id of its last transaction. The next transaction must replace the id before it
    /// uses the locker.
    pub locker: Locker,
    pub writes: WriteSet,
    pub trees: Vec<Arc<TreeCore>>,
    /// An entry of the registry that has no transaction now.
    pub entry: Arc<Entry>,
}

/// The object pool of a database.
#[derive(Default)]
pub(crate) struct Pool {
    list: Mutex<Vec<PooledParts>>,
}

impl Pool {
    pub(crate) fn take(&self) -> Option<PooledParts> {
        self.list.lock().pop()
    }

    pub(crate) fn give(&self, parts: PooledParts) {
        let mut list = self.list.lock();
        if list.len() < POOL_MAX {
            list.push(parts);
            return;
        }
        // Release the lock before freeing the object.
        drop(list);
        drop(parts);
    }
}
