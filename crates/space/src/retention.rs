//! [`Retention`]: while a backup reads extents, they are not reused, even if they are released.
//!
//! ```text
//!   retain()        every extent that is released stays used
//!   only(extents)   released extents that the backup does not need become free
//!   done(extent)    the backup has read the extent: it becomes free if it was released
//!   drop            all released extents become free
//! ```
//!
//! Retained extents count as used space, so the files grow by the bytes that are released
//! meanwhile. When the disk is nearly full, the retention is given up, so that writers get the
//! space; the backup learns this from [`Retention::is_lost`] and fails.

use std::collections::BTreeSet;

use frondb_core::limits::PAGE_BYTES;
use frondb_core::sync::Arc;
use frondb_core::{Error, ErrorKind, Result};

use crate::Extent;
use crate::retained::Retained;
use crate::space::Space;
use crate::state::SpaceState;

/// Free bytes of the disk below which a retention is given up.
const DISK_BYTES_MIN: u64 = 128 << 20;

/// Keeps the extents that a backup still has to read. At most one is in force at a time; one that
/// was given up keeps nothing.
pub struct Retention {
    space: Arc<Space>,
    /// Distinguishes this retention, once it is given up, from the retention of a later backup.
    id: u64,
}

impl Space {
    /// Keeps every extent that is in use now, or is acquired later, until the backup says which
    /// extents it needs.
    ///
    /// # Errors
    /// `Busy` if another backup is being made.
    pub fn retain(self: &Arc<Self>) -> Result<Retention> {
        let mut state = self.state.lock();
        if state.retained.is_some() {
            return Err(Error::new(ErrorKind::Busy, "another backup is being made"));
        }
        state.retentions += 1;
        let id = state.retentions;
        state.retained = Some(Retained { id, wanted: None, released: BTreeSet::new() });
        drop(state);
        Ok(Retention { space: Arc::clone(self), id })
    }

    /// Gives up the retention if the disk is nearly full. Called before pages are taken, and not
    /// only when the disk is full, because the log and the manifest grow on the same disk.
    pub(crate) fn make_way(&self, pages: u32) {
        let keeps = |state: &SpaceState| {
            state.retained.as_ref().is_some_and(|retained| !retained.released.is_empty())
        };
        if !keeps(&self.state.lock()) {
            return;
        }
        let least = DISK_BYTES_MIN + u64::from(pages) * PAGE_BYTES as u64;
        // If the device cannot tell how much is free, the backup continues.
        if self.files.free_bytes().is_ok_and(|free| free < least) {
            self.state.lock().give_up_retention();
        }
    }

    /// Gives up the retention of a backup, for work that finds no space elsewhere on the disk.
    /// Returns whether any extents were retained.
    pub fn give_up_retention(&self) -> bool {
        self.state.lock().give_up_retention()
    }
}

impl Retention {
    /// Keeps only these extents from now on.
    pub fn only(&self, extents: impl IntoIterator<Item = Extent>) {
        let wanted: BTreeSet<Extent> = extents.into_iter().collect();
        self.change(|retained| {
            let gone = retained.released.extract_if(.., |extent| !wanted.contains(extent));
            let gone = gone.collect();
            retained.wanted = Some(wanted);
            gone
        });
    }

    /// Stops keeping this extent.
    pub fn done(&self, extent: Extent) {
        self.change(|retained| {
            if let Some(wanted) = &mut retained.wanted {
                wanted.remove(&extent);
            }
            retained.released.take(&extent).into_iter().collect()
        });
    }

    /// Returns whether the retention was given up because the disk got full. As long as this
    /// returns `false`, the data that was read before the call is what the extents contained.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        let state = self.space.state.lock();
        state.retained.as_ref().is_none_or(|retained| retained.id != self.id)
    }

    /// Returns the bytes of extents that were released and are retained.
    #[must_use]
    pub fn kept_bytes(&self) -> u64 {
        let state = self.space.state.lock();
        let retained = state.retained.as_ref().filter(|retained| retained.id == self.id);
        retained.map_or(0, |retained| retained.released.iter().map(|extent| extent.bytes()).sum())
    }

    /// Changes the retained extents; `change` returns the extents that become free.
    fn change(&self, change: impl FnOnce(&mut Retained) -> Vec<Extent>) {
        let mut state = self.space.state.lock();
        let retained = state.retained.as_mut().filter(|retained| retained.id == self.id);
        let gone = retained.map(change).unwrap_or_default();
        gone.into_iter().for_each(|extent| state.free(extent));
    }
}

impl Drop for Retention {
    fn drop(&mut self) {
        let mut state = self.space.state.lock();
        if let Some(retained) = state.retained.take_if(|retained| retained.id == self.id) {
            retained.released.into_iter().for_each(|extent| state.free(extent));
        }
    }
}

impl std::fmt::Debug for Retention {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Retention({} bytes)", self.kept_bytes())
    }
}
