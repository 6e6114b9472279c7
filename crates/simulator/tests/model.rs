//! Compares random histories with the model, and runs the same history with options that must not
//! change an answer.
//!
//! `FRONDB_SEED` replays one seed. Otherwise the seeds begin with `FRONDB_FIRST_SEED`, and
//! `FRONDB_TIMES` multiplies each test's number of seeds. `FRONDB_SEEDS` sets the number instead;
//! then `FRONDB_TIMES` has no effect. `FRONDB_SHRINK=1` reduces a failing history.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use frondb_core::prng::Prng;
use frondb_simulator::simulation::Coverage;
use frondb_simulator::{AllowedStates, History, Profile, Setup, Simulation, shrink};
use frondb_testkit::MemoryDevice;
use frondb_testkit::seed;

fn run(history: &History, setup: &Setup) -> Simulation {
    let known = Arc::new(AllowedStates::default());
    let simulation = Simulation::new(MemoryDevice::new(), setup.clone(), known);
    let mut simulation =
        simulation.unwrap_or_else(|error| panic!("the database does not open: {error}"));
    if let Err(error) = simulation.run(history) {
        panic!("an operation failed: {error}");
    }
    simulation
}

fn run_or_shrink(seed: u64, history: &History, setup: &Setup) -> Simulation {
    println!("seed {seed}, {} operations, {setup:?}", history.ops.len());
    if seed::from_env("FRONDB_SHRINK", 0) == 0 {
        return run(history, setup);
    }
    std::panic::set_hook(Box::new(|_| {}));
    let fails = |history: &History| {
        let mut error = false;
        let result = catch_unwind(AssertUnwindSafe(|| {
            let known = Arc::new(AllowedStates::default());
            let simulation = Simulation::new(MemoryDevice::new(), setup.clone(), known);
            error = simulation.and_then(|mut simulation| simulation.run(history)).is_err();
        }));
        // A reduced history may return an error because it no longer creates an object that it
        // uses; such an error does not count as the failure.
        result.is_err() && !error
    };
    let small = if fails(history) { shrink::shrink(history, &fails) } else { history.clone() };
    let _ = std::panic::take_hook();
    for op in &small.ops {
        println!("{op:?}");
    }
    run(&small, setup)
}

fn seeds(count: u64) -> Vec<u64> {
    match seed::from_env("FRONDB_SEED", u64::MAX) {
        u64::MAX => {
            let first = seed::from_env("FRONDB_FIRST_SEED", 0);
            let count = count * seed::from_env("FRONDB_TIMES", 1);
            (first..first + seed::from_env("FRONDB_SEEDS", count)).collect()
        }
        seed => vec![seed],
    }
}

#[test]
fn random_histories_answer_as_the_model() {
    let mut coverage = Coverage::default();
    for seed in seeds(40) {
        let history = History::new(seed, 400, &Profile::general());
        let setup = if seed.is_multiple_of(3) { Setup::tiny() } else { Setup::tall() };
        let setup = Setup { stow: seed.is_multiple_of(2), ..setup };
        coverage.add(&run_or_shrink(seed, &history, &setup).coverage());
    }
    println!("{coverage:?}");
    if seeds(40).len() >= 40 {
        assert!(coverage.height_max >= 4 && coverage.node_flushes > 0, "{coverage:?}");
        assert!(coverage.merges > 0 && coverage.scan_rewrites > 0, "{coverage:?}");
        assert!(coverage.relogs > 0 && coverage.manifest_rotations > 0, "{coverage:?}");
        assert!(coverage.replayed > 0 && coverage.stowed > 300, "{coverage:?}");
    }
}

/// Transactions of all kinds, including prepared ones and ones that spill.
#[test]
fn random_histories_of_transactions_answer_as_the_model() {
    let mut coverage = Coverage::default();
    for seed in seeds(30) {
        let profile = Profile::general().with_transactions();
        let history = History::new(3000 + seed, 300, &profile);
        let setup = if seed.is_multiple_of(3) { Setup::tiny() } else { Setup::tall() };
        let setup = Setup { threads: usize::from(seed % 5 == 4) * 2, ..setup };
        coverage.add(&run_or_shrink(seed, &history, &setup).coverage());
    }
    println!("{coverage:?}");
    if seeds(30).len() >= 30 {
        assert!(coverage.spills > 20 && coverage.attaches > 10, "{coverage:?}");
        assert!(coverage.bulk_statements > 10, "{coverage:?}");
        assert!(coverage.height_max >= 3 && coverage.replayed > 0, "{coverage:?}");
        assert!(coverage.catalog_changes.iter().all(|n| *n > 2), "{coverage:?}");
    }
}

/// Codecs, block sizes, filters, tree shapes, memory, log compression and threads must not change
/// any answer.
#[test]
fn options_change_no_answer() {
    for seed in seeds(6) {
        let profile = Profile { noisy_in: 60, ..Profile::general() };
        let history = History::new(1000 + seed, 300, &profile);
        let answers = run_or_shrink(seed, &history, &Setup::tall()).digest();
        let mut prng = Prng::new(seed);
        for variant in 0..4 {
            let mut setup = Setup::random(&mut prng);
            if variant == 3 {
                setup.threads = 2;
            }
            let digest = run_or_shrink(seed, &history, &setup).digest();
            assert_eq!(digest, answers, "seed {seed}: other answers with {setup:?}");
        }
    }
}

/// With background threads, jobs and writes interleave differently in each run, but the answers
/// must be the same.
#[test]
fn background_threads_change_no_answer() {
    for seed in seeds(10) {
        let history = History::new(2000 + seed, 400, &Profile::general());
        let setup = Setup { threads: 1 + seed as usize % 3, ..Setup::tall() };
        run_or_shrink(seed, &history, &setup);
    }
}
