//! [`Prng`]: a generator of repeatable random numbers, xoshiro256++ seeded with splitmix64.
//!
//! Everything random in the engine, except the id of a new database, comes from a [`Prng`] with a
//! known seed: test histories, simulated crashes, and the keys at which an estimate samples a
//! range. So a failure can be replayed from its seed alone. Every version of the engine must
//! generate the same sequence; an external crate could change it, so the generator is in this
//! crate. Not for secrets.
//!
//! One thread at a time may use a generator.

/// A generator of pseudo-random numbers with a period of 2^256 - 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prng {
    state: [u64; 4],
}

impl Prng {
    /// Creates the generator of `seed`. Every seed is good, including zero, because splitmix64
    /// first spreads its bits.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        Self { state: std::array::from_fn(|_| splitmix64(&mut state)) }
    }

    /// Returns the next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [s0, s1, s2, s3] = &mut self.state;
        let result = s0.wrapping_add(*s3).rotate_left(23).wrapping_add(*s0);
        let t = *s1 << 17;
        *s2 ^= *s0;
        *s3 ^= *s1;
        *s1 ^= *s2;
        *s0 ^= *s3;
        *s2 ^= t;
        *s3 = s3.rotate_left(45);
        result
    }

    /// Returns the next 32 random bits.
    #[inline]
    #[allow(clippy::cast_possible_truncation)]
    pub fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// Returns a number in `0..n`, with a multiplication instead of a division. The bias is at most
    /// n / 2^64.
    ///
    /// # Panics
    /// If `n` is zero.
    #[inline]
    #[allow(clippy::cast_possible_truncation)]
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "the bound must be at least 1");
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Returns an index in `0..n`.
    ///
    /// # Panics
    /// If `n` is zero.
    #[inline]
    #[allow(clippy::cast_possible_truncation)]
    pub fn index(&mut self, n: usize) -> usize {
        self.below(n as u64) as usize
    }

    /// Returns a number in `range`, whose end is excluded.
    ///
    /// # Panics
    /// If the range is empty.
    #[inline]
    pub fn range(&mut self, range: std::ops::Range<u64>) -> u64 {
        assert!(range.start < range.end, "the range is empty");
        range.start + self.below(range.end - range.start)
    }

    /// Returns `true` with probability `num / den`.
    ///
    /// # Panics
    /// If `den` is zero.
    #[inline]
    pub fn chance(&mut self, num: u64, den: u64) -> bool {
        self.below(den) < num
    }

    /// Returns a number in `[0, 1)` with 53 random bits.
    #[inline]
    #[allow(clippy::cast_precision_loss)]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Fills `out` with random bytes.
    pub fn fill(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            let bytes = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }

    /// Shuffles `items`; every order is equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }

    /// Returns a random element of `items`; `None` if `items` is empty.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        if items.is_empty() { None } else { items.get(self.index(items.len())) }
    }
}

fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seeding gives the published splitmix64 sequence of seed 1234567.
    #[test]
    fn seeding_follows_the_published_sequence() {
        let mut state = 1_234_567;
        assert_eq!(splitmix64(&mut state), 6_457_827_717_110_365_317);
        assert_eq!(splitmix64(&mut state), 3_203_168_211_198_807_973);
    }

    /// The generator gives the published xoshiro256++ sequence of state 1, 2, 3, 4.
    #[test]
    fn numbers_follow_the_published_sequence() {
        let mut prng = Prng { state: [1, 2, 3, 4] };
        let expected = [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386];
        assert_eq!(std::array::from_fn(|_| prng.next_u64()), expected);
    }

    #[test]
    fn below_returns_every_number_under_the_bound() {
        let mut prng = Prng::new(7);
        let mut seen = [0_u32; 6];
        for _ in 0..6000 {
            seen[prng.index(6)] += 1;
        }
        assert!(seen.iter().all(|&count| (800..1200).contains(&count)), "{seen:?}");
        for _ in 0..100 {
            assert!((10..13).contains(&prng.range(10..13)));
        }
    }

    #[test]
    fn chance_has_the_requested_probability() {
        let mut prng = Prng::new(1);
        let hits = (0..10_000).filter(|_| prng.chance(1, 4)).count();
        assert!((2300..2700).contains(&hits), "{hits}");
        assert!(!prng.chance(0, 5));
        assert!(prng.chance(5, 5));
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..100).collect();
        Prng::new(3).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn fill_reaches_the_last_byte() {
        let mut bytes = [0_u8; 13];
        let mut last = 0;
        for seed in 0..20 {
            Prng::new(seed).fill(&mut bytes);
            last |= bytes[12];
        }
        assert_ne!(last, 0);
    }
}
