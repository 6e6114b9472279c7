//! The cost of durable commits on this device, and how many commits share a sync of the log.
//!
//! * The variant `fit`: one thread commits N rows at a time, synced, with N from 1 to 10,000. The
//!   sizes take turns, so that a slow moment of the device affects all of them. The mean times are
//!   fitted to `T = N/R + K`. K is the part of a commit's time that does not depend on its rows, R
//!   the rows a second that the engine would reach if syncs were free. From `N = R*K` rows on, a
//!   commit spends more on its rows than on its sync.
//! * The other variants: 1, 4, 16 or 64 threads commit one row at a time, synced. An engine with
//!   group commit needs less than one sync a commit.
//!
//! The rows are those of iiBench, with an entry in each of three secondary trees.

use std::thread;
use std::time::{Duration, Instant};

use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::Bench;
use super::spec::FIT;
use super::threads::joined;
use crate::engine::{Batch, Durability, Engine};
use crate::error::Result;
use crate::measure::{Histogram, process};
use crate::rows::TableRow;

/// Rows of a commit, in the variant `fit`.
const SIZES: [u64; 5] = [1, 10, 100, 1_000, 10_000];

/// Turns of each size.
const TURNS: u32 = 10;

/// Fewest commits in a turn, even if they take longer than the turn.
const TURN_COMMITS: u64 = 3;

/// Commits before the measured ones: the first commits of a new log create its files.
const WARMUP_COMMITS: u64 = 20;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    let seconds = bench.spec.limit_s.unwrap_or(1.0);
    let (cpu_before, io_before) = (process::cpu_time()?, process::io()?);
    let writer = Writer::new(bench);
    for _ in 0..WARMUP_COMMITS {
        writer.commit(&mut Batch::default(), 1)?;
    }
    if bench.spec.variant.name == FIT {
        let samples = turns(&writer, seconds)?;
        let fit = Fit::of(&samples);
        bench.show_fit(&samples, fit);
        let m = &mut bench.measurement;
        m.fit_rows_per_s = fit.map(|fit| fit.rows_per_s);
        m.fit_commit_ms = fit.map(|fit| fit.commit_s * 1e3);
        m.fit_error_percent = fit.map(|fit| fit.error * 100.0);
    } else {
        let syncs_before = bench.engine.log_syncs();
        let (latency, commits, elapsed) =
            side_by_side(&writer, bench.spec.variant.threads, seconds)?;
        let syncs =
            bench.engine.log_syncs().zip(syncs_before).map(|(after, before)| after - before);
        let m = &mut bench.measurement;
        m.commits_per_s = Some(commits as f64 / elapsed.as_secs_f64().max(1e-9));
        m.syncs_per_commit = syncs.map(|syncs| syncs as f64 / commits.max(1) as f64);
        m.set_batch_latencies(&latency);
    }
    let rows = writer.next.load(Ordering::Relaxed);
    let m = &mut bench.measurement;
    m.rows = Some(rows);
    m.cpu_us_per_row =
        Some((process::cpu_time()? - cpu_before).as_secs_f64() * 1e6 / rows.max(1) as f64);
    m.written_bytes = Some(process::io()?.written_bytes - io_before.written_bytes);
    Ok(())
}

/// Writes the table's rows in order. All threads share it.
struct Writer<'a> {
    engine: &'a dyn Engine,
    seed: u64,
    durability: Durability,
    next: AtomicU64,
}

impl<'a> Writer<'a> {
    fn new(bench: &Bench<'a>) -> Self {
        let spec = bench.spec;
        let durability = spec.variant.durability;
        Self { engine: bench.engine, seed: spec.seed, durability, next: AtomicU64::new(0) }
    }

    /// Commits the next `rows` rows; returns how long the engine took.
    fn commit(&self, batch: &mut Batch, rows: u64) -> Result<Duration> {
        let first = self.next.fetch_add(rows, Ordering::Relaxed);
        batch.clear();
        for id in first..first + rows {
            TableRow::new(self.seed, id, 0).insert(batch);
        }
        let start = Instant::now();
        self.engine.write(batch, self.durability)?;
        Ok(start.elapsed())
    }
}

/// The commits of one size.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    rows: u64,
    commits: u64,
    seconds: f64,
}

/// Runs all sizes in turn, `seconds` in total.
fn turns(writer: &Writer<'_>, seconds: f64) -> Result<Vec<Sample>> {
    let mut samples = SIZES.map(|rows| Sample { rows, ..Sample::default() });
    let turn = Duration::from_secs_f64(seconds / f64::from(TURNS) / SIZES.len() as f64);
    let mut batch = Batch::default();
    for _ in 0..TURNS {
        for sample in &mut samples {
            let start = Instant::now();
            let mut commits = 0;
            while commits < TURN_COMMITS || start.elapsed() < turn {
                sample.seconds += writer.commit(&mut batch, sample.rows)?.as_secs_f64();
                commits += 1;
            }
            sample.commits += commits;
        }
    }
    Ok(samples.to_vec())
}

/// `T = N/R + K`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fit {
    /// R.
    rows_per_s: f64,
    /// K, seconds.
    commit_s: f64,
    /// Root mean square of the relative errors, (measured - fitted) / measured.
    error: f64,
}

impl Fit {
    /// Fits by least squares of the *relative* errors, so that every size has the same weight. With
    /// absolute errors the largest commits, which take a hundred times as long, would decide alone.
    /// K shows only in small commits, so K would then be noise from the large commits, and could
    /// even be negative.
    ///
    /// For `T(N) = a N + K` and weights `w = 1/T^2`, the sum of `w (T - a N - K)^2` is least where
    /// `a sum(w N^2) + K sum(w N) = sum(w N T)` and `a sum(w N) + K sum(w) = sum(w T)`.
    fn of(samples: &[Sample]) -> Option<Self> {
        let points: Vec<(f64, f64)> = samples
            .iter()
            .filter(|sample| sample.commits > 0 && sample.seconds > 0.0)
            .map(|sample| (sample.rows as f64, sample.seconds / sample.commits as f64))
            .collect();
        let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
            points.iter().map(|&(n, t)| of(n, t) / (t * t)).sum()
        };
        let (one, n, nn) = (sum(&|_, _| 1.0), sum(&|n, _| n), sum(&|n, _| n * n));
        let (t, nt) = (sum(&|_, t| t), sum(&|n, t| n * t));
        let determinant = nn * one - n * n;
        if determinant <= 0.0 {
            return None;
        }
        let slope = (nt * one - t * n) / determinant;
        let commit_s = (nn * t - n * nt) / determinant;
        let squares: f64 =
            points.iter().map(|&(n, t)| ((t - slope * n - commit_s) / t).powi(2)).sum();
        let error = (squares / points.len() as f64).sqrt();
        (slope > 0.0).then(|| Self { rows_per_s: 1.0 / slope, commit_s, error })
    }
}

impl Bench<'_> {
    /// Prints the measured times and the fit.
    fn show_fit(&self, samples: &[Sample], fit: Option<Fit>) {
        for sample in samples {
            let measured = sample.seconds * 1e3 / sample.commits.max(1) as f64;
            let fitted =
                fit.map_or(0.0, |fit| (sample.rows as f64 / fit.rows_per_s + fit.commit_s) * 1e3);
            self.progress.say(&format!(
                "{} rows a commit: {measured:.3} ms, fitted {fitted:.3} ms, {} commits",
                sample.rows, sample.commits
            ));
        }
    }
}

/// Lets each of `threads` threads commit one row after the other for `seconds`, at least one row.
/// Returns the latencies of the commits, their number, and the elapsed time.
fn side_by_side(
    writer: &Writer<'_>,
    threads: u64,
    seconds: f64,
) -> Result<(Histogram, u64, Duration)> {
    let stop = AtomicBool::new(false);
    let start = Instant::now();
    let until = start + Duration::from_secs_f64(seconds);
    let results: Vec<_> = thread::scope(|scope| {
        let commit = || {
            let (mut latency, mut commits, mut batch) = (Histogram::default(), 0, Batch::default());
            // On a busy machine the time may pass before a thread begins.
            while commits == 0 || (!stop.load(Ordering::Relaxed) && Instant::now() < until) {
                let took = writer.commit(&mut batch, 1);
                latency.record(took.inspect_err(|_| stop.store(true, Ordering::Relaxed))?);
                commits += 1;
            }
            Ok((latency, commits))
        };
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(commit)).collect();
        running.into_iter().map(|thread| joined(thread.join())).collect()
    });
    let elapsed = start.elapsed();
    let (mut latency, mut commits) = (Histogram::default(), 0);
    for result in results {
        let (of_one, count): (Histogram, u64) = result?;
        latency.merge(&of_one);
        commits += count;
    }
    Ok((latency, commits, elapsed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(time: impl Fn(f64) -> f64) -> Vec<Sample> {
        SIZES
            .iter()
            .map(|&rows| Sample { rows, commits: 7, seconds: 7.0 * time(rows as f64) })
            .collect()
    }

    #[test]
    fn the_fit_finds_the_parameters_of_the_times() {
        let fit = Fit::of(&samples(|n| n / 500_000.0 + 0.000_2)).unwrap();
        assert!((fit.rows_per_s / 500_000.0 - 1.0).abs() < 1e-6, "{fit:?}");
        assert!((fit.commit_s / 0.000_2 - 1.0).abs() < 1e-6 && fit.error < 1e-6, "{fit:?}");
    }

    #[test]
    fn large_commits_with_noise_do_not_hide_the_cost_of_small_ones() {
        // A commit of 10,000 rows takes 6 ms more than the 20 ms of the formula: an error of thirty
        // times the cost of a sync.
        let off = |n: f64| if n > 5_000.0 { 0.006 } else { 0.0 };
        let fit = Fit::of(&samples(|n| n / 500_000.0 + 0.000_2 + off(n))).unwrap();
        assert!((fit.commit_s / 0.000_2 - 1.0).abs() < 0.2, "{fit:?}");
        assert!(fit.error > 0.01, "{fit:?}");
    }

    #[test]
    fn too_few_sizes_have_no_fit() {
        assert_eq!(Fit::of(&[]), None);
        assert_eq!(Fit::of(&samples(|n| n / 1e6)[..1]), None);
    }
}
