//! `ENOSPC` at every write and every allocation of a history, once and until space is freed: the
//! call that needs space returns `NoSpace` and has changed nothing, readers continue, and once
//! there is space the same call succeeds without a reopen. Nothing is lost, no refused write
//! appears, now or after a reopen, and no extent leaks.
//!
//! `FRONDB_SEED` selects the history, `FRONDB_FAULT_STEP` the distance between the points tried.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use std::sync::Arc;

use frondb::{Error, ErrorKind};
use frondb_simulator::crash::Check;
use frondb_simulator::{AllowedStates, History, Op, Profile, Setup, Simulation, check_recovered};
use frondb_testkit::faults::Script;
use frondb_testkit::seed;
use frondb_testkit::{CrashMode, FaultDevice, Faults, MemoryDevice};

/// How often a call is retried once there is space.
const TRIES: u32 = 3;

struct Run {
    memory: MemoryDevice,
    faults: Arc<FaultDevice>,
    known: Arc<AllowedStates>,
    refused: u64,
}

impl Run {
    /// Handles the error of a call while the disk is full: the device heals, as if space had been
    /// freed.
    fn refuse(&mut self, error: &Error, tries: u32) {
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
        assert!(tries < TRIES, "refused although there is space: {error}");
        self.refused += 1;
        self.heal();
    }

    fn heal(&self) {
        self.faults.set_script(&Script::default());
        self.memory.set_capacity(u64::MAX);
    }

    fn open(&mut self, setup: &Setup) -> Simulation {
        for tries in 0.. {
            let known = Arc::clone(&self.known);
            match Simulation::on(Arc::clone(&self.faults) as _, setup.clone(), known) {
                Ok(simulation) => return simulation,
                Err(error) => self.refuse(&error, tries),
            }
        }
        unreachable!()
    }

    fn apply(&mut self, simulation: &mut Simulation, op: &Op) {
        for tries in 0.. {
            let Err(error) = simulation.apply(op) else { return };
            if simulation.is_open() {
                let names: Vec<_> = simulation.model().catalog.keys().cloned().collect();
                assert_eq!(simulation.db().list_trees(), names, "after {error}");
                simulation.check_all().unwrap();
            }
            self.refuse(&error, tries);
        }
    }
}

/// Where the disk is full.
enum Full {
    /// By a rule of the fault device.
    Rule(String),
    /// The size of the disk in bytes.
    Capacity(u64),
}

/// Executes the history on a disk that is full somewhere. Returns whether that ever occurred, and
/// the number of database calls that were refused.
fn run(history: &History, setup: &Setup, full: &Full) -> (bool, u64) {
    let memory = MemoryDevice::new();
    let faults = Arc::new(Faults::over(Arc::new(memory.clone()), &Script::default()));
    match full {
        Full::Rule(rule) => faults.set_script(&rule.parse().unwrap()),
        Full::Capacity(bytes) => memory.set_capacity(*bytes),
    }
    let mut run = Run { memory, faults, known: Arc::default(), refused: 0 };
    let mut simulation = run.open(setup);
    for op in &history.ops {
        run.apply(&mut simulation, op);
    }
    let met = run.faults.injected() > 0 || run.refused > 0 || simulation.db().stats().disk_full > 0;
    run.heal();
    simulation.apply(&Op::Reopen { close: true }).unwrap();
    drop(simulation);
    check_recovered(&run.memory.crash(CrashMode::KeepAll), setup, &run.known, Check::All);
    (met, run.refused)
}

/// Prints where the disk was full if there is a panic.
struct At(u64, String);

impl Drop for At {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("seed {}: {}", self.0, self.1);
        }
    }
}

/// One history of batches, one of transactions.
fn histories() -> (u64, [History; 2]) {
    let seed = seed::from_env("FRONDB_SEED", 1);
    let profile = Profile { keys: 200, bulk: 120, reopen_in: 25, large_in: 40, ..Profile::crash() };
    let with_transactions = profile.clone().with_transactions();
    (seed, [profile, with_transactions].map(|profile| History::new(seed, 60, &profile)))
}

/// Tries one point after the other until there are no more.
fn sweep(what: &str, step: u64, full: impl Fn(u64) -> Full) -> u64 {
    let (seed, histories) = histories();
    let step = seed::from_env("FRONDB_FAULT_STEP", step) as usize;
    let (mut points, mut refused) = (0, 0);
    for (i, history) in histories.iter().enumerate() {
        for nth in (1..).step_by(step) {
            let at = At(seed, format!("{what}, history {i}, point {nth}"));
            let (met, calls) = run(history, &Setup::tall(), &full(nth));
            drop(at);
            if !met {
                break;
            }
            points += 1;
            refused += calls;
        }
    }
    println!("{what}: {points} points, {refused} calls refused");
    assert!(points > 0);
    refused
}

/// Each additional page moves the first call that finds no space a little.
#[test]
fn the_disk_may_be_full_from_any_page_on() {
    let refused = sweep("a disk of limited size", 4, |nth| Full::Capacity((nth - 1) * 4096));
    assert!(refused > 0);
}

#[test]
fn every_allocation_may_find_the_disk_full() {
    for count in ["1", "all"] {
        let rule = |nth| format!("fail allocate * nth={nth} count={count} error=ENOSPC");
        sweep(&rule(0), 1, |nth| Full::Rule(rule(nth)));
    }
}

/// Includes a file system that promises space and breaks the promise.
#[test]
fn every_write_may_find_the_disk_full() {
    for file in ["data", "wal"] {
        for count in ["1", "all"] {
            let rule = |nth| format!("fail write {file} nth={nth} count={count} error=ENOSPC");
            let refused = sweep(&rule(0), 1, |nth| Full::Rule(rule(nth)));
            assert!(refused > 0);
        }
    }
}
