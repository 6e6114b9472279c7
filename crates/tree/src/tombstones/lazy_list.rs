//! [`LazyList`]: the lock of a [`List`], which is allocated by its first change. Most trees never
//! have a known-empty range, and a database may have very many trees.

use std::ops::{Deref, DerefMut};

use frondb_core::sync::{Mutex, MutexGuard};

use super::empty_list::{EMPTY, List};

/// A [`List`] behind a lock. Any thread may use it.
#[derive(Default, Debug)]
pub(super) struct LazyList(Mutex<Option<Box<List>>>);

impl LazyList {
    pub(super) fn lock(&self) -> ListGuard<'_> {
        ListGuard(self.0.lock())
    }
}

/// The locked list. The first write access allocates it.
pub(super) struct ListGuard<'a>(MutexGuard<'a, Option<Box<List>>>);

impl Deref for ListGuard<'_> {
    type Target = List;

    fn deref(&self) -> &List {
        self.0.as_deref().unwrap_or(&EMPTY)
    }
}

impl DerefMut for ListGuard<'_> {
    fn deref_mut(&mut self) -> &mut List {
        self.0.get_or_insert_default()
    }
}
