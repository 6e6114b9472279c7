//! The axis of a chart: the lengths of values, and the values with a grid line.

/// Maps values to lengths.
pub(super) struct Scale {
    is_log: bool,
    /// First and last value of the axis; on a logarithmic scale their exponents of ten.
    range: (f64, f64),
}

impl Scale {
    /// Chooses a scale for these values.
    pub(super) fn of(is_log: bool, values: impl Iterator<Item = f64>) -> Self {
        let values = values.filter(|value| *value > 0.0);
        let (least, most) =
            values.fold((f64::INFINITY, 0.0_f64), |(least, most), v| (least.min(v), most.max(v)));
        let range = match (is_log, most > 0.0) {
            (_, false) => (0.0, 1.0),
            // The axis begins below the smallest value, so that its bar has a length.
            (true, true) => ((least * 0.5).log10().floor(), most.log10().ceil().max(0.0)),
            (false, true) => (0.0, most),
        };
        Self { is_log, range: (range.0, range.1.max(range.0 + f64::EPSILON)) }
    }

    /// Returns the length of a value's bar as a fraction of the axis, 0 to 1.
    pub(super) fn part(&self, value: f64) -> f64 {
        let at = if self.is_log { value.max(1e-12).log10() } else { value };
        ((at - self.range.0) / (self.range.1 - self.range.0)).clamp(0.0, 1.0)
    }

    /// Returns the values with a grid line.
    pub(super) fn ticks(&self) -> Vec<f64> {
        let (first, last) = self.range;
        if self.is_log {
            return (first as i32..=last as i32).map(|power| 10_f64.powi(power)).collect();
        }
        let step = round_step((last - first) / 5.0);
        (0..).map(|n| first + f64::from(n) * step).take_while(|tick| *tick <= last).collect()
    }
}

/// Returns the least step of at least this size that is 1, 2 or 5 times a power of ten.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let factors = [1.0, 2.0, 5.0].into_iter();
    let step = factors.map(|factor| factor * power).find(|step| *step >= least);
    step.unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_follow_the_scale() {
        let linear = Scale::of(false, [1.0, 100.0].into_iter());
        assert_eq!((linear.part(0.0), linear.part(25.0), linear.part(100.0)), (0.0, 0.25, 1.0));
        assert_eq!(linear.ticks(), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!([round_step(5_548.0), round_step(3.0)], [10_000.0, 5.0]);
        let log = Scale::of(true, [1.0, 100.0].into_iter());
        assert_eq!(log.ticks(), [0.1, 1.0, 10.0, 100.0]);
        assert!(log.part(1.0) > 0.0 && log.part(100.0) <= 1.0);
        let nothing = Scale::of(true, std::iter::empty());
        assert!(nothing.part(5.0).is_finite());
    }
}
