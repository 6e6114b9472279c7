//! A permutation of the row numbers, which scatters the popular rows over the table. Otherwise the
//! most popular rows would be neighbours in a few blocks, and a small cache would hold them all.
//!
//! For the same purpose, YCSB hashes a rank modulo the number of rows; a permutation gives each row
//! exactly one rank. A round permutes the numbers below a power of two. If its result is no row
//! number, another round permutes the result ("cycle walking"). The mean is less than two rounds.

/// Odd factors, whose multiplication permutes the numbers below any power of two.
const FACTORS: [u64; 3] = [0x9E37_79B9_7F4A_7C15, 0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB];

/// A permutation of `0..count`; threads share it.
#[derive(Clone, Debug)]
pub(super) struct Permutation {
    count: u64,
    /// Largest number of the range that a round permutes; one less than a power of two.
    mask: u64,
    /// Half of the bits of `mask`, at least one.
    shift: u32,
    seed: u64,
}

impl Permutation {
    /// Creates the permutation of `count` numbers, at least one, for a seed.
    pub(super) fn new(count: u64, seed: u64) -> Self {
        let count = count.max(1);
        let mask = count.next_power_of_two() - 1;
        Self { count, mask, shift: (mask.count_ones() / 2).max(1), seed: seed & mask }
    }

    /// Maps `number`, which must be below the count.
    pub(super) fn of(&self, number: u64) -> u64 {
        let mut number = number;
        loop {
            number = self.round(number);
            if number < self.count {
                return number;
            }
        }
    }

    /// Permutes the numbers up to `mask`: each step has an inverse.
    fn round(&self, number: u64) -> u64 {
        FACTORS.iter().fold(number ^ self.seed, |number, factor| {
            let number = number.wrapping_add(factor >> 32).wrapping_mul(*factor) & self.mask;
            number ^ (number >> self.shift)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_the_image_of_one_number() {
        for count in [1, 2, 3, 4, 5, 1_000, 1_024, 1_025] {
            for seed in [0, 1, u64::MAX] {
                let permutation = Permutation::new(count, seed);
                let mut images: Vec<u64> = (0..count).map(|n| permutation.of(n)).collect();
                images.sort_unstable();
                assert_eq!(images, (0..count).collect::<Vec<_>>(), "{count} {seed}");
            }
        }
    }

    #[test]
    fn neighbours_are_scattered_over_the_whole_range() {
        let (count, permutation) = (1_000_000_u64, Permutation::new(1_000_000, 42));
        let mut images: Vec<u64> = (0..1_000).map(|n| permutation.of(n)).collect();
        let near = images.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 1_000).count();
        assert!(near < 20, "{near} neighbours stay near each other");
        images.sort_unstable();
        for tenth in 0..10 {
            let part = tenth * count / 10..(tenth + 1) * count / 10;
            let share = images.iter().filter(|&image| part.contains(image)).count();
            assert!((50..200).contains(&share), "{share} in {part:?}");
        }
    }
}
