//! Power loss at every write and sync point of histories with flushes, merges, splits, inner nodes,
//! tree creation, renames and drops, large values, manifest and log rotation.
//!
//! `FRONDB_CRASH_SEEDS` sets the number of histories that are crashed at every point; their seeds
//! begin with `FRONDB_FIRST_SEED`. `FRONDB_SEED` selects one seed. A failure says how to replay its
//! crash point.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use frondb_simulator::crash::Check;
use frondb_simulator::simulation::Coverage;
use frondb_simulator::{AllowedStates, History, Profile, Setup, Simulation, check_recovered};
use frondb_testkit::{CrashMode, MemoryDevice};
use frondb_testkit::{
    CrashReport, CrashTest, crash_while_running, for_each_crash_point, for_each_crash_point_from,
    seed,
};

/// Small enough for thousands of recoveries, large enough for inner nodes.
fn profile() -> Profile {
    Profile { keys: 300, bulk: 120, ..Profile::crash() }
}

fn setup(seed: u64) -> Setup {
    let setup = if seed.is_multiple_of(3) { Setup::tiny() } else { Setup::tall() };
    Setup { wal_compression: seed % 4 == 1, stow: seed.is_multiple_of(2), ..setup }
}

fn run(
    device: &MemoryDevice,
    history: &History,
    setup: &Setup,
    known: &Arc<AllowedStates>,
) -> Coverage {
    let simulation = Simulation::new(device.clone(), setup.clone(), Arc::clone(known));
    let Ok(mut simulation) = simulation else { return Coverage::default() };
    let _ = simulation.run(history);
    simulation.coverage()
}

fn add(sum: &mut CrashReport, report: CrashReport) {
    sum.points += report.points;
    sum.tried += report.tried;
    sum.checks += report.checks;
}

/// The seeds to try; and the seed of `FRONDB_SEED`, or `u64::MAX` if it is not set.
fn seeds() -> (std::ops::Range<u64>, u64) {
    let only = seed::from_env("FRONDB_SEED", u64::MAX);
    if only != u64::MAX {
        return (only..only + 1, only);
    }
    let first = seed::from_env("FRONDB_FIRST_SEED", 0);
    (first..first + seed::from_env("FRONDB_CRASH_SEEDS", 4), only)
}

/// Whether the seeds together must reach every kind of event. The seeds of `make test` do. Many new
/// seeds do on average, but four new seeds may lack a rare kind.
fn must_reach_all(seeds: &std::ops::Range<u64>, only: u64) -> bool {
    const MANY: u64 = 16;
    let one_point = only != u64::MAX || std::env::var_os("FRONDB_CRASH_POINT").is_some();
    !one_point && (seeds.start == 0 || seeds.end - seeds.start >= MANY)
}

/// The main test: stops one history for each seed in each call of the device, and crashes a copy
/// of the device there.
#[test]
fn every_crash_point_recovers_an_allowed_state() {
    let mut sum = CrashReport::default();
    let mut coverage = Coverage::default();
    let (seeds, only) = seeds();
    let histories = seeds.end - seeds.start;
    let recoveries = Arc::new(AtomicU64::new(0));
    for seed in seeds.clone() {
        let history = History::new(seed, 130, &profile());
        add(&mut sum, crash_one(seed, &history, &setup(seed), &mut coverage, &recoveries));
    }
    let again = recoveries.load(Ordering::Relaxed);
    println!(
        "{} distinct crash points in {} histories, {} recoveries checked, and {again} crash points \
         of recoveries; {coverage:?}",
        sum.tried, histories, sum.checks
    );
    if only == u64::MAX && std::env::var_os("FRONDB_CRASH_POINT").is_none() {
        assert_eq!(sum.checks, sum.tried * 3, "each point is crashed in three modes");
    }
    if must_reach_all(&seeds, only) {
        assert!(sum.tried >= 2000, "only {} crash points", sum.tried);
        assert!(again >= 500, "only {again} crash points of recoveries");
        assert!(coverage.catalog_changes.iter().all(|n| *n > 2), "{coverage:?}");
        assert!(coverage.leaves_max >= 8, "leaves split: {coverage:?}");
        assert!(coverage.height_max >= 3 && coverage.node_flushes > 0, "{coverage:?}");
        assert!(coverage.merges > 0 && coverage.rewrites > 0 && coverage.relogs > 0);
        assert!(coverage.manifest_rotations > 0 && coverage.replayed > 0, "{coverage:?}");
    }
}

/// The same test with transactions: they have savepoints, are prepared and decided before or after
/// the crash, spill, and several commit in order before the first of them waits for the disk.
#[test]
fn every_crash_point_of_transactions_recovers_an_allowed_state() {
    let mut sum = CrashReport::default();
    let mut coverage = Coverage::default();
    let (seeds, only) = seeds();
    let recoveries = Arc::new(AtomicU64::new(0));
    for seed in seeds.clone() {
        let history = History::new(100 + seed, 110, &profile().with_transactions());
        add(&mut sum, crash_one(seed, &history, &setup(seed), &mut coverage, &recoveries));
    }
    let again = recoveries.load(Ordering::Relaxed);
    println!("{sum}, {again} crash points of recoveries; {coverage:?}");
    if must_reach_all(&seeds, only) {
        assert!(sum.tried >= 500, "only {} crash points", sum.tried);
        assert!(coverage.spills > 5 && coverage.attaches > 3, "{coverage:?}");
        assert!(coverage.bulk_statements > 3, "{coverage:?}");
        assert!(coverage.replayed > 0 && coverage.leaves_max >= 8, "{coverage:?}");
    }
}

/// Stops one history in each call of the device, and crashes a copy of the device there.
fn crash_one(
    seed: u64,
    history: &History,
    setup: &Setup,
    coverage: &mut Coverage,
    recoveries: &Arc<AtomicU64>,
) -> CrashReport {
    coverage.add(&run(&MemoryDevice::new(), history, setup, &Arc::default()));
    let (checked, again) = (setup.clone(), Arc::clone(recoveries));
    let report = crash_while_running(
        CrashTest::new(u64::MAX, seed),
        || Arc::new(AllowedStates::default()),
        |device, known| {
            run(&device, history, setup, known);
        },
        move |crash, known| {
            // At regular intervals, also crash the recovery at some of its own points.
            let modes = [
                matches!(crash.mode, CrashMode::LoseUnsynced),
                matches!(crash.mode, CrashMode::Random(_)),
                matches!(crash.mode, CrashMode::KeepAll),
            ];
            if crash.point % 40 == seed % 40 && modes[(crash.point / 40 % 3) as usize] {
                let tried = crash_recovery(&crash.device, &checked, known, crash.point);
                again.fetch_add(tried, Ordering::Relaxed);
            }
            let all = crash.mode
                == [CrashMode::LoseUnsynced, CrashMode::KeepAll][(crash.point % 8 / 4) as usize]
                && crash.point % 4 == 0;
            check_recovered(
                &crash.device,
                &checked,
                known,
                if all { Check::All } else { Check::Once },
            );
        },
    );
    println!("seed {seed}: {report}");
    report
}

/// Loses power at up to 16 points of the recovery of `device` and of a checkpoint after it. Returns
/// the number of points.
fn crash_recovery(device: &MemoryDevice, setup: &Setup, known: &AllowedStates, point: u64) -> u64 {
    let test = CrashTest { only: None, lotteries: 0, points_max: 16, seed: point };
    let start = || device.crash(CrashMode::KeepAll);
    let history = |device: Arc<MemoryDevice>| {
        let clock = frondb_simulator::setup::clock();
        if let Ok(db) = frondb_simulator::setup::open(&device, setup, &(clock as _)) {
            let _ = db.checkpoint();
        }
    };
    let check = |crash: frondb_testkit::Crash, (): &()| {
        check_recovered(&crash.device, setup, known, Check::Once);
    };
    for_each_crash_point_from(test, start, history, check).tried
}

/// The device stops for good in the middle of a call. The engine's own code must return from the
/// call with an error, and what it wrote before must be recoverable.
#[test]
fn the_engine_unwinds_from_a_device_that_stops() {
    let seed = seed::from_env("FRONDB_SEED", 7);
    let history = History::new(seed, 130, &profile());
    let setup = setup(seed);
    let with_transactions = History::new(seed + 1, 110, &profile().with_transactions());
    for history in [history, with_transactions] {
        let report = for_each_crash_point(
            CrashTest::new(40, seed),
            |device| {
                let known = Arc::new(AllowedStates::default());
                run(&device, &history, &setup, &known);
                known
            },
            |crash, known| check_recovered(&crash.device, &setup, known, Check::All),
        );
        println!("seed {seed}: {report}");
    }
}
