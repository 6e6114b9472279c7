//! Chooses the next operation of a mix by weight.

use frondb_core::prng::Prng;

/// Operations with weights.
pub(crate) struct Mix {
    /// For each operation, the sum of its weight and of all weights before it.
    sums: Vec<u64>,
}

impl Mix {
    pub(crate) fn new(weights: &[u64]) -> Self {
        let sums = weights.iter().scan(0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        });
        Self { sums: sums.collect() }
    }

    /// Draws the next operation. Its probability is its weight divided by the sum of all weights.
    pub(crate) fn pick(&self, prng: &mut Prng) -> usize {
        let all = self.sums.last().copied().unwrap_or(0).max(1);
        let at = prng.below(all);
        self.sums.partition_point(|sum| *sum <= at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_is_as_frequent_as_its_weight() {
        let mix = Mix::new(&[1, 0, 6, 3]);
        let mut prng = Prng::new(1);
        let mut seen = [0_u32; 4];
        for _ in 0..10_000 {
            seen[mix.pick(&mut prng)] += 1;
        }
        let expected = [1_000, 0, 6_000, 3_000];
        let near = |(seen, expected): (&u32, u32)| seen.abs_diff(expected) < 200;
        assert!(seen.iter().zip(expected).all(near), "{seen:?}");
        assert_eq!(seen[1], 0);
    }
}
