//! Loads filters and block indexes that are not in the cache. Two threads never load the same
//! object at the same time, and all loads together take at most a fraction of the memory budget.
//!
//! A part of an index or a filter takes some 10 KiB; in runs of earlier versions, an index or a
//! filter of hundreds of kilobytes has one part. If the cache cannot hold all parts, every reader
//! misses. Without a limit, the objects that 64 threads load at the same time would take memory
//! that no budget counts.
//!
//! ```text
//!   miss -- is it being read? -- yes -- wait, share the loaded object
//!                | no
//!                +-- room besides the running loads? -- no -- wait
//!                           | yes: charged before the read, so that the cache yields first
//!                           +-- read, insert into the cache, release the charge
//! ```
//!
//! Invariant: a running load ends, even if it fails or panics. After a failure another waiting
//! thread tries. Any thread may load. The only lock taken under the mutex of the loads is the
//! cache's.

use std::collections::HashMap;

use frondb_cache::CacheKey;
use frondb_core::Result;
use frondb_core::budget::{Budget, Part};
use frondb_core::sync::{Arc, Condvar, Mutex, OnceLock};

/// The running loads take at most the memory budget divided by this, unless there is only one.
const MEMORY_DIVISOR: u64 = 16;

/// The running loads; see the module documentation. One object for all runs of an engine.
pub(crate) struct Loads<V> {
    state: Mutex<LoadState<V>>,
    changed: Condvar,
}

struct LoadState<V> {
    under_way: HashMap<CacheKey, Arc<Load<V>>>,
    /// Bytes that the running loads take.
    bytes: u64,
}

/// The result of a running load, set when the load ends; `None` if it failed.
type Load<V> = OnceLock<Option<V>>;

/// Ends a load on drop, whether it succeeded or not.
struct LoadGuard<'a, V> {
    loads: &'a Loads<V>,
    key: CacheKey,
    bytes: u64,
    load: Arc<Load<V>>,
}

impl<V> Default for Loads<V> {
    fn default() -> Self {
        let state = LoadState { under_way: HashMap::new(), bytes: 0 };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }
}

impl<V: Clone> Loads<V> {
    /// Returns the value of `key`: from another thread if one is loading it, else from the cache by
    /// calling `cached`, else by calling `read`, whose `bytes` of memory are charged to `part`.
    pub(crate) fn load(
        &self,
        key: CacheKey,
        (part, bytes): (Part, u64),
        budget: &Arc<Budget>,
        cached: impl Fn() -> Option<V>,
        read: impl FnOnce() -> Result<V>,
    ) -> Result<V> {
        let guard = match self.begin(key, bytes, budget, &cached) {
            Begun::Loaded(value) => return Ok(value),
            Begun::Read(guard) => guard,
        };
        let _charged = budget.reserve(part, bytes);
        let value = read()?;
        // Set before the drop of `guard` ends the load. After an error the drop sets `None`.
        let _ = guard.load.set(Some(value.clone()));
        Ok(value)
    }

    fn begin(
        &self,
        key: CacheKey,
        bytes: u64,
        budget: &Budget,
        cached: &dyn Fn() -> Option<V>,
    ) -> Begun<'_, V> {
        let mut state = self.state.lock();
        loop {
            if let Some(load) = state.under_way.get(&key).cloned() {
                while load.get().is_none() {
                    self.changed.wait(&mut state);
                }
                if let Some(Some(value)) = load.get() {
                    return Begun::Loaded(value.clone());
                }
                continue;
            }
            if let Some(value) = cached() {
                return Begun::Loaded(value);
            }
            if state.bytes == 0 || state.bytes + bytes <= budget.total() / MEMORY_DIVISOR {
                break;
            }
            self.changed.wait(&mut state);
        }
        let load = Arc::new(Load::new());
        state.under_way.insert(key, Arc::clone(&load));
        state.bytes += bytes;
        Begun::Read(LoadGuard { loads: self, key, bytes, load })
    }
}

enum Begun<'a, V> {
    Loaded(V),
    Read(LoadGuard<'a, V>),
}

impl<V> Drop for LoadGuard<'_, V> {
    fn drop(&mut self) {
        let _ = self.load.set(None);
        let mut state = self.loads.state.lock();
        state.under_way.remove(&self.key);
        state.bytes -= self.bytes;
        drop(state);
        self.loads.changed.notify_all();
    }
}
