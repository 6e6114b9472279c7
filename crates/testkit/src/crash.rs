//! Loses power at every call of a history.
//!
//! A history is any code that works on a device: it opens the store, writes, closes. It runs once
//! to count its points (calls that change or sync something), then once more for each chosen point,
//! at which the device stops. For several [`CrashMode`]s, the content that the disk would then have
//! is passed to a check. The check opens the store again and compares it with the data that the
//! history reports as acknowledged.
//!
//! ```text
//! run 0:  ......................      22 points
//! run k:  ......X  (every call from here on fails; the history unwinds and returns what it knows)
//!               |-> LoseUnsynced ------> check
//!               |-> KeepAll -----------> check
//!               '-> Random(seed) ------> check
//! ```
//! Running a history again for each point takes time that grows with the square of its length. For
//! longer histories, [`crash_while_running`] runs the history once and crashes copies of the device
//! at each chosen point, while the history waits in that call. Only [`for_each_crash_point`] also
//! tests that the history's code unwinds correctly from a device that fails.
//!
//! A history should be deterministic: one thread, a manual clock, seeds of its own. A history with
//! background threads is still a good test, because each run stops at a point of its own schedule,
//! but a failure may not be reproduced at the same point.

use std::collections::BTreeSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{CrashMode, MemoryDevice};
use frondb_core::prng::Prng;
use frondb_core::sync::{Arc, Mutex};

use crate::seed;

/// The points of a history to try.
#[derive(Clone, Copy, Debug)]
pub struct CrashTest {
    /// Try at most this many points: all points of a short history, otherwise a sample by `seed`
    /// that always includes the first and the last. `FRONDB_CRASH_POINTS` overrides it.
    pub points_max: u64,
    /// Seed of the sample and of the random crashes. `FRONDB_CRASH_SEED` overrides it.
    pub seed: u64,
    /// Number of random crashes for each point, in addition to the two other modes.
    pub lotteries: u64,
    /// Try this point only, to replay a failure. `FRONDB_CRASH_POINT` overrides it.
    pub only: Option<u64>,
}

impl CrashTest {
    /// Returns a test of at most `points_max` points, chosen by `seed`, with one random crash each.
    /// Environment variables override the fields.
    #[must_use]
    pub fn new(points_max: u64, seed: u64) -> Self {
        Self { points_max, seed, lotteries: 1, only: None }.with_environment()
    }

    fn with_environment(self) -> Self {
        let point = seed::from_env("FRONDB_CRASH_POINT", u64::MAX);
        Self {
            points_max: seed::from_env("FRONDB_CRASH_POINTS", self.points_max),
            seed: seed::from_env("FRONDB_CRASH_SEED", self.seed),
            only: if point == u64::MAX { self.only } else { Some(point) },
            ..self
        }
    }

    /// Returns the points to try of a history with `total` points; point `total` is a stop after
    /// the whole history.
    fn choose(&self, total: u64) -> Vec<u64> {
        if let Some(point) = self.only {
            return vec![point];
        }
        let count = total + 1;
        if count <= self.points_max {
            return (0..count).collect();
        }
        // Choose one point from each of `points_max` parts of equal length: a sample without gaps.
        let mut prng = Prng::new(self.seed);
        let part = |index: u64| {
            let at = u128::from(index) * u128::from(count) / u128::from(self.points_max.max(1));
            u64::try_from(at).unwrap_or(u64::MAX)
        };
        let mut points: Vec<u64> =
            (0..self.points_max).map(|index| prng.range(part(index)..part(index + 1))).collect();
        if let [first, .., last] = points.as_mut_slice() {
            (*first, *last) = (0, total);
        }
        points
    }
}

/// A device after power loss, with the point and the mode of the crash.
#[derive(Debug)]
pub struct Crash {
    /// The device. Its points count from zero, so it can be crashed again during recovery.
    pub device: Arc<MemoryDevice>,
    /// The number of calls that took effect before the power loss.
    pub point: u64,
    /// The treatment of unsynced data.
    pub mode: CrashMode,
}

/// The number of points and checks of a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CrashReport {
    /// Calls of the whole history that change or sync something. A crash is possible before the
    /// first of them and after each, so there are `points + 1` crash points.
    pub points: u64,
    /// Crash points tried.
    pub tried: u64,
    /// Checks made: one for each tried point and mode.
    pub checks: u64,
}

impl fmt::Display for CrashReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { points, tried, checks } = self;
        write!(f, "{tried} of {} crash points, {checks} checks", points + 1)
    }
}

/// Runs `history` once, and `check` on the device that a crash at each chosen point would leave.
///
/// `history` gets an empty device and records in `known` which data is acknowledged. Before a call
/// returns, the crashed device may or may not have the data that the call makes durable, so `known`
/// must allow both. `check` runs inside the calls of the history, on its thread.
///
/// # Panics
/// If the history or a check panics; the message of a failed check has the point, the mode, and how
/// to replay them.
pub fn crash_while_running<Known: Send + Sync + 'static>(
    test: CrashTest,
    known: impl Fn() -> Known,
    history: impl Fn(Arc<MemoryDevice>, &Known),
    check: impl Fn(Crash, &Known) + Send + Sync + 'static,
) -> CrashReport {
    let counted = Arc::new(MemoryDevice::new());
    history(Arc::clone(&counted), &known());
    let points = counted.points();
    drop(counted);

    let device = Arc::new(MemoryDevice::new());
    let known = Arc::new(known());
    let progress = Arc::new(Mutex::new(Progress {
        open: test.choose(points).into_iter().collect(),
        report: CrashReport { points, ..CrashReport::default() },
        failure: None,
    }));
    let observer = {
        let (device, known) = (MemoryDevice::clone(&device), Arc::clone(&known));
        let progress = Arc::clone(&progress);
        Arc::new(move |point| {
            visit(&test, point, &device, &progress, &|crash| check(crash, &known))
        })
    };
    device.set_observer(Some(observer.clone()));
    history(Arc::clone(&device), &known);
    observer(device.points());
    device.set_observer(None);
    let progress = progress.lock();
    assert!(progress.failure.is_none(), "{}", progress.failure.as_deref().unwrap_or_default());
    progress.report
}

/// The progress of [`crash_while_running`].
struct Progress {
    open: BTreeSet<u64>,
    report: CrashReport,
    /// The first failure. It is kept here because a panic inside the history's own threads may be
    /// caught by the code under test.
    failure: Option<String>,
}

/// Crashes copies of a device at a point, if the point is chosen.
fn visit(
    test: &CrashTest,
    point: u64,
    device: &MemoryDevice,
    progress: &Mutex<Progress>,
    check: &dyn Fn(Crash),
) {
    {
        let mut progress = progress.lock();
        if progress.failure.is_some() || !progress.open.remove(&point) {
            return;
        }
    }
    let mut checks = 0;
    let mut failure = None;
    for mode in modes(test, point) {
        let crash = Crash { device: Arc::new(device.crash(mode)), point, mode };
        checks += 1;
        failure = attempt(test, point, &format!("{mode:?}"), || check(crash)).err();
        if failure.is_some() {
            break;
        }
    }
    let mut progress = progress.lock();
    progress.report.tried += 1;
    progress.report.checks += checks;
    progress.failure = progress.failure.take().or(failure);
}

/// Runs `history` on a new device for each chosen point, and `check` on the device that each crash
/// leaves.
///
/// `history` gets an empty device, which fails from some call on, and returns what it knows: at
/// least everything that was acknowledged. It must also return after a failure, so it ends at its
/// first error. `check` gets the crashed device and the result of `history`, and panics if they do
/// not agree.
///
/// # Panics
/// If the history or a check panics; the message has the point, the mode, and how to replay them.
pub fn for_each_crash_point<Known>(
    test: CrashTest,
    history: impl Fn(Arc<MemoryDevice>) -> Known,
    check: impl Fn(Crash, &Known),
) -> CrashReport {
    for_each_crash_point_from(test, MemoryDevice::new, history, check)
}

/// As [`for_each_crash_point`], but from the device that `start` returns each time: a crashed
/// device, to crash again during recovery.
///
/// # Panics
/// As [`for_each_crash_point`].
pub fn for_each_crash_point_from<Known>(
    test: CrashTest,
    start: impl Fn() -> MemoryDevice,
    history: impl Fn(Arc<MemoryDevice>) -> Known,
    check: impl Fn(Crash, &Known),
) -> CrashReport {
    let whole = Arc::new(start());
    history(Arc::clone(&whole));
    let mut report = CrashReport { points: whole.points(), ..CrashReport::default() };
    drop(whole);
    for point in test.choose(report.points) {
        let device = Arc::new(start());
        device.stop_after(point);
        let known = explained(&test, point, "the history", || history(Arc::clone(&device)));
        report.tried += 1;
        for mode in modes(&test, point) {
            let crash = Crash { device: Arc::new(device.crash(mode)), point, mode };
            explained(&test, point, &format!("{mode:?}"), || check(crash, &known));
            report.checks += 1;
        }
    }
    report
}

/// Returns the modes of a point. The seed of its random crashes depends only on the test's seed and
/// on the point, so that a point replayed alone crashes the same way.
fn modes(test: &CrashTest, point: u64) -> Vec<CrashMode> {
    let mut prng = Prng::new(test.seed ^ point.rotate_left(32));
    let lotteries = (0..test.lotteries).map(|_| CrashMode::Random(prng.next_u64()));
    [CrashMode::LoseUnsynced, CrashMode::KeepAll].into_iter().chain(lotteries).collect()
}

fn explained<R>(test: &CrashTest, point: u64, what: &str, run: impl FnOnce() -> R) -> R {
    attempt(test, point, what, run).unwrap_or_else(|failure| panic!("{failure}"))
}

/// Runs a part of the test; if it panics, the error says where, and how to replay it.
fn attempt<R>(
    test: &CrashTest,
    point: u64,
    what: &str,
    run: impl FnOnce() -> R,
) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let message = seed::panic_message(panic.as_ref());
        let seed = test.seed;
        format!(
            "crash point {point}, {what}: {message}\n\
             replay with FRONDB_CRASH_POINT={point} FRONDB_CRASH_SEED={seed}"
        )
    })
}
