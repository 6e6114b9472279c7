//! How long a device lasts: the rest of its endurance divided by the rate of writes.
//!
//! A device writes more inside than it receives, because flash is erased in large units: the
//! amplification is near 1 for large sequential writes, as FronDB makes them, and 3 or 4 for random
//! pages on a full device. The amplification cannot be observed from outside, so lifetimes are
//! shown for 1 to 4.

use frondb_core::wear::lifetime;

/// Seconds of a day.
const DAY: f64 = 86_400.0;
/// Seconds of a year.
const YEAR: f64 = 365.25 * DAY;
/// Amplifications for which lifetimes are computed.
const AMPLIFICATIONS: [u32; 4] = [1, 2, 3, 4];

/// The known facts about the wear of a device.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Wear {
    /// Bytes that machines have written to the device so far.
    pub written_bytes: Option<f64>,
    /// The used share of the endurance as the device estimates it: 0 is new, 1 is worn out. May be
    /// above 1.
    pub used: Option<f64>,
    /// The endurance by the datasheet ("TBW"): bytes that machines may write.
    pub rated_bytes: Option<f64>,
    /// Time for which the device has been powered so far, seconds.
    pub powered_seconds: Option<f64>,
}

impl Wear {
    /// Returns the bytes that machines can still write; `None` if unknown. Uses the datasheet's
    /// endurance if it is known; otherwise extrapolates the device's own estimate from the bytes
    /// written, which needs a used share above 0.
    #[must_use]
    pub fn left_bytes(&self) -> Option<f64> {
        let left = match (self.rated_bytes, self.used, self.written_bytes) {
            (Some(rated), Some(used), _) => rated * (1.0 - used),
            (Some(rated), None, written) => rated - written.unwrap_or(0.0),
            (None, Some(used), Some(written)) if used > 0.0 => written * (1.0 - used) / used,
            _ => return None,
        };
        Some(left.max(0.0))
    }

    /// Returns the average bytes written per day while the device was powered.
    #[must_use]
    pub fn past_bytes_per_day(&self) -> Option<f64> {
        let (written, powered) = (self.written_bytes?, self.powered_seconds?);
        (powered > 0.0).then(|| written / powered * DAY)
    }
}

/// The lifetime of a device.
#[derive(Clone, PartialEq, Debug)]
pub struct Endurance {
    /// Bytes that can still be written.
    pub left_bytes: f64,
    /// Bytes that are written per day.
    pub bytes_per_day: f64,
    /// For each amplification inside the device, 1 to 4, the number of days left.
    pub days: Vec<(u32, f64)>,
}

impl Endurance {
    /// Returns the lifetimes at `bytes_per_day`; `None` if the rest of the endurance is unknown, or
    /// nothing is written.
    #[must_use]
    pub fn of(wear: &Wear, bytes_per_day: f64) -> Option<Self> {
        let left_bytes = wear.left_bytes()?;
        let days = |factor: u32| {
            let left = lifetime(bytes_per_day / DAY, left_bytes, f64::from(factor))?;
            Some((factor, left.as_secs_f64() / DAY))
        };
        let days = AMPLIFICATIONS.into_iter().map(days).collect::<Option<Vec<_>>>()?;
        Some(Self { left_bytes, bytes_per_day, days })
    }
}

/// Returns the bytes per second at which `left_bytes` last for `years`, given the amplification
/// inside the device. This rate minus the bytes per second of the log is the value for the option
/// `background_bytes_per_second`.
#[must_use]
pub fn background_rate(left_bytes: f64, years: f64, amplification: u32) -> f64 {
    left_bytes / (years * YEAR * f64::from(amplification.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures that were published for TokuDB: InnoDB wears the device out in about 1,000 days, or
    /// in 246 days with an amplification of 4. With 17 times fewer bytes, the device lasts 17 times
    /// as long at the same amplification: 11 years.
    #[test]
    fn the_lifetimes_of_the_source_documents_follow() {
        let wear = Wear { rated_bytes: Some(984e12), ..Wear::default() };
        let innodb = Endurance::of(&wear, 1e12).unwrap_or_else(|| panic!("no lifetime"));
        assert_eq!(innodb.days[0], (1, 984.0));
        assert_eq!(innodb.days[3], (4, 246.0));
        let fractal = Endurance::of(&wear, 1e12 / 17.0).unwrap_or_else(|| panic!("no lifetime"));
        let years = fractal.days[3].1 / 365.25;
        assert!((11.0..12.0).contains(&years), "{years}");
    }

    #[test]
    fn remaining_life_is_computed_from_the_best_known_figures() {
        let of = |written, used, rated| {
            let powered_seconds = Some(100.0 * DAY);
            let (written_bytes, rated_bytes) = (written, rated);
            Wear { written_bytes, used, rated_bytes, powered_seconds }
        };
        assert_eq!(of(Some(50e12), Some(0.25), Some(100e12)).left_bytes(), Some(75e12));
        assert_eq!(of(Some(50e12), None, Some(100e12)).left_bytes(), Some(50e12));
        assert_eq!(of(None, None, Some(100e12)).left_bytes(), Some(100e12));
        assert_eq!(of(Some(50e12), Some(0.25), None).left_bytes(), Some(150e12));
        assert_eq!(of(Some(50e12), Some(0.0), None).left_bytes(), None, "too new to extrapolate");
        assert_eq!(of(Some(50e12), Some(1.2), None).left_bytes(), Some(0.0), "worn out");
        assert_eq!(of(Some(50e12), None, None).left_bytes(), None);
        assert_eq!(of(Some(50e12), None, None).past_bytes_per_day(), Some(0.5e12));
        assert_eq!(Wear::default().past_bytes_per_day(), None);
    }

    #[test]
    fn a_rate_is_the_inverse_of_a_lifetime() {
        let rate = background_rate(600e12, 5.0, 2);
        assert!((rate - 600e12 / 2.0 / (5.0 * 365.25 * 86_400.0)).abs() < 1.0, "{rate}");
        let wear = Wear { rated_bytes: Some(600e12), ..Wear::default() };
        let days = Endurance::of(&wear, rate * DAY).map_or(0.0, |endurance| endurance.days[1].1);
        assert!((days / 365.25 - 5.0).abs() < 1e-6, "{days}");
        assert_eq!(Endurance::of(&wear, 0.0), None);
    }
}
