//! Zipfian ranks: rank r, counted from 1, is drawn with a probability proportional to 1 / r^theta.
//!
//! The method is from J. Gray, P. Sundaresan, S. Englert, K. Baclawski and P. Weinberger, "Quickly
//! Generating Billion-Record Synthetic Databases", SIGMOD 1994. YCSB uses it too. It needs one
//! random number a draw, no table and no rejection. The first two ranks have exact probabilities,
//! the other ranks approximate ones from a continuous distribution.
//!
//! The generator is immutable, so threads share it.

use frondb_core::prng::Prng;

/// The skew of YCSB's zipfian workloads.
pub(super) const THETA: f64 = 0.99;

/// Ranks up to this one enter the sum of [`zeta`] one by one.
const SUMMED: u64 = 10_000;

/// Draws ranks.
#[derive(Clone, Debug)]
pub(super) struct Zipfian {
    ranks: u64,
    theta: f64,
    /// The sum of the weights of all ranks.
    zeta: f64,
    /// 1 / (1 - theta).
    alpha: f64,
    /// Scales a random number so that the approximation covers the ranks after the second.
    eta: f64,
}

impl Zipfian {
    /// Creates a generator for `ranks` ranks, at least one. `theta` is between 0 and 1.
    pub(super) fn new(ranks: u64, theta: f64) -> Self {
        let ranks = ranks.max(1);
        let zeta_of_all = zeta(ranks, theta);
        let head = (2.0 / ranks as f64).powf(1.0 - theta);
        let eta = (1.0 - head) / (1.0 - zeta(2, theta) / zeta_of_all);
        Self { ranks, theta, zeta: zeta_of_all, alpha: 1.0 / (1.0 - theta), eta }
    }

    /// Draws a rank, counted from 0.
    pub(super) fn rank(&self, prng: &mut Prng) -> u64 {
        let random = prng.unit();
        let weight = random * self.zeta;
        if weight < 1.0 || self.ranks == 1 {
            return 0;
        }
        if weight < 1.0 + 0.5_f64.powf(self.theta) || self.ranks == 2 {
            return 1;
        }
        let share = (self.eta * random - self.eta + 1.0).powf(self.alpha);
        ((self.ranks as f64 * share) as u64).min(self.ranks - 1)
    }
}

/// Returns the sum of 1 / r^theta over the ranks 1 to `ranks`. Beyond [`SUMMED`], the
/// Euler-Maclaurin formula replaces the sum, because a hundred million powers would take seconds.
fn zeta(ranks: u64, theta: f64) -> f64 {
    let weight = |rank: f64| rank.powf(-theta);
    let head: f64 = (1..=ranks.min(SUMMED)).map(|rank| weight(rank as f64)).sum();
    if ranks <= SUMMED {
        return head;
    }
    let (from, to) = (SUMMED as f64, ranks as f64);
    let integral = (to.powf(1.0 - theta) - from.powf(1.0 - theta)) / (1.0 - theta);
    let slope = |rank: f64| -theta * rank.powf(-theta - 1.0);
    head + integral + (weight(to) - weight(from)) / 2.0 + (slope(to) - slope(from)) / 12.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(ranks: u64, draws: u64) -> Vec<u64> {
        let (zipfian, mut prng) = (Zipfian::new(ranks, THETA), Prng::new(7));
        let mut counts = vec![0; ranks as usize];
        for _ in 0..draws {
            counts[zipfian.rank(&mut prng) as usize] += 1;
        }
        counts
    }

    #[test]
    fn the_shortened_sum_equals_the_full_sum() {
        let full: f64 = (1..=1_000_000_u64).map(|rank| (rank as f64).powf(-THETA)).sum();
        let short = zeta(1_000_000, THETA);
        assert!((short / full - 1.0).abs() < 1e-9, "{short} and {full}");
        assert_eq!(zeta(2, THETA), 1.0 + 2.0_f64.powf(-THETA));
    }

    #[test]
    fn ranks_have_about_their_probabilities() {
        let (ranks, draws) = (1_000, 1_000_000);
        let (counts, sum) = (counts(ranks, draws), zeta(ranks, THETA));
        let share =
            |ranks: std::ops::Range<usize>| counts[ranks].iter().sum::<u64>() as f64 / draws as f64;
        for (ranks, tolerance) in [(0..1, 0.02), (1..2, 0.02), (2..10, 0.15), (10..1_000, 0.1)] {
            let expected: f64 =
                ranks.clone().map(|rank| (rank as f64 + 1.0).powf(-THETA) / sum).sum();
            let found = share(ranks.clone());
            assert!((found / expected - 1.0).abs() < tolerance, "{ranks:?}: {found}, {expected}");
        }
        assert!(counts.iter().all(|&count| count > 0), "every rank is drawn");
    }

    #[test]
    fn the_same_seed_draws_the_same_ranks() {
        assert_eq!(counts(5_000, 10_000), counts(5_000, 10_000));
    }

    #[test]
    fn few_ranks_are_all_drawn_and_no_others() {
        for ranks in 1..5 {
            assert!(counts(ranks, 1_000).iter().all(|&count| count > 0), "{ranks}");
        }
    }
}
