//! `ENOSPC` at every write and every allocation of a history, once or until space is freed. The
//! call that needs space returns `NoSpace` and changes nothing, and readers continue. Once there is
//! space, the same call succeeds without a reopen. Nothing is lost, no refused write appears, now
//! or after a reopen, and no extent leaks.
//!
//! `FRONDB_SEED` selects the histories, `FRONDB_FAULT_STEP` the distance between the points at
//! which the disk becomes full.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use std::sync::Arc;

use frondb::{Error, ErrorKind};
use frondb_simulator::crash::Check;
use frondb_simulator::{AllowedStates, History, Op, Profile, Setup, Simulation, check_recovered};
use frondb_testkit::faults::Script;
use frondb_testkit::seed;
use frondb_testkit::{CrashMode, FaultDevice, Faults, MemoryDevice};

/// Most attempts of a call once there is space.
const TRIES: u32 = 3;

struct Run {
    memory: MemoryDevice,
    faults: Arc<FaultDevice>,
    known: Arc<AllowedStates>,
    refused: u64,
}

impl Run {
    /// Checks the error of a call on the full disk, and then heals the device, as if space had been
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

/// The condition under which the disk is full.
enum Full {
    /// A rule of the fault device.
    Rule(String),
    /// The size of the disk in bytes.
    Capacity(u64),
}

/// Executes the history on a disk that becomes full. Returns whether the disk was ever full, and
/// the number of refused database calls.
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

/// If the test panics, prints where the disk was full.
struct At(u64, String);

impl Drop for At {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("seed {}: {}", self.0, self.1);
        }
    }
}

/// A history of batches and a history of transactions.
fn histories() -> (u64, [History; 2]) {
    let seed = seed::from_env("FRONDB_SEED", 1);
    let profile = Profile { keys: 200, bulk: 120, reopen_in: 25, large_in: 40, ..Profile::crash() };
    let with_transactions = profile.clone().with_transactions();
    (seed, [profile, with_transactions].map(|profile| History::new(seed, 60, &profile)))
}

/// Tries one point after another until a history ends before its point. Returns the number of
/// refused calls.
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

/// With each additional page, a slightly later call is the first to find no space.
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

/// A file system may also report a full disk at a write to space that it has allocated.
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
