//! The model of a device from the measured points: a line for each number of threads, the limits,
//! and the number of requests that the device serves at once.

use crate::limits::Limits;
use crate::line::Line;
use crate::measurement::{Operation, Point};

/// If the device serves at least this share of the largest number of threads at once, the threads
/// do not saturate it.
const UNSATURATED: f64 = 0.9;

/// The fit of the points of one number of threads.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ThreadLine {
    /// Number of threads that made the requests.
    pub threads: usize,
    /// The line through the times between the ends of requests. These are times of the whole
    /// device, so S shrinks and W grows with the number of threads, while S*W keeps its meaning.
    /// `None` if fewer than three points have times that no limit determines.
    pub line: Option<Line>,
}

/// Number of requests that a device serves at once: P.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Parallelism {
    /// P: the highest rate of small requests of any number of threads, divided by the rate of one
    /// thread. The rate of one thread is its share of the rate of the fewest threads.
    pub requests: f64,
    /// Whether more threads were tried than the device serves at once. If not, `requests` is a
    /// lower bound.
    pub is_reached: bool,
}

/// The model of one operation on a device.
#[derive(Clone, PartialEq, Debug)]
pub struct Model {
    /// Reads or writes.
    pub operation: Operation,
    /// A line for each number of threads, in ascending order.
    pub lines: Vec<ThreadLine>,
    /// Number of requests that the device serves at once; `None` if only one number of threads was
    /// measured, or if a limit hides the number.
    pub parallelism: Option<Parallelism>,
    /// Limits that more threads do not exceed.
    pub limits: Limits,
}

impl Model {
    /// Returns the model of the points of one operation; `None` if there are none.
    #[must_use]
    pub fn of(operation: Operation, points: &[Point]) -> Option<Self> {
        let points: Vec<&Point> = points.iter().filter(|p| p.operation == operation).collect();
        let mut threads: Vec<usize> = points.iter().map(|point| point.threads).collect();
        threads.sort_unstable();
        threads.dedup();
        let curves: Vec<(usize, Curve)> =
            threads.iter().map(|threads| (*threads, curve(&points, *threads))).collect();
        let all = curves.iter().flat_map(|(_, curve)| curve.iter().copied());
        let limits = limits_of(&curves)?.refined(all);
        let lines = curves.iter().map(|(threads, curve)| {
            let free: Curve =
                curve.iter().copied().filter(|(b, t)| !limits.determine(*b, *t)).collect();
            // A point whose time a limit determines says nothing about the device behind the limit.
            let whole = if limits.is_any() { &free } else { curve };
            ThreadLine { threads: *threads, line: Line::fit(whole) }
        });
        let lines: Vec<ThreadLine> = lines.collect();
        let parallelism = parallelism(&curves, &lines, limits);
        Some(Self { operation, lines, parallelism, limits })
    }

    /// Returns the time that a thread waits for one request while the smallest number of threads
    /// makes requests, in seconds. It follows from the line of these threads, but is not less than
    /// the limits allow.
    #[must_use]
    pub fn seconds(&self, bytes: f64) -> f64 {
        let Some(first) = self.lines.first() else { return 0.0 };
        let between = first.line.map_or(0.0, |line| line.seconds(bytes));
        between.max(self.limits.seconds(bytes)) * first.threads as f64
    }

    /// Returns the half-power point of the device, bytes: the size at which its two limits meet if
    /// it has both, otherwise the geometric mean of the half-power points of the lines. `None` if
    /// no line has one above 0.
    #[must_use]
    pub fn half_power_bytes(&self) -> Option<f64> {
        if let Some(knee) = self.limits.knee_bytes() {
            return Some(knee);
        }
        let points = self.lines.iter().filter_map(|line| line.line?.half_power_bytes());
        let logs: Vec<f64> = points.filter(|bytes| *bytes > 0.0).map(f64::ln).collect();
        (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
    }

    /// Returns whether the model describes the device: every line fits, or limits determine the
    /// times.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.lines.iter().all(|line| match line.line {
            Some(line) => line.is_good(),
            None => self.limits.is_any(),
        })
    }
}

/// (bytes, seconds between the ends of requests), by size.
type Curve = Vec<(f64, f64)>;

fn curve(points: &[&Point], threads: usize) -> Curve {
    let of_threads = points.iter().filter(|point| point.threads == threads);
    let mut curve: Curve =
        of_threads.map(|point| (point.bytes as f64, point.seconds_between)).collect();
    curve.sort_by(|a, b| a.0.total_cmp(&b.0));
    curve
}

/// Returns the limits that the curve of the largest number of threads shows; `None` without curves.
fn limits_of(curves: &[(usize, Curve)]) -> Option<Limits> {
    let (most, curve) = curves.last()?;
    let fewer = curves.len().checked_sub(2).and_then(|at| curves.get(at));
    let growth = fewer.and_then(|(threads, fewer)| {
        let (_, slow) = fewer.first()?;
        let (_, fast) = curve.first()?;
        Some((slow / fast, *most as f64 / *threads as f64))
    });
    Some(Limits::of(curve, growth))
}

/// Determines P from the request sizes up to an eighth of the half-power point of the smallest
/// number of threads, and at least from the two smallest sizes: such requests mostly wait for the
/// start-up time, while larger ones share a bandwidth. Uses the median over the sizes.
fn parallelism(
    curves: &[(usize, Curve)],
    lines: &[ThreadLine],
    limits: Limits,
) -> Option<Parallelism> {
    let (fewest, alone) = curves.first()?;
    let (most, _) = curves.last()?;
    let half_power = lines.first()?.line.and_then(|line| line.half_power_bytes()).unwrap_or(0.0);
    let mut ratios: Vec<f64> = alone
        .iter()
        .enumerate()
        .take_while(|(place, (bytes, _))| *place < 2 || *bytes <= half_power / 8.0)
        .filter_map(|(place, (bytes, seconds))| {
            let at_place = curves.iter().filter_map(|(_, curve)| curve.get(place));
            let fastest = at_place.map(|(_, seconds)| *seconds).fold(f64::INFINITY, f64::min);
            (!limits.determine(*bytes, fastest)).then_some(seconds / fastest)
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    let median = *ratios.get(ratios.len() / 2)?;
    // Assumes that the device serves the smallest number of threads at once, as otherwise P would
    // be unknown.
    let requests = median * *fewest as f64;
    let is_reached = requests < *most as f64 * UNSATURATED;
    (curves.len() > 1).then_some(Parallelism { requests, is_reached })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(threads: &[usize], between: impl Fn(f64, usize) -> f64) -> Vec<Point> {
        let all = threads.iter().flat_map(|threads| (12..=22).map(move |shift| (*threads, shift)));
        all.map(|(threads, shift)| {
            let bytes = 1_u64 << shift;
            Point::known(Operation::Read, bytes, threads, between(bytes as f64, threads))
        })
        .collect()
    }

    fn model(points: &[Point]) -> Model {
        Model::of(Operation::Read, points).unwrap_or_else(|| panic!("no model"))
    }

    /// Figures that were published for TokuDB (docs/heritage.md): the half-power point of an SSD is
    /// 60 KB with one thread and 30 KB with many. The advice lies between the two.
    #[test]
    fn the_advice_of_the_source_documents_follows_from_their_lines() {
        let x25e = points(&[1, 8], |b, threads| match threads {
            1 => 500e-6 + b / 120e6,
            _ => 120e-6 + b / 250e6,
        });
        let model = model(&x25e);
        let half: Vec<f64> =
            model.lines.iter().filter_map(|line| line.line?.half_power_bytes()).collect();
        assert!((half[0] - 60e3).abs() < 10.0 && (half[1] - 30e3).abs() < 10.0, "{half:?}");
        let advice = model.half_power_bytes().unwrap_or(0.0);
        assert!((40e3..45e3).contains(&advice), "{advice}");
        assert!(!model.limits.is_any() && model.is_good());
    }

    #[test]
    fn requests_at_once_are_counted_far_below_the_half_power_point() {
        let eight = |b: f64, threads: usize| (100e-6 + b / 1e9) / threads.min(8) as f64;
        let found = model(&points(&[1, 4, 16], eight)).parallelism;
        let found = found.unwrap_or_else(|| panic!("no P"));
        assert!((found.requests - 8.0).abs() < 1e-6 && found.is_reached, "{found:?}");
        let found = model(&points(&[1, 4], eight)).parallelism;
        let found = found.unwrap_or_else(|| panic!("no P"));
        assert!((found.requests - 4.0).abs() < 1e-6 && !found.is_reached, "{found:?}");
        assert_eq!(model(&points(&[4], eight)).parallelism, None);
        // One bus for all threads: large requests of several threads are no faster than large
        // requests of one thread.
        let bus = |b: f64, threads: usize| eight(b, threads).max(b / 1e9);
        let found = model(&points(&[1, 4, 16], bus)).parallelism;
        assert!(found.is_some_and(|found| (7.5..8.5).contains(&found.requests)), "{found:?}");
    }

    #[test]
    fn limits_hide_lines_that_they_determine() {
        let capped = |b: f64, threads: usize| {
            let device: f64 = (100e-6 + b / 2e9) / threads.min(32) as f64;
            device.max(1.0 / 3000.0).max(b / 125e6)
        };
        let model = model(&points(&[1, 4, 16], capped));
        assert!(model.lines.iter().all(|line| line.line.is_none()) && model.is_good());
        assert_eq!(model.parallelism, None);
        assert!((model.seconds(4096.0) * 3000.0 - 1.0).abs() < 0.03);
        // Four threads share the limit, so each waits four times as long.
        let of_four = self::model(&points(&[4, 16], capped));
        assert!((of_four.seconds(4096.0) * 3000.0 / 4.0 - 1.0).abs() < 0.03);
        let half = model.half_power_bytes().unwrap_or(0.0);
        assert!((half / (125e6 / 3000.0) - 1.0).abs() < 0.05, "{half}");
    }

    #[test]
    fn no_points_make_no_model() {
        assert_eq!(Model::of(Operation::Read, &[]), None);
    }
}
