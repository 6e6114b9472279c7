//! [`Packed`]: many row locks of one locker and one mode, in a few bytes each.
//!
//! ```text
//!   restart                     restart          keys in order: every 16th in full, the others as
//!   | abc | +1 d | +2 x | ... | abf | ...        count of bytes shared with the previous key, rest
//! ```
//!
//! A row in the table's map takes [`ROW_BYTES`](crate::table_state::ROW_BYTES). A packed key of
//! eight bytes that is close to its neighbours takes three to five bytes. A pack locks only its
//! keys, not the keys between them. A pack is built once and never changes. A locker has few packs,
//! because it merges packs of similar size.

/// Distance, in keys, between keys that are stored in full.
const RESTART_KEYS: usize = 16;

/// Keys in order, each once.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    bytes: Vec<u8>,
    /// Offsets of the keys that are stored in full.
    restarts: Vec<u32>,
    len: usize,
    /// The last key.
    last: Vec<u8>,
}

impl Packed {
    /// Bytes of memory that the pack takes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.bytes.capacity() + self.restarts.capacity() * 4 + self.last.capacity()) as u64
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether there is room for one more key. The limit is 4 GiB, because offsets have 32 bits.
    fn has_room(&self, key: &[u8]) -> bool {
        u32::try_from(self.bytes.len() + key.len() + 10).is_ok()
    }

    /// Adds a key that is above all others; ignores a repetition of the last key. Returns `false`
    /// if there is no room, at 4 GiB.
    pub(crate) fn push(&mut self, key: &[u8]) -> bool {
        if self.len > 0 && self.last == key {
            return true;
        }
        if !self.has_room(key) {
            return false;
        }
        debug_assert!(self.len == 0 || self.last.as_slice() < key, "keys must be added in order");
        let shared = if self.len.is_multiple_of(RESTART_KEYS) {
            self.restarts.push(self.bytes.len() as u32);
            0
        } else {
            self.last.iter().zip(key).take_while(|(a, b)| a == b).count()
        };
        put_length(&mut self.bytes, shared);
        put_length(&mut self.bytes, key.len() - shared);
        self.bytes.extend_from_slice(&key[shared..]);
        self.last.truncate(shared);
        self.last.extend_from_slice(&key[shared..]);
        self.len += 1;
        true
    }

    /// Frees memory that was allocated and not used.
    pub(crate) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.restarts.shrink_to_fit();
    }

    /// Whether one of the keys lies in `[lo, hi)`.
    pub(crate) fn any_in(&self, lo: &[u8], hi: Option<&[u8]>) -> bool {
        if self.is_empty() || self.last.as_slice() < lo {
            return false;
        }
        let mut keys = self.from(lo);
        loop {
            match keys.next_key() {
                None => return false,
                Some(key) if key < lo => {}
                Some(key) => return hi.is_none_or(|hi| key < hi),
            }
        }
    }

    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        if self.is_empty() || self.last.as_slice() < key {
            return false;
        }
        let mut at = self.restart_before(key);
        // Number of bytes that `key` shares with the last passed key, which is below `key`. If the
        // next key shares more bytes with the passed key, it is below `key`, too; if it shares
        // fewer, it is above.
        let mut common = 0;
        while at < self.bytes.len() {
            let shared = take_length(&self.bytes, &mut at);
            let len = take_length(&self.bytes, &mut at);
            let rest = &self.bytes[at..at + len];
            at += len;
            if shared > common {
                continue;
            }
            let wanted = &key[common..];
            if shared < common || rest > wanted {
                return false;
            }
            if rest == wanted {
                return true;
            }
            common += rest.iter().zip(wanted).take_while(|(a, b)| a == b).count();
        }
        false
    }

    /// Returns all keys, in order.
    pub(crate) fn keys(&self) -> Keys<'_> {
        Keys { packed: self, at: 0, key: Vec::new() }
    }

    /// Returns the keys from [`restart_before`](Self::restart_before) on.
    fn from(&self, key: &[u8]) -> Keys<'_> {
        Keys { packed: self, at: self.restart_before(key), key: Vec::new() }
    }

    /// Returns the offset of the last key stored in full that is not above `key`; if there is none,
    /// the offset of the first key.
    fn restart_before(&self, key: &[u8]) -> usize {
        let not_above = self.restarts.partition_point(|&at| self.full_key(at as usize) <= key);
        self.restarts.get(not_above.saturating_sub(1)).map_or(0, |&at| at as usize)
    }

    /// Returns the key that is stored in full at offset `at`.
    fn full_key(&self, mut at: usize) -> &[u8] {
        let _shared = take_length(&self.bytes, &mut at);
        let len = take_length(&self.bytes, &mut at);
        &self.bytes[at..at + len]
    }
}

/// Iterates over the keys of a pack. A key is borrowed until the next call.
pub(crate) struct Keys<'a> {
    packed: &'a Packed,
    at: usize,
    key: Vec<u8>,
}

impl Keys<'_> {
    pub(crate) fn next_key(&mut self) -> Option<&[u8]> {
        let bytes = &self.packed.bytes;
        if self.at == bytes.len() {
            return None;
        }
        let shared = take_length(bytes, &mut self.at);
        let len = take_length(bytes, &mut self.at);
        self.key.truncate(shared);
        self.key.extend_from_slice(&bytes[self.at..self.at + len]);
        self.at += len;
        Some(&self.key)
    }
}

/// Writes a length with seven bits a byte, low bits first.
fn put_length(out: &mut Vec<u8>, mut length: usize) {
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}

fn take_length(bytes: &[u8], at: &mut usize) -> usize {
    let (mut length, mut shift) = (0, 0);
    loop {
        let byte = bytes[*at];
        *at += 1;
        length |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return length;
        }
        shift += 7;
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::collections::BTreeSet;

    use frondb_core::prng::Prng;

    use super::*;

    fn packed(keys: &BTreeSet<Vec<u8>>) -> Packed {
        let mut packed = Packed::default();
        assert!(keys.iter().all(|key| packed.push(key)));
        packed
    }

    fn listed(packed: &Packed) -> Vec<Vec<u8>> {
        let (mut keys, mut all) = (packed.keys(), Vec::new());
        while let Some(key) = keys.next_key() {
            all.push(key.to_vec());
        }
        all
    }

    #[test]
    fn packed_keys_agree_with_a_set() {
        for seed in 0..200 {
            let mut random = Prng::new(seed);
            let count = random.below(120);
            let length = 1 + random.below(4) * 60;
            let letters = 1 + random.below(3) as u8;
            let key = |random: &mut Prng| -> Vec<u8> {
                (0..random.below(length)).map(|_| random.below(u64::from(letters)) as u8).collect()
            };
            let keys: BTreeSet<Vec<u8>> = (0..count).map(|_| key(&mut random)).collect();
            let packed = packed(&keys);
            assert_eq!(listed(&packed), keys.iter().cloned().collect::<Vec<_>>(), "seed {seed}");
            assert_eq!(packed.len(), keys.len());
            for _ in 0..100 {
                let (lo, hi) = (key(&mut random), key(&mut random));
                assert_eq!(packed.contains(&lo), keys.contains(&lo), "seed {seed}");
                let above = keys.range(lo.clone()..).next();
                let expected = above.is_some_and(|first| *first < hi);
                assert_eq!(packed.any_in(&lo, Some(&hi)), expected, "seed {seed}");
                assert_eq!(packed.any_in(&lo, None), above.is_some(), "seed {seed}");
            }
        }
    }

    #[test]
    fn numbers_take_a_few_bytes() {
        let keys = (0..100_000_u64).map(|key| (key * 3).to_be_bytes().to_vec()).collect();
        let mut packed = packed(&keys);
        packed.shrink();
        let bytes = packed.memory_bytes() / 100_000;
        assert!(bytes <= 4, "{bytes} bytes a key");
    }

    #[test]
    fn a_repeated_key_is_stored_once() {
        let mut packed = Packed::default();
        assert!(["a", "a", "b"].iter().all(|key| packed.push(key.as_bytes())));
        assert_eq!(listed(&packed), [b"a", b"b"]);
    }
}
