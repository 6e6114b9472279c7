//! Random histories against the model. `FRONDB_SEED` replays one seed, `FRONDB_SEEDS` sets how
//! many are tried, `FRONDB_SHRINK` makes a failing history small.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use frondb_device::MemoryDevice;
use frondb_simulator::simulation::Coverage;
use frondb_simulator::{History, Known, Profile, Setup, Simulation, shrink};
use frondb_testkit::seed;

fn run(history: &History, setup: &Setup) -> Simulation {
    let known = Arc::new(Known::default());
    let mut simulation = Simulation::new(MemoryDevice::new(), setup.clone(), known).unwrap();
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
            let known = Arc::new(Known::default());
            let simulation = Simulation::new(MemoryDevice::new(), setup.clone(), known);
            error = simulation.and_then(|mut simulation| simulation.run(history)).is_err();
        }));
        result.is_err() && !error
    };
    assert!(fails(history), "nothing to shrink");
    let small = shrink::shrink(history, &fails);
    let _ = std::panic::take_hook();
    for op in &small.ops {
        println!("{op:?}");
    }
    run(&small, setup)
}

fn seeds(count: u64) -> Vec<u64> {
    match seed::from_env("FRONDB_SEED", u64::MAX) {
        u64::MAX => (0..seed::from_env("FRONDB_SEEDS", count)).collect(),
        seed => vec![seed],
    }
}

#[test]
fn random_histories_answer_as_the_model() {
    let mut coverage = Coverage::default();
    for seed in seeds(20) {
        let history = History::new(seed, 400, &Profile::general());
        let setup = if seed % 3 == 0 { Setup::tiny() } else { Setup::tall() };
        let simulation = run_or_shrink(seed, &history, &setup);
        println!("{:?}", simulation.coverage());
        coverage.add(&simulation.coverage());
    }
    println!("{coverage:?}");
}
