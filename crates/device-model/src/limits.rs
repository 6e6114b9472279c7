//! Limits of a device: requests per second and bytes per second that it does not exceed, whatever
//! the number of threads. Rented volumes have both, set by contract; a bus or a controller has
//! them, too.
//!
//! ```text
//!   seconds a request (log)                     A device without limits bends over about a decade
//!        |                        . /           of sizes, from S to B/W. Limits make a knee:
//!        |                     . /
//!        |  1/requests ______./  <- knee        T = max(1/requests, S + B/W, B/bytes)
//!        |             . .     bytes a second
//!        +-------------------------------- bytes (log)
//! ```
//! The points of the largest number of threads are divided in every possible way into a flat part,
//! a line, and a part that is proportional to the size; the best division shows the limits. The
//! limits are accepted only if they describe the points much better than a line alone.

use crate::line::Line;

/// The limits of a device.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Limits {
    /// Requests per second; `None` if the measurement shows no such limit.
    pub requests_per_second: Option<f64>,
    /// Bytes per second; `None` if the measurement shows no such limit.
    pub bytes_per_second: Option<f64>,
}

/// Minimum number of points for a part of the curve.
const PART_POINTS_MIN: usize = 3;
/// A line alone is good enough, without limits, up to this root mean square of the relative
/// residuals.
const LINE_ERROR_MAX: f64 = 0.05;
/// Smaller errors are noise, and do not make one division better than another.
const NOISE: f64 = 0.02;
/// Each parameter must reduce the error by this share. Otherwise a line through a flat part would
/// hide a limit.
const PARAMETER_SHARE: f64 = 0.1;
/// Limits must reduce the error of a line alone to at most this share.
const ERROR_SHARE_MAX: f64 = 0.5;
/// A limit determines the time of a point if the limit's time is at least this share of the point's
/// time.
const AT_LIMIT: f64 = 0.8;
/// A measured rate is near a limit if the rate divided by the limit is in this range.
const NEAR_LIMIT: std::ops::Range<f64> = 0.75..1.4;

impl Limits {
    /// Finds the limits that `points` show. `points` are (bytes, seconds between the ends of
    /// requests) of the largest number of threads, by size. `growth` compares the largest number of
    /// threads with the next smaller one: the factors by which the rate of the smallest requests
    /// and the number of threads grow. `None` if only one number of threads was measured.
    #[must_use]
    pub fn of(points: &[(f64, f64)], growth: Option<(f64, f64)>) -> Self {
        let Some(line) = Line::fit(points) else { return Self::default() };
        let alone = error(points, |bytes| line.seconds(bytes));
        if alone <= LINE_ERROR_MAX {
            return Self::default();
        }
        let best = divisions(points).min_by(|a, b| {
            a.penalized().total_cmp(&b.penalized()).then(a.error.total_cmp(&b.error))
        });
        let Some(Division { mut limits, error, .. }) = best else { return Self::default() };
        if error > alone * ERROR_SHARE_MAX {
            return Self::default();
        }
        // A rate that still grows with the number of threads has not reached a limit yet.
        if growth.is_some_and(|(rate, threads)| rate > threads.sqrt()) {
            limits.requests_per_second = None;
        }
        limits
    }

    /// Replaces each limit by the median of the measured rates near it, with any number of threads,
    /// because a single point is noisy.
    #[must_use]
    pub fn refined(self, points: impl Iterator<Item = (f64, f64)> + Clone) -> Self {
        let is_small = |bytes: f64| self.knee_bytes().is_none_or(|knee| bytes <= knee);
        let is_large = |bytes: f64| self.knee_bytes().is_none_or(|knee| bytes >= knee);
        let requests = points.clone().filter(|(bytes, _)| is_small(*bytes)).map(|(_, t)| t.recip());
        let bytes = points.filter(|(bytes, _)| is_large(*bytes)).map(|(bytes, t)| bytes / t);
        Self {
            requests_per_second: median_near(self.requests_per_second, requests),
            bytes_per_second: median_near(self.bytes_per_second, bytes),
        }
    }

    /// Returns whether there is any limit.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.requests_per_second.is_some() || self.bytes_per_second.is_some()
    }

    /// Returns the least time between the ends of requests of this size, seconds; 0 without limits.
    #[must_use]
    pub fn seconds(&self, bytes: f64) -> f64 {
        let requests = self.requests_per_second.map_or(0.0, f64::recip);
        requests.max(self.bytes_per_second.map_or(0.0, |rate| bytes / rate))
    }

    /// Returns the size at which requests meet both limits, bytes: smaller requests do not use the
    /// bandwidth, larger ones do not use the request rate.
    #[must_use]
    pub fn knee_bytes(&self) -> Option<f64> {
        Some(self.bytes_per_second? / self.requests_per_second?)
    }

    /// Returns whether a limit, and not the device behind it, determines the time of this point.
    #[must_use]
    pub fn determine(&self, bytes: f64, seconds: f64) -> bool {
        self.seconds(bytes) >= seconds * AT_LIMIT
    }
}

/// A way to divide the points into a flat, a middle and a proportional part.
struct Division {
    limits: Limits,
    parameters: u32,
    /// The error of all points: root mean square of the relative residuals.
    error: f64,
}

impl Division {
    /// Returns the error by which divisions are compared: increased for each parameter, because
    /// more parameters always fit better.
    fn penalized(&self) -> f64 {
        self.error.max(NOISE) * (1.0 + PARAMETER_SHARE * f64::from(self.parameters))
    }

    /// Returns the division whose flat part has the first `flat` points and whose proportional part
    /// begins at index `rest`; `None` if a part has too few points, or only the line has points.
    fn of(points: &[(f64, f64)], flat: usize, rest: usize) -> Option<Self> {
        let parts = [&points[..flat], &points[flat..rest], &points[rest..]];
        let is_known = |part: &[(f64, f64)]| part.is_empty() || part.len() >= PART_POINTS_MIN;
        if !parts.into_iter().all(is_known) || parts[0].len() + parts[2].len() == 0 {
            return None;
        }
        let line = if parts[1].is_empty() { None } else { Some(Line::fit(parts[1])?) };
        let limits = Limits {
            requests_per_second: mean_of(parts[0], |_| 1.0).map(f64::recip),
            bytes_per_second: mean_of(parts[2], |bytes| bytes).map(f64::recip),
        };
        let seconds =
            |bytes| limits.seconds(bytes).max(line.map_or(0.0, |line| line.seconds(bytes)));
        let count = |limit: Option<f64>| u32::from(limit.is_some());
        let parameters = count(limits.requests_per_second)
            + count(limits.bytes_per_second)
            + line.map_or(0, |_| 2);
        Some(Self { limits, parameters, error: error(points, seconds) })
    }
}

fn divisions(points: &[(f64, f64)]) -> impl Iterator<Item = Division> + '_ {
    let all = points.len();
    (0..=all)
        .flat_map(move |flat| (flat..=all).map(move |rest| (flat, rest)))
        .filter_map(move |(flat, rest)| Division::of(points, flat, rest))
}

/// Returns the median of the rates that are near a limit; the limit if none is.
fn median_near(limit: Option<f64>, rates: impl Iterator<Item = f64>) -> Option<f64> {
    let limit = limit?;
    let mut near: Vec<f64> = rates.filter(|rate| NEAR_LIMIT.contains(&(rate / limit))).collect();
    near.sort_by(f64::total_cmp);
    near.get(near.len() / 2).copied().or(Some(limit))
}

/// Returns the factor c for which c * unit(bytes) is closest to the seconds of the points, by
/// relative errors.
fn mean_of(points: &[(f64, f64)], unit: impl Fn(f64) -> f64) -> Option<f64> {
    let shares = || points.iter().map(|(bytes, seconds)| unit(*bytes) / seconds);
    let squares: f64 = shares().map(|share| share * share).sum();
    (squares > 0.0).then(|| shares().sum::<f64>() / squares)
}

/// Returns the root mean square of the relative residuals.
fn error(points: &[(f64, f64)], seconds: impl Fn(f64) -> f64) -> f64 {
    let sum: f64 = points.iter().map(|(bytes, t)| ((seconds(*bytes) - t) / t).powi(2)).sum();
    (sum / points.len() as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(seconds: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        (12..=22).map(|shift| f64::from(1 << shift)).map(|b| (b, seconds(b))).collect()
    }

    #[track_caller]
    fn assert_close(found: Option<f64>, truth: f64) {
        assert!(found.is_some_and(|found| (found / truth - 1.0).abs() < 0.03), "{found:?} {truth}");
    }

    #[test]
    fn both_limits_of_a_rented_volume_are_found() {
        let volume = points(|b| (1.0_f64 / 3000.0).max(b / 125e6));
        let limits = Limits::of(&volume, Some((1.0, 4.0)));
        assert_close(limits.requests_per_second, 3000.0);
        assert_close(limits.bytes_per_second, 125e6);
        assert_close(limits.knee_bytes(), 125e6 / 3000.0);
        assert!(limits.determine(4096.0, 1.0 / 3000.0) && !limits.determine(4096.0, 1e-3));
    }

    #[test]
    fn a_limit_is_the_median_of_the_points_near_it() {
        let volume = points(|b| (1.0_f64 / 3000.0).max(b / 125e6));
        let coarse = Limits { requests_per_second: Some(3400.0), bytes_per_second: Some(115e6) };
        let slow = points(|b| 2e-3 + b / 50e6);
        let refined = coarse.refined(volume.iter().chain(&slow).copied());
        assert_close(refined.requests_per_second, 3000.0);
        assert_close(refined.bytes_per_second, 125e6);
        assert_eq!(coarse.refined(slow.iter().copied()), coarse, "no point is near");
        assert!(!Limits::default().refined(volume.into_iter()).is_any());
    }

    #[test]
    fn each_limit_is_found_without_the_other() {
        let requests = points(|b| (1.0_f64 / 5000.0).max(20e-6 + b / 1e9));
        let limits = Limits::of(&requests, Some((1.1, 4.0)));
        assert_close(limits.requests_per_second, 5000.0);
        let bytes = points(|b| (3.2e-3 / 16.0 + b / 8e9).max(b / 500e6));
        let limits = Limits::of(&bytes, Some((3.9, 4.0)));
        assert_close(limits.bytes_per_second, 500e6);
        assert_eq!(limits.requests_per_second, None, "the rate still grows");
    }

    #[test]
    fn a_line_has_no_limits() {
        for (s, w) in [(16e-6, 250e6), (500e-6, 120e6), (8e-3, 200e6), (5e-6, 7e9)] {
            let limits = Limits::of(&points(|b| s + b / w), Some((1.0, 4.0)));
            assert!(!limits.is_any(), "{s} {w} {limits:?}");
            let mut wavy = 0.0;
            let noisy = points(|b| s + b / w).into_iter().map(|(b, t)| {
                wavy += 1.7;
                (b, t * (1.0 + 0.1 * f64::sin(wavy)))
            });
            assert!(!Limits::of(&noisy.collect::<Vec<_>>(), None).is_any(), "{s} {w}");
        }
        assert!(!Limits::of(&[], None).is_any());
    }
}
