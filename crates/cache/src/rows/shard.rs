//! [`RowShard`]: a queue of bundles, and the table that finds their rows.
//!
//! ```text
//!   table      fingerprint -> bundle and place
//!   bundles    oldest | ... | newest, which is being filled
//!                 |             ^
//!                 +-- rows that were read since they were appended are appended once more;
//!                     the others are forgotten
//! ```
//!
//! A FIFO queue with a second chance is nearly as good as LRU, and it frees whole bundles: freeing
//! row by row would leave holes in malloc's memory, which other parts could not use.
//! This is the scheme of Segcache (Yang, Yue, Rashmi, NSDI 2021) without times to live.
//!
//! Threads: a shard is used under its lock; a hit holds only the shared side.

use std::collections::VecDeque;

use frondb_core::RunId;

use super::bundle::{Bundle, PLACES, Row};
use crate::table::Table;

/// Maximum number of bundles of a shard: a table entry of 32 bits holds a slot and a place in the
/// slot's bundle.
const BUNDLES_MAX: usize = u32::MAX as usize / PLACES;

/// A queue of bundles with the table of their rows; see the module's head.
#[derive(Default)]
pub(crate) struct RowShard {
    table: Table,
    /// `None` in a vacant slot.
    bundles: Vec<Option<Bundle>>,
    vacant: Vec<u32>,
    /// Slots of the bundles, the oldest first.
    order: VecDeque<u32>,
}

impl RowShard {
    /// Returns the number of bundles.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns the row of a key in a run; notes that it was read.
    #[inline]
    pub(crate) fn get(&self, run: RunId, key: &[u8], hash: u64) -> Option<Row<'_>> {
        let entry = self.table.find(hash, |entry| self.is_row(entry, run, key))?;
        let (bundle, place) = self.at(entry)?;
        bundle.note_read(place);
        bundle.row(place)
    }

    /// Adds a row unless its key is cached. Returns `false` if the newest bundle has no room.
    pub(crate) fn insert(&mut self, row: &Row<'_>, hash: u64) -> bool {
        if self.table.find(hash, |entry| self.is_row(entry, row.run, row.key)).is_some() {
            return true;
        }
        let Some(&slot) = self.order.back() else { return false };
        let Some(bundle) = &mut self.bundles[slot as usize] else { return false };
        let Some(place) = bundle.append(row) else { return false };
        self.table.insert(hash, slot * PLACES as u32 + place as u32);
        true
    }

    /// Adds an empty bundle, which becomes the newest. Returns it if the shard has no slot for it.
    pub(crate) fn push(&mut self, bundle: Bundle) -> Option<Bundle> {
        let slot = match self.vacant.pop() {
            Some(slot) => slot,
            None if self.bundles.len() < BUNDLES_MAX => {
                self.bundles.push(None);
                self.bundles.len() as u32 - 1
            }
            None => return Some(bundle),
        };
        self.bundles[slot as usize] = Some(bundle);
        self.order.push_back(slot);
        None
    }

    /// Removes the oldest bundle. Its rows that were read since their insertion are appended to the
    /// newest bundle, as far as they fit. The caller drops the result outside the lock.
    pub(crate) fn evict(&mut self, hash: impl Fn(&Row<'_>) -> u64) -> Option<Bundle> {
        let slot = self.order.pop_front()?;
        let bundle = self.bundles[slot as usize].take();
        self.vacant.push(slot);
        if let Some(bundle) = &bundle {
            for (place, row) in bundle.rows() {
                let (hash, entry) = (hash(&row), slot * PLACES as u32 + place as u32);
                self.table.remove(hash, |at| at == entry);
                if bundle.was_read(place) {
                    self.insert(&row, hash);
                }
            }
        }
        bundle
    }

    #[inline]
    fn is_row(&self, entry: u32, run: RunId, key: &[u8]) -> bool {
        let row = self.at(entry).and_then(|(bundle, place)| bundle.row(place));
        row.is_some_and(|row| row.run == run && row.key == key)
    }

    #[inline]
    fn at(&self, entry: u32) -> Option<(&Bundle, usize)> {
        let (slot, place) = (entry as usize / PLACES, entry as usize % PLACES);
        Some((self.bundles.get(slot)?.as_ref()?, place))
    }
}
