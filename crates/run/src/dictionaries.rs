//! The dictionaries with which runs were packed.
//!
//! Every packed run has a copy of its dictionary on disk, so that it can be read, copied, backed up
//! and salvaged alone. In memory, all runs with the same dictionary share one object, found by its
//! hash.
//!
//! ```text
//!   read of a block -- held by the run? -------------------------------> decode
//!                         | no
//!                         +-- held by another run of the database? ----> decode, hold
//!                         +-- read from this run's bytes, checked -----> decode, hold if room
//! ```
//!
//! The dictionaries that runs hold take at most 1/8 of the memory budget. A run for which there is
//! no room reads its dictionary again for every block. Any thread may read.

use std::collections::HashMap;

use frondb_block::Dictionary;
use frondb_core::budget::{Budget, Part, Reservation};
use frondb_core::sync::{Arc, Mutex, Weak};

/// The dictionaries that runs hold take at most the memory budget divided by this.
const MEMORY_DIVISOR: u64 = 8;

/// A dictionary in memory, shared by the runs that were packed with it.
pub struct HeldDictionary {
    dictionary: Arc<Dictionary>,
    /// The charge for its memory; `None` if there was no room, so that only current users hold it.
    reserved: Option<Reservation>,
}

impl HeldDictionary {
    /// Returns the dictionary, for an encoder or a decoder of blocks.
    #[must_use]
    pub fn dictionary(&self) -> &Arc<Dictionary> {
        &self.dictionary
    }

    /// Returns whether a run may hold the dictionary for later reads.
    pub(crate) fn has_room(&self) -> bool {
        self.reserved.is_some()
    }

    fn bytes(&self) -> u64 {
        self.dictionary.memory_bytes() as u64
    }
}

/// The dictionaries that are in memory, by hash.
#[derive(Default)]
pub(crate) struct Dictionaries(Mutex<HashMap<u64, Weak<HeldDictionary>>>);

impl Dictionaries {
    pub(crate) fn find(&self, hash: u64) -> Option<Arc<HeldDictionary>> {
        self.0.lock().get(&hash)?.upgrade()
    }

    /// Adds a dictionary, unless another thread has added the same one meanwhile. Returns the
    /// dictionary to use.
    pub(crate) fn add(&self, budget: &Arc<Budget>, dictionary: Dictionary) -> Arc<HeldDictionary> {
        let mut known = self.0.lock();
        if let Some(found) = known.get(&dictionary.hash()).and_then(Weak::upgrade) {
            return found;
        }
        known.retain(|_, weak| weak.strong_count() > 0);
        let held = known.values().filter_map(Weak::upgrade).filter(|held| held.has_room());
        let held: u64 = held.map(|held| held.bytes()).sum();
        let (hash, bytes) = (dictionary.hash(), dictionary.memory_bytes() as u64);
        let has_room = held + bytes <= budget.total() / MEMORY_DIVISOR;
        let reserved = has_room.then(|| budget.reserve(Part::Other, bytes));
        let new = Arc::new(HeldDictionary { dictionary: Arc::new(dictionary), reserved });
        known.insert(hash, Arc::downgrade(&new));
        new
    }
}
