//! The ghost: the keys that recently left the small queue (`shard.rs`), without their values.
//!
//! A key that misses and is in the ghost was evicted within about one turnover of the cache, so it
//! is inserted directly into the main queue. A textbook queue of keys with a map for lookups takes
//! some 60 bytes per entry; the ghost is a table of fingerprints with their insertion times, eight
//! bytes each:
//!
//! ```text
//!   bucket = fingerprint mod buckets:   | fingerprint, time | .. | .. | .. |   four entries
//! ```
//!
//! Time counts insertions. An entry older than the ghost's length counts as absent, although it is
//! still in the table; in a full bucket the oldest entry is replaced. Shard and bucket are chosen
//! by bits of the fingerprint, so with n keys in the ghosts of all shards, one lookup in 2^32 / n
//! is a false positive (with a million keys, one in 4,000). The only effect of a false positive is
//! that a block stays longer than it should.

/// Entries in a bucket.
const WAYS: usize = 4;
/// Smallest length, in keys.
const LENGTH_MIN: u32 = 64;

#[derive(Clone, Copy, Default)]
struct Entry {
    /// 0 if the entry is empty.
    fingerprint: u32,
    time: u32,
}

/// Fingerprints of the keys that recently left the small queue; see the module's head.
#[derive(Default)]
pub(crate) struct Ghost {
    buckets: Vec<[Entry; WAYS]>,
    time: u32,
    /// Number of keys that the ghost remembers.
    length: u32,
}

impl Ghost {
    /// Sets the length to about `keys` keys; S3-FIFO works best with as many as the shard holds.
    pub(crate) fn resize(&mut self, keys: usize) {
        self.length = u32::try_from(keys).unwrap_or(u32::MAX / 2).clamp(LENGTH_MIN, u32::MAX / 2);
        // A quarter more slots than keys, so that few buckets overflow early.
        let buckets = (self.length as usize + self.length as usize / 4) / WAYS;
        let buckets = buckets.next_power_of_two();
        // Small changes of the cache's size do not justify rebuilding the table.
        if buckets > self.buckets.len() || buckets < self.buckets.len() / 4 {
            let old = std::mem::replace(&mut self.buckets, vec![Default::default(); buckets]);
            // The fingerprint alone chooses the bucket, so no key is needed.
            for entry in old.into_iter().flatten().filter(|entry| entry.fingerprint != 0) {
                self.place(entry);
            }
        }
    }

    /// Remembers a key, with the current time.
    pub(crate) fn insert(&mut self, hash: u64) {
        self.time = self.time.wrapping_add(1);
        if !self.buckets.is_empty() {
            self.place(Entry { fingerprint: fingerprint_of(hash), time: self.time });
        }
    }

    /// Forgets a key; returns whether it was remembered.
    pub(crate) fn take(&mut self, hash: u64) -> bool {
        if self.buckets.is_empty() {
            return false;
        }
        let (fingerprint, time, length) = (fingerprint_of(hash), self.time, self.length);
        let bucket = self.bucket(fingerprint);
        let Some(entry) = bucket.iter_mut().find(|entry| entry.fingerprint == fingerprint) else {
            return false;
        };
        let fresh = time.wrapping_sub(entry.time) < length;
        *entry = Entry::default();
        fresh
    }

    /// Returns the number of bytes of memory.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn bytes(&self) -> usize {
        self.buckets.capacity() * size_of::<[Entry; WAYS]>()
    }

    fn place(&mut self, new: Entry) {
        let time = self.time;
        let bucket = self.bucket(new.fingerprint);
        let age = |entry: &Entry| {
            if entry.fingerprint == 0 { u32::MAX } else { time.wrapping_sub(entry.time) }
        };
        let oldest = (0..WAYS).max_by_key(|&way| age(&bucket[way])).unwrap_or(0);
        let same = bucket.iter().position(|entry| entry.fingerprint == new.fingerprint);
        bucket[same.unwrap_or(oldest)] = new;
    }

    fn bucket(&mut self, fingerprint: u32) -> &mut [Entry; WAYS] {
        let at = fingerprint as usize & (self.buckets.len() - 1);
        &mut self.buckets[at]
    }
}

/// Returns the upper half of the hash. The table uses the lower half; the shard is chosen by bits
/// of the upper half too, so these bits are the same for all keys of a shard.
fn fingerprint_of(hash: u64) -> u32 {
    ((hash >> 32) as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use frondb_core::prng::Prng;

    #[test]
    fn remembers_the_last_keys_and_forgets_the_others() {
        let mut ghost = Ghost::default();
        assert!(!ghost.take(1 << 40), "a ghost of length 0 remembers nothing");
        ghost.resize(1000);
        let mut prng = Prng::new(1);
        let hashes: Vec<u64> = (0..5000).map(|_| prng.next_u64()).collect();
        for &hash in &hashes {
            ghost.insert(hash);
        }
        let old = hashes[..4000].iter().filter(|&&hash| ghost.take(hash)).count();
        assert_eq!(old, 0);
        let recent = hashes[4000..].iter().filter(|&&hash| ghost.take(hash)).count();
        assert!(recent > 850, "{recent} of the last 1000");
        assert!(!ghost.take(hashes[4999]), "take forgets the key");
    }

    #[test]
    fn resizing_keeps_most_keys() {
        let mut ghost = Ghost::default();
        ghost.resize(100);
        let mut prng = Prng::new(2);
        let hashes: Vec<u64> = (0..80).map(|_| prng.next_u64()).collect();
        for &hash in &hashes {
            ghost.insert(hash);
        }
        ghost.resize(10_000);
        let kept = hashes.iter().filter(|&&hash| ghost.take(hash)).count();
        assert!(kept > 60, "{kept} of 80");
        let bytes = ghost.bytes();
        ghost.resize(9000);
        assert_eq!(ghost.bytes(), bytes);
        ghost.resize(64);
        assert!(ghost.bytes() < bytes / 16);
    }
}
