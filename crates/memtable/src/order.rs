//! [`KeyOrder`]: the 64 bits of a key at which most comparisons end.
//!
//! The first eight bytes of a key serve well until all keys of a tree begin alike ("user:...", a
//! tenant, the high bytes of a time). Then every comparison would have to look at the keys
//! themselves, each a cache miss, and inserts cost three times as much. So when a memtable makes
//! its first array, it looks at what its keys have in common and leaves that out from then on.
//!
//! ```text
//!  nothing in common          first 64 bits of the key
//!  keys begin with p    00    first 62 bits, of a key below p
//!                       01    the 62 bits behind p
//!                       10    first 62 bits, of a key above all that begin with p
//! ```
//!
//! Invariant: `bits(a) < bits(b)` implies `a < b`. A memtable changes its order once at most, when
//! it has no array yet, and publishes it together with the slots that were made by it.

use frondb_core::chunk::key_prefix;

/// What is in common is cut to a multiple of this, so that it still holds for keys that count up.
const SHARED_STEP: usize = 4;

pub(crate) struct KeyOrder {
    shared: Box<[u8]>,
}

impl KeyOrder {
    /// The first 64 bits of each key.
    pub(crate) fn plain() -> Self {
        Self { shared: Box::default() }
    }

    /// An order for keys from `first` to `last`, if it would be better than the plain one.
    pub(crate) fn between(first: &[u8], last: &[u8]) -> Option<Self> {
        let common = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        let shared = &first[..common - common % SHARED_STEP];
        // One key many times: nothing is known about the others.
        (!shared.is_empty() && first != last).then(|| Self { shared: shared.into() })
    }

    /// The bits of `key`.
    #[inline]
    pub(crate) fn bits(&self, key: &[u8]) -> u64 {
        if self.shared.is_empty() {
            return key_prefix(key);
        }
        match key.strip_prefix(&*self.shared) {
            Some(rest) => 1 << 62 | key_prefix(rest) >> 2,
            None if *key < *self.shared => key_prefix(key) >> 2,
            None => 2 << 62 | key_prefix(key) >> 2,
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use frondb_core::prng::Prng;

    #[test]
    fn bits_never_contradict_the_order_of_keys() {
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
            for (x, y) in [(&a, &b), (&a, &c), (&c, &d), (&b, &d)] {
                let (bits, keys) = (order.bits(x).cmp(&order.bits(y)), x.cmp(y));
                assert!(bits.is_eq() || bits == keys, "{x:?} {y:?} shared {:?}", order.shared);
            }
        }
    }

    #[test]
    fn what_keys_share_is_left_out() {
        let order = KeyOrder::between(b"customer:0001", b"customer:9000").unwrap();
        assert_eq!(&*order.shared, b"customer");
        assert!(order.bits(b"customer:0001") < order.bits(b"customer:0002"));
        assert!(KeyOrder::between(b"abc", b"abd").is_none());
        assert!(KeyOrder::between(b"same key", b"same key").is_none());
    }
}
