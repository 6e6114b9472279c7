//! [`KeyOrder`]: 64 bits of a key that decide most comparisons, and a tag that decides the
//! remaining comparisons of short keys.
//!
//! The first eight bytes of a key work well until all keys of a tree begin alike ("user:...", a
//! tenant, the high bytes of a timestamp). Then every comparison would have to read the keys
//! themselves, each a cache miss, and inserts would cost three times as much. So when a memtable
//! makes its first array, it finds the prefix that its keys share and omits that prefix from the
//! bits from then on.
//!
//! ```text
//!  nothing in common          first 64 bits of the key
//!  keys begin with p    00    first 62 bits, of a key below p
//!                       01    the 62 bits after p
//!                       10    first 62 bits, of a key above all keys that begin with p
//! ```
//!
//! A short key fits into the bits completely, padded with zeros; its length distinguishes it from
//! another key with the same bits. So most keys of tables, which are numbers or pairs of numbers,
//! are compared without reading the keys themselves.
//!
//! ```text
//!  tag    0 | length     the bits hold the key: all 8 bytes, or 7 after p
//!         1 | hash       of the bytes that the bits do not hold
//! ```
//!
//! Invariants
//! - `bits(a) < bits(b)` implies `a < b`.
//! - Keys with equal bits are ordered by their tags, unless both tags are hashes.
//! - A memtable changes its order at most once, while it has no array, and publishes the new order
//!   together with the slots made by it.

use frondb_core::checksum::xxh3;
use frondb_core::chunk::key_prefix;

pub(crate) const TAG_BITS: u32 = 23;
/// Set in the tag of a key that is longer than its bits can hold.
const TAG_HASHED: u64 = 1 << (TAG_BITS - 1);
/// Bytes of a key that the bits hold under the plain order.
const BYTES_PLAIN: usize = 8;
/// Bytes after the shared prefix that the bits hold.
const BYTES_SHARED: usize = 7;

/// The length of the shared prefix is cut to a multiple of this, in bytes, so that later keys of an
/// ascending sequence still begin with the prefix.
const SHARED_STEP: usize = 4;

pub(crate) struct KeyOrder {
    shared: Box<[u8]>,
}

/// The digest of a key that slots and probes hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Digest {
    pub(crate) bits: u64,
    pub(crate) tag: u64,
}

impl Digest {
    /// Returns whether the tag is a hash. If two digests have equal bits and hashed tags, the keys
    /// themselves must be compared.
    #[inline]
    pub(crate) fn is_hashed(self) -> bool {
        self.tag & TAG_HASHED != 0
    }
}

impl KeyOrder {
    /// Creates the plain order: the first 64 bits of each key.
    pub(crate) fn plain() -> Self {
        Self { shared: Box::default() }
    }

    /// Returns an order for keys from `first` to `last`, if they share a prefix that is worth
    /// leaving out.
    pub(crate) fn between(first: &[u8], last: &[u8]) -> Option<Self> {
        let common = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        let shared = &first[..common - common % SHARED_STEP];
        // A memtable with one key, written many times, does not show which prefix other keys share.
        (!shared.is_empty() && first != last).then(|| Self { shared: shared.into() })
    }

    /// Returns the bits and the tag of `key`.
    #[inline]
    pub(crate) fn digest(&self, key: &[u8]) -> Digest {
        if self.shared.is_empty() {
            return Digest { bits: key_prefix(key), tag: tag(key, BYTES_PLAIN) };
        }
        let apart = |class: u64| Digest {
            bits: class << 62 | key_prefix(key) >> 2,
            tag: TAG_HASHED | tag(key, BYTES_SHARED),
        };
        match key.strip_prefix(&*self.shared) {
            Some(rest) => {
                Digest { bits: 1 << 62 | key_prefix(rest) >> 2, tag: tag(rest, BYTES_SHARED) }
            }
            None if *key < *self.shared => apart(0),
            None => apart(2),
        }
    }
}

#[inline]
fn tag(key: &[u8], held: usize) -> u64 {
    match key.get(held..) {
        None | Some([]) => key.len() as u64,
        Some(rest) => TAG_HASHED | xxh3(rest) >> (u64::BITS + 1 - TAG_BITS),
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use frondb_core::prng::Prng;

    #[test]
    fn bits_and_tags_never_contradict_the_order_of_keys() {
        let mut prng = Prng::new(1);
        for _ in 0..2000 {
            let mut key = || {
                let mut key = b"prefix".to_vec();
                key.extend((0..prng.below(12)).map(|_| b"\x00ax\xff"[prng.index(4)]));
                key.drain(..prng.index(4) * prng.index(3).min(1));
                key
            };
            let (mut a, mut b, c, d) = (key(), key(), key(), key());
            if b < a {
                std::mem::swap(&mut a, &mut b);
            }
            let order = KeyOrder::between(&a, &b).unwrap_or_else(KeyOrder::plain);
            for (x, y) in [(&a, &b), (&a, &c), (&c, &d), (&b, &d), (&d, &d)] {
                let (p, q, keys) = (order.digest(x), order.digest(y), x.cmp(y));
                let bits = p.bits.cmp(&q.bits);
                assert!(bits.is_eq() || bits == keys, "{x:?} {y:?} shared {:?}", order.shared);
                let decided = !(p.is_hashed() && q.is_hashed());
                let tags = bits.then(p.tag.cmp(&q.tag));
                assert!(!decided || tags == keys, "{x:?} {y:?} shared {:?}", order.shared);
                assert!(keys.is_ne() || p == q);
            }
        }
    }

    #[test]
    fn a_shared_prefix_is_left_out() {
        let order = KeyOrder::between(b"customer:0001", b"customer:9000").unwrap();
        assert_eq!(&*order.shared, b"customer");
        assert!(order.digest(b"customer:0001").bits < order.digest(b"customer:0002").bits);
        assert!(!order.digest(b"customer:000001").is_hashed());
        assert!(order.digest(b"customer:0000001").is_hashed());
        assert!(KeyOrder::between(b"abc", b"abd").is_none());
        assert!(KeyOrder::between(b"same key", b"same key").is_none());
    }
}
