//! Chooses the nodes that operations use: power laws over ranks. Each rank maps to a scattered id,
//! so that frequently used nodes are not neighbours.

use frondb_core::prng::Prng;

/// Draws ranks below `count`. The probability of the r-th rank, r = 1, 2, .., is proportional to
/// r^-exponent.
#[derive(Clone, Copy)]
pub(super) struct PowerLaw {
    count: u64,
    /// 1 - exponent.
    power: f64,
    /// (count + 1)^power.
    top: f64,
}

impl PowerLaw {
    /// The exponent must be below 1, as all published exponents are. With 0 all ranks are equally
    /// likely.
    pub(super) fn new(count: u64, exponent: f64) -> Self {
        let power = 1.0 - exponent;
        Self { count, power, top: (count as f64 + 1.0).powf(power) }
    }

    /// The rank at quantile `share` of the distribution; ranks begin with 0. Inverts the continuous
    /// distribution and rounds down, which changes the probability of the first ranks a little.
    fn at(&self, share: f64) -> u64 {
        let rank = (1.0 + share * (self.top - 1.0)).powf(1.0 / self.power);
        (rank as u64).clamp(1, self.count) - 1
    }
}

/// A permutation of the numbers below `count`.
#[derive(Clone, Copy)]
pub(super) struct Scatter {
    count: u64,
    step: u64,
    first: u64,
}

impl Scatter {
    /// Neighbouring ranks are `step` apart: a number near the golden section of `count` that is
    /// coprime to `count`. `seed` chooses the place of rank 0.
    pub(super) fn new(count: u64, seed: u64) -> Self {
        let golden = (count as f64 * 0.618_033_988_75) as u64;
        let step = (golden.max(1)..).find(|step| divisor(*step, count) == 1).unwrap_or(1);
        Self { count, step, first: Prng::new(seed).below(count) }
    }

    /// The number to which the permutation maps this rank.
    pub(super) fn place(&self, rank: u64) -> u64 {
        let far = u128::from(rank) * u128::from(self.step) + u128::from(self.first);
        (far % u128::from(self.count)) as u64
    }
}

fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// The nodes that one kind of operation uses.
#[derive(Clone, Copy)]
pub(super) struct Access {
    law: PowerLaw,
    scatter: Scatter,
}

/// Published exponents for reads and writes of links and for reads and updates of nodes; nodes are
/// deleted with equal probability. The second number is a seed, so that each kind of operation has
/// different frequently used nodes.
pub(super) const LINK_READS: (f64, u64) = (0.8, 1);
pub(super) const LINK_WRITES: (f64, u64) = (0.741, 2);
pub(super) const NODE_READS: (f64, u64) = (0.625, 3);
pub(super) const NODE_UPDATES: (f64, u64) = (0.606, 4);
pub(super) const NODE_DELETES: (f64, u64) = (0.0, 5);

impl Access {
    pub(super) fn new(nodes: u64, (exponent, seed): (f64, u64)) -> Self {
        Self { law: PowerLaw::new(nodes, exponent), scatter: Scatter::new(nodes, seed) }
    }

    /// The id of a random node.
    pub(super) fn id(&self, prng: &mut Prng) -> u64 {
        self.of_rank(self.law.at(prng.unit()))
    }

    /// The id of the node with this rank; rank 0 is the most frequently used one.
    pub(super) fn of_rank(&self, rank: u64) -> u64 {
        1 + self.scatter.place(rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the shares of the first ranks with the exact sums of the power law.
    #[test]
    fn ranks_follow_the_power_law() {
        for exponent in [0.0, 0.606, 0.8] {
            let (count, law) = (100_000, PowerLaw::new(100_000, exponent));
            let weight = |rank: u64| (rank as f64).powf(-exponent);
            let all: f64 = (1..=count).map(weight).sum();
            for first in [100, 1_000, 10_000, 50_000] {
                let expected = (1..=first).map(weight).sum::<f64>() / all;
                let draws = (0..100_000).map(|i| law.at(f64::from(i) / 1e5));
                let share = draws.filter(|rank| *rank < first).count() as f64 / 1e5;
                let near = (share - expected).abs() < 0.02;
                assert!(near, "exponent {exponent}, {first} ranks: {share}, not {expected}");
            }
            assert_eq!((law.at(0.0), law.at(0.999_999_9)), (0, count - 1));
        }
    }

    #[test]
    fn a_scatter_is_a_permutation_that_separates_neighbours() {
        for count in [1, 2, 3, 10, 64, 1_000, 9_973] {
            let scatter = Scatter::new(count, 7);
            let mut places: Vec<u64> = (0..count).map(|rank| scatter.place(rank)).collect();
            if count >= 1_000 {
                let near = places.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 100);
                assert_eq!(near.count(), 0);
            }
            places.sort_unstable();
            assert!(places.into_iter().eq(0..count));
        }
    }

    #[test]
    fn often_used_nodes_of_reads_and_writes_differ() {
        let [reads, writes] = [LINK_READS, LINK_WRITES].map(|kind| Access::new(1_000_000, kind));
        assert_ne!(reads.of_rank(0), writes.of_rank(0));
        let mut prng = Prng::new(1);
        assert!((0..1_000).all(|_| (1..=1_000_000).contains(&reads.id(&mut prng))));
    }
}
