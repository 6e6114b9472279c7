//! Random numbers with the distributions of real data: few values are frequent, most are rare.
//!
//! Logarithms may differ in the last digit between platforms, so only engines on one machine are
//! guaranteed to get the same rows.

use frondb_core::prng::Prng;

/// Draws indices with given weights, each in constant time (Walker's alias method, built as by
/// Vose): draws a slot uniformly, and returns the slot's index or its alias.
#[derive(Clone, Debug)]
pub(super) struct Skew {
    slots: Vec<Slot>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The probability of the slot's own index.
    keep: f32,
    alias: u32,
}

impl Skew {
    /// Gives index i of `0..count` the weight `1 / (i + 1)^exponent`. `count` is at least 1.
    pub(super) fn zipf(count: usize, exponent: f64) -> Self {
        let weights: Vec<f64> = (1..=count).map(|rank| (rank as f64).powf(-exponent)).collect();
        let scale = count as f64 / weights.iter().sum::<f64>();
        let mut shares: Vec<f64> = weights.iter().map(|weight| weight * scale).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..count).partition(|&index| shares[index] < 1.0);
        let mut slots: Vec<Slot> =
            (0..count).map(|index| Slot { keep: 1.0, alias: index as u32 }).collect();
        while let (Some(poor), Some(rich)) = (small.pop(), large.pop()) {
            slots[poor] = Slot { keep: shares[poor] as f32, alias: rich as u32 };
            shares[rich] -= 1.0 - shares[poor];
            if shares[rich] < 1.0 { small.push(rich) } else { large.push(rich) }
        }
        Self { slots }
    }

    /// Draws a random index.
    pub(super) fn draw(&self, prng: &mut Prng) -> usize {
        let slot = prng.index(self.slots.len());
        let Slot { keep, alias } = self.slots[slot];
        if prng.unit() < f64::from(keep) { slot } else { alias as usize }
    }
}

/// Draws the time until the next event, if events are independent and on average `mean` apart.
pub(super) fn exponential(prng: &mut Prng, mean: f64) -> f64 {
    -mean * (1.0 - prng.unit()).ln()
}

/// Draws a log-normal number, the usual distribution of durations and sizes. `median` is the
/// median, `sigma` the standard deviation of the logarithm.
pub(super) fn lognormal(prng: &mut Prng, median: f64, sigma: f64) -> f64 {
    // Box-Muller transform: two uniform numbers give a normal one.
    let radius = (-2.0 * (1.0 - prng.unit()).ln()).sqrt();
    median * (sigma * radius * (std::f64::consts::TAU * prng.unit()).cos()).exp()
}

/// Draws an element of `items`, which must not be empty.
pub(super) fn any<'a, T: ?Sized>(prng: &mut Prng, items: &[&'a T]) -> &'a T {
    items[prng.index(items.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 200_000;

    #[test]
    fn frequencies_follow_the_weights() {
        let (skew, mut prng) = (Skew::zipf(1_000, 1.0), Prng::new(1));
        let mut counts = vec![0_usize; 1_000];
        (0..DRAWS).for_each(|_| counts[skew.draw(&mut prng)] += 1);
        // The sum of the first 1,000 members of the harmonic series is 7.485.
        for (index, weight) in [(0, 1.0), (1, 0.5), (9, 0.1), (99, 0.01)] {
            let expected = DRAWS as f64 * weight / 7.485;
            let distance = (counts[index] as f64 - expected).abs();
            assert!(distance < 5.0 * expected.sqrt(), "{index}: {} {expected}", counts[index]);
        }
        assert_eq!(Skew::zipf(1, 1.0).draw(&mut prng), 0);
    }

    #[test]
    fn times_have_their_mean_and_their_median() {
        let mut prng = Prng::new(2);
        let mean: f64 = (0..DRAWS).map(|_| exponential(&mut prng, 7.0)).sum::<f64>() / DRAWS as f64;
        assert!((mean - 7.0).abs() < 0.1, "{mean}");
        let below = (0..DRAWS).filter(|_| lognormal(&mut prng, 40.0, 0.8) < 40.0).count();
        assert!((below as f64 / DRAWS as f64 - 0.5).abs() < 0.01, "{below}");
    }
}
