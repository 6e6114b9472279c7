//! [`LazyState`]: a mutex around a [`TableState`]. The first change allocates the state, and
//! [`free_unused`](LazyState::free_unused) frees it. Most trees of a database have no locks, and
//! there may be very many trees.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use frondb_core::sync::{Mutex, MutexGuard};

use crate::ranges::Ranges;
use crate::table_state::TableState;

static EMPTY: TableState = TableState {
    rows: BTreeMap::new(),
    packs: Vec::new(),
    ranges: Ranges::new(),
    waiters: Vec::new(),
    next_entry: 0,
};

/// The lock-protected state of a table. Any thread may use it.
#[derive(Default)]
pub(crate) struct LazyState(Mutex<Option<Box<TableState>>>);

impl LazyState {
    #[inline]
    pub(crate) fn lock(&self) -> StateGuard<'_> {
        StateGuard(self.0.lock())
    }

    /// Frees the memory of a table without locks and requests.
    pub(crate) fn free_unused(&self) {
        let mut state = self.0.lock();
        if state.as_ref().is_some_and(|state| state.is_unused()) {
            *state = None;
        }
    }
}

/// The locked state. The first mutable access allocates it.
pub(crate) struct StateGuard<'a>(MutexGuard<'a, Option<Box<TableState>>>);

impl Deref for StateGuard<'_> {
    type Target = TableState;

    #[inline]
    fn deref(&self) -> &TableState {
        self.0.as_deref().unwrap_or(&EMPTY)
    }
}

impl DerefMut for StateGuard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut TableState {
        self.0.get_or_insert_default()
    }
}
