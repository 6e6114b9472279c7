//! [`Wear`]: the writes of a database, and the lifetime of a drive at their rate.

use std::time::Duration;

use super::counters::WriteSums;

/// The writes of a database to its files, since its totals began and in the last hour.
///
/// The totals survive restarts. They include the bytes and requests that the database passes to the
/// file system. The file system writes more (whole pages at the end of the log, its journal), and
/// so does the drive. Backups are written elsewhere, and do not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Wear {
    /// When the totals began, in seconds since 1970: at the creation of the database, or at its
    /// first open by a version that counts writes.
    pub since: u64,
    /// The moment up to which writes are counted, in seconds since 1970.
    pub until: u64,
    /// The writes from `since` to `until`.
    pub total: Written,
    /// The writes in the hour before `until`; in a shorter period if no sample is that old.
    pub last_hour: Written,
}

/// The writes of a period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Written {
    /// Length of the period, seconds.
    pub seconds: u64,
    /// The writes, by cause.
    pub sums: WriteSums,
}

impl Written {
    /// Returns the average number of bytes written per second. `None` if the period has zero
    /// seconds.
    #[must_use]
    pub fn bytes_per_second(&self) -> Option<f64> {
        (self.seconds > 0).then(|| self.sums.total().bytes as f64 / self.seconds as f64)
    }

    /// Returns the lifetime of a new drive if the database continues to write at this rate: see
    /// [`lifetime`].
    #[must_use]
    pub fn lifetime(&self, endurance_bytes: f64, device_amplification: f64) -> Option<Duration> {
        lifetime(self.bytes_per_second()?, endurance_bytes, device_amplification)
    }
}

/// Returns the lifetime of a drive with an endurance of `endurance_bytes` (its TBW). The drive
/// receives `bytes_per_second`, and writes `device_amplification` bytes inside for each byte
/// received. `None` if the lifetime is unlimited, or if an argument is not valid.
#[must_use]
pub fn lifetime(
    bytes_per_second: f64,
    endurance_bytes: f64,
    device_amplification: f64,
) -> Option<Duration> {
    let worn_per_second = bytes_per_second * device_amplification;
    if worn_per_second.is_nan() || worn_per_second <= 0.0 {
        return None;
    }
    Duration::try_from_secs_f64(endurance_bytes / worn_per_second).ok()
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_endurance_by_rate() {
        let day = 24.0 * 3600.0;
        // 600 TB at 6 MB a second: 1,157 days; a quarter of that if the drive writes four times as
        // much.
        let days = |amplification| {
            lifetime(6e6, 600e12, amplification).map(|long| (long.as_secs_f64() / day) as u64)
        };
        assert_eq!(days(1.0), Some(1157));
        assert_eq!(days(4.0), Some(289));
        assert_eq!(lifetime(0.0, 600e12, 1.0), None);
        assert_eq!(lifetime(1.0, -5.0, 1.0), None);
        assert_eq!(lifetime(f64::NAN, 600e12, 1.0), None);
        assert_eq!(lifetime(1e-300, 600e12, 1.0), None);
    }
}
