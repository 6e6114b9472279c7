//! The index of a shard: maps a key's hash to the number of its entry. A slot has eight bytes.
//!
//! ```text
//!   slot = fingerprint (32 bits) | entry (32 bits)   at fingerprint mod slots, or the next free
//!                                                    slot
//! ```
//!
//! A map that stores the keys would take four times the memory, so the first load of a lookup would
//! miss the processor's cache four times as often. Here the key is compared in the entry, which a
//! hit needs anyway. The table uses linear probing and is at most three quarters full. A removal
//! moves the following slots back, so no tombstones accumulate while blocks come and go.

/// Smallest table, in slots.
const SLOTS_MIN: usize = 16;

#[derive(Clone, Copy)]
struct Slot {
    fingerprint: u32,
    /// [`VACANT`] in a free slot.
    entry: u32,
}

const VACANT: u32 = u32::MAX;
const FREE: Slot = Slot { fingerprint: 0, entry: VACANT };

/// Maps a key's hash to the number of its entry; see the module's head.
#[derive(Default)]
pub(crate) struct Table {
    slots: Vec<Slot>,
    len: usize,
}

impl Table {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the entry with this hash that satisfies `is_it`.
    #[inline]
    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let at = self.position(hash, is_it)?;
        Some(self.slots[at].entry)
    }

    /// Adds an entry whose key is not in the table.
    pub(crate) fn insert(&mut self, hash: u64, entry: u32) {
        if (self.len + 1) * 4 > self.slots.len() * 3 {
            self.rebuild((self.slots.len() * 2).max(SLOTS_MIN));
        }
        self.place(Slot { fingerprint: fingerprint_of(hash), entry });
        self.len += 1;
    }

    /// Removes the entry with this hash that satisfies `is_it`.
    pub(crate) fn remove(&mut self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let mut gap = self.position(hash, is_it)?;
        let entry = self.slots[gap].entry;
        let mask = self.slots.len() - 1;
        let mut next = gap;
        loop {
            next = (next + 1) & mask;
            let slot = self.slots[next];
            if slot.entry == VACANT {
                break;
            }
            // A slot moves into the gap unless its home lies after the gap.
            let from_home = next.wrapping_sub(slot.fingerprint as usize) & mask;
            let from_gap = next.wrapping_sub(gap) & mask;
            if from_home >= from_gap {
                self.slots[gap] = slot;
                gap = next;
            }
        }
        self.slots[gap] = FREE;
        self.len -= 1;
        if self.slots.len() > SLOTS_MIN && self.len * 8 < self.slots.len() {
            self.rebuild(self.slots.len() / 4);
        }
        Some(entry)
    }

    /// Returns the number of bytes of memory.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }

    #[inline]
    fn position(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<usize> {
        let fingerprint = fingerprint_of(hash);
        let mask = self.slots.len().checked_sub(1)?;
        let mut at = fingerprint as usize & mask;
        // The loop ends because at most three quarters of the slots are taken.
        loop {
            let slot = self.slots[at];
            if slot.entry == VACANT {
                return None;
            }
            if slot.fingerprint == fingerprint && is_it(slot.entry) {
                return Some(at);
            }
            at = (at + 1) & mask;
        }
    }

    fn place(&mut self, new: Slot) {
        let mask = self.slots.len() - 1;
        let mut at = new.fingerprint as usize & mask;
        while self.slots[at].entry != VACANT {
            at = (at + 1) & mask;
        }
        self.slots[at] = new;
    }

    fn rebuild(&mut self, slots: usize) {
        let slots = slots.max(SLOTS_MIN).next_power_of_two();
        let old = std::mem::replace(&mut self.slots, vec![FREE; slots]);
        for slot in old.into_iter().filter(|slot| slot.entry != VACANT) {
            self.place(slot);
        }
    }
}

/// Returns the lower half of the hash; bits of the upper half choose the shard.
#[inline]
fn fingerprint_of(hash: u64) -> u32 {
    hash as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use frondb_core::prng::Prng;
    use std::collections::BTreeMap;

    /// The hashes have few distinct fingerprints, so that long sequences of taken slots form, wrap
    /// around and break up.
    #[test]
    fn a_table_agrees_with_a_map() {
        let seed = 11;
        println!("seed {seed}");
        let mut prng = Prng::new(seed);
        let (mut table, mut model) = (Table::default(), BTreeMap::new());
        let mut hashes = Vec::new();
        for round in 0..40_000u32 {
            // The table grows and shrinks in waves of 4,000 rounds.
            if prng.chance(if round / 4000 % 2 == 0 { 2 } else { 1 }, 3) {
                let hash = prng.below(40) * 0x0400_0001 + (prng.below(8) << 40);
                table.insert(hash, round);
                hashes.push(hash);
                model.insert(round, hash);
            } else if let Some((&entry, &hash)) = model.iter().nth(prng.index(model.len().max(1))) {
                assert_eq!(table.remove(hash, |at| at == entry), Some(entry));
                assert_eq!(table.remove(hash, |at| at == entry), None);
                model.remove(&entry);
            }
            if round % 64 == 0 {
                for (&entry, &hash) in &model {
                    assert_eq!(table.find(hash, |at| at == entry), Some(entry));
                }
            }
            assert_eq!(table.len(), model.len());
        }
        for (entry, hash) in model {
            assert_eq!(table.remove(hash, |at| at == entry), Some(entry));
        }
        assert_eq!((table.len(), table.slots.len()), (0, SLOTS_MIN));
        assert_eq!(table.find(0, |_| true), None);
        assert_eq!(Table::default().find(0, |_| true), None);
    }
}
