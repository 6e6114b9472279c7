//! The line T = S + B/W through measured times, by least squares of relative errors: a request of 4
//! KiB and one of 4 MiB have the same weight, although their times differ by a factor of hundreds.
//!
//! With t the measured and T the fitted time, the sum of ((T - t) / t)^2 over the points is least.
//! That is the usual weighted fit with weights 1/t^2, which has a closed form. A negative S or 1/W
//! has no meaning: the other parameter is then fitted alone.

/// Largest relative residual of a line that fits.
const RESIDUAL_MAX: f64 = 0.25;

/// A fitted line T = S + B/W.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Line {
    /// S: the start-up time of a request, seconds.
    pub startup_seconds: f64,
    /// W: bytes per second; infinite if the time does not depend on the size.
    pub bytes_per_second: f64,
    /// The share of the variance of the times (weighted as in the fit) that the line explains, at
    /// most 1.
    pub r_squared: f64,
    /// The largest relative difference between the line and a point: 0.1 is a tenth of the
    /// measured time.
    pub worst_residual: f64,
}

impl Line {
    /// Returns a line whose parameters are known, for example from a datasheet.
    #[must_use]
    pub const fn known(startup_seconds: f64, bytes_per_second: f64) -> Self {
        Self { startup_seconds, bytes_per_second, r_squared: 1.0, worst_residual: 0.0 }
    }

    /// Returns the line that fits (bytes, seconds) points best. Returns `None` for fewer than three
    /// points, because any two points lie exactly on a line, and for points that all have the same
    /// size. Ignores points whose time is infinite, not a number, or not above 0.
    #[must_use]
    pub fn fit(points: &[(f64, f64)]) -> Option<Self> {
        let points: Vec<(f64, f64)> =
            points.iter().copied().filter(|(_, t)| *t > 0.0 && t.is_finite()).collect();
        let first = points.first()?.0;
        if points.len() < 3 || points.iter().all(|(b, _)| *b == first) {
            return None;
        }
        let (s, slope) = coefficients(&points);
        let bytes_per_second = if slope > 0.0 { slope.recip() } else { f64::INFINITY };
        let mut line = Self::known(s, bytes_per_second);
        line.worst_residual = line.residuals(&points).map(f64::abs).fold(0.0, f64::max);
        let weights = || points.iter().map(|(_, t)| (t * t).recip());
        let mean = points.iter().map(|(_, t)| t.recip()).sum::<f64>() / weights().sum::<f64>();
        let total: f64 = points.iter().map(|(_, t)| ((t - mean) / t).powi(2)).sum();
        let left: f64 = line.residuals(&points).map(|r| r * r).sum();
        line.r_squared = if total > 0.0 { 1.0 - left / total } else { 0.0 };
        Some(line)
    }

    /// Returns the time of a request, seconds.
    #[must_use]
    pub fn seconds(&self, bytes: f64) -> f64 {
        self.startup_seconds + bytes / self.bytes_per_second
    }

    /// Returns S*W: the size at which the transfer takes half of the time, bytes; `None` if the
    /// time does not depend on the size.
    #[must_use]
    pub fn half_power_bytes(&self) -> Option<f64> {
        let bytes = self.startup_seconds * self.bytes_per_second;
        bytes.is_finite().then_some(bytes)
    }

    /// Returns whether the line describes the device: no point differs from it by more than a
    /// quarter.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.worst_residual <= RESIDUAL_MAX
    }

    /// Returns the relative residuals of points.
    fn residuals<'a>(&'a self, points: &'a [(f64, f64)]) -> impl Iterator<Item = f64> + 'a {
        points.iter().map(|(b, t)| (self.seconds(*b) - t) / t)
    }
}

/// Returns S and 1/W.
fn coefficients(points: &[(f64, f64)]) -> (f64, f64) {
    // Dividing T = S + B/W by t gives 1 = S * x + 1/W * y with x = 1/t and y = B/t: ordinary least
    // squares in two unknowns.
    let (mut xx, mut xy, mut yy, mut x1, mut y1) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (bytes, t) in points {
        let (x, y) = (t.recip(), bytes / t);
        xx += x * x;
        xy += x * y;
        yy += y * y;
        x1 += x;
        y1 += y;
    }
    let determinant = xx * yy - xy * xy;
    let s = (x1 * yy - y1 * xy) / determinant;
    let slope = (y1 * xx - x1 * xy) / determinant;
    match (s > 0.0, slope > 0.0) {
        (true, true) => (s, slope),
        (false, _) if yy > 0.0 => (0.0, y1 / yy),
        _ => (x1 / xx, 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes() -> impl Iterator<Item = f64> {
        (12..=22).map(|shift| f64::from(1 << shift))
    }

    fn close(a: f64, b: f64, share: f64) -> bool {
        (a / b - 1.0).abs() <= share
    }

    #[test]
    fn a_known_line_is_found() {
        let x25e = Line::known(500e-6, 120e6);
        let points: Vec<_> = sizes().map(|b| (b, x25e.seconds(b))).collect();
        let Some(line) = Line::fit(&points) else { panic!("no line") };
        assert!(close(line.startup_seconds, 500e-6, 1e-9), "{line:?}");
        assert!(close(line.bytes_per_second, 120e6, 1e-9), "{line:?}");
        assert!(line.r_squared > 0.999_999 && line.is_good());
    }

    #[test]
    fn points_beside_the_line_count_by_their_relative_distance() {
        let truth = Line::known(100e-6, 1e9);
        let noise = [0.04, -0.05, 0.03, -0.02, 0.05, -0.04, 0.02, 0.03, -0.05, 0.01, -0.02];
        let points: Vec<_> =
            sizes().zip(noise).map(|(b, e)| (b, truth.seconds(b) * (1.0 + e))).collect();
        let Some(line) = Line::fit(&points) else { panic!("no line") };
        assert!(close(line.startup_seconds, 100e-6, 0.03), "{line:?}");
        assert!(close(line.bytes_per_second, 1e9, 0.03), "{line:?}");
        assert!(line.worst_residual < 0.07 && line.is_good() && line.r_squared < 1.0);
    }

    #[test]
    fn a_bend_is_no_line() {
        let points: Vec<_> = sizes().map(|b| (b, (1.0_f64 / 3000.0).max(b / 125e6))).collect();
        let Some(line) = Line::fit(&points) else { panic!("no line") };
        assert!(!line.is_good(), "{line:?}");
    }

    #[test]
    fn neither_parameter_is_negative() {
        let flat: Vec<_> = sizes().zip([1e-3, 0.99e-3].into_iter().cycle()).collect();
        let Some(line) = Line::fit(&flat) else { panic!("no line") };
        assert!(line.startup_seconds > 0.0 && line.bytes_per_second > 0.0);
        let falling = [(4096.0, 2e-3), (8192.0, 1.5e-3), (16384.0, 1e-3)];
        let Some(line) = Line::fit(&falling) else { panic!("no line") };
        assert_eq!((line.bytes_per_second, line.half_power_bytes()), (f64::INFINITY, None));
        let steep = [(4096.0, 1e-6), (8192.0, 9e-6), (16384.0, 50e-6)];
        let Some(line) = Line::fit(&steep) else { panic!("no line") };
        assert_eq!(line.startup_seconds, 0.0);
    }

    #[test]
    fn two_points_are_no_fit() {
        assert_eq!(Line::fit(&[(4096.0, 1e-3), (8192.0, 2e-3)]), None);
        assert_eq!(Line::fit(&[(4096.0, 1e-3); 3]), None);
        assert_eq!(Line::fit(&[(4096.0, 1e-3), (8192.0, 2e-3), (16384.0, 0.0)]), None);
    }
}
