//! In a history of prepared transactions and of commits with private runs, the disk becomes full at
//! each write and each allocation in turn, once or until a call fails, and at every third page of
//! used space.
//!
//! A call that finds the disk full fails with `NoSpace` and changes nothing. Once there is space,
//! the same call succeeds. No row is lost and no extent leaks. `FRONDB_SEED` sets the history, and
//! `FRONDB_FAULT_STEP` the distance between the points.

use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_core::{Error, ErrorKind, Result};
use frondb_device::SharedDevice;
use frondb_testkit::faults::Script;
use frondb_testkit::seed;
use frondb_testkit::{CrashMode, FaultDevice, Faults, MemoryDevice};

use super::model::{Author, Expected};
use super::step::Step;
use super::world::World;

const STEPS: u64 = 24;

/// Most attempts of a call once there is space.
const TRIES: u32 = 3;

struct Disk {
    memory: MemoryDevice,
    faults: Arc<FaultDevice>,
    refused: u64,
}

impl Disk {
    fn heal(&self) {
        self.faults.set_script(&Script::default());
        self.memory.set_capacity(u64::MAX);
    }

    /// Repeats a call until it succeeds. Each attempt that finds the disk full makes space.
    fn insist<T>(&mut self, mut call: impl FnMut() -> Result<T>) -> T {
        for tries in 0.. {
            match call() {
                Ok(done) => return done,
                Err(error) => self.refuse(&error, tries),
            }
        }
        unreachable!()
    }

    fn refuse(&mut self, error: &Error, tries: u32) {
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
        assert!(tries < TRIES, "refused although there is space: {error}");
        self.refused += 1;
        self.heal();
    }
}

/// The condition under which the disk is full.
enum Full {
    /// A rule of the fault device.
    Rule(String),
    /// This many bytes are used.
    Capacity(u64),
}

/// Runs the history. Returns whether the disk was ever full, and how many calls failed.
fn run(seed: u64, full: &Full) -> (bool, u64) {
    let memory = MemoryDevice::new();
    let faults = Arc::new(Faults::over(Arc::new(memory.clone()), &Script::default()));
    match full {
        Full::Rule(rule) => faults.set_script(&rule.parse().unwrap()),
        Full::Capacity(bytes) => memory.set_capacity(*bytes),
    }
    let mut disk = Disk { memory, faults, refused: 0 };
    let device = Arc::clone(&disk.faults) as SharedDevice;
    let mut world = disk.insist(|| World::open(Arc::clone(&device), Expected::default()));
    let (mut author, mut check) = (Author::new(seed, 60, 40, 25), Prng::new(seed));
    for number in 0..STEPS {
        let step = Step::choose(&mut author, &world.expected, number);
        for tries in 0.. {
            let Err(error) = step.run(&mut world) else { break };
            world.check(&mut check);
            disk.refuse(&error, tries);
        }
    }
    let met = disk.faults.injected() > 0 || disk.refused > 0 || world.db.stats().disk_full > 0;
    disk.heal();
    world.check(&mut check);
    let expected = world.close().unwrap();
    let device = Arc::new(disk.memory.crash(CrashMode::KeepAll));
    let mut world = World::open(device, expected).unwrap();
    world.check(&mut check);
    world.checkpoint().unwrap();
    while world.db.run_one(true) {}
    assert_eq!(world.db.leaked_bytes(), 0);
    (met, disk.refused)
}

/// Prints the seed and the point at which the disk became full, if the test panics.
struct At(u64, String);

impl Drop for At {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("FRONDB_SEED={}: {}", self.0, self.1);
        }
    }
}

/// Tries one point after another, until a history ends before its point.
fn sweep(what: &str, step: u64, full: impl Fn(u64) -> Full) {
    let first = seed::from_env("FRONDB_SEED", 1);
    let step = seed::from_env("FRONDB_FAULT_STEP", step) as usize;
    for seed in first..first + seed::from_env("FRONDB_ROUNDS", 2) {
        let (mut points, mut refused) = (0, 0);
        for nth in (1..).step_by(step) {
            let at = At(seed, format!("{what}, point {nth}"));
            let (met, calls) = run(seed, &full(nth));
            drop(at);
            if !met {
                break;
            }
            points += 1;
            refused += calls;
        }
        println!("{what}: {points} points, {refused} calls refused");
        assert!(points > 3 && refused > 0, "{what}: {points} points, {refused} calls refused");
    }
}

/// With each additional page, a slightly later call is the first to find no space.
#[test]
fn the_disk_may_fill_up_at_any_page() {
    sweep("a disk of limited size", 3, |nth| Full::Capacity((nth - 1) * 4096));
}

#[test]
fn every_allocation_may_find_the_disk_full() {
    for count in ["1", "all"] {
        let rule = |nth| format!("fail allocate * nth={nth} count={count} error=ENOSPC");
        sweep(&rule(0), 1, |nth| Full::Rule(rule(nth)));
    }
}

/// Includes file systems that allocate space and then fail the write.
#[test]
fn every_write_may_find_the_disk_full() {
    for file in ["data", "wal"] {
        for count in ["1", "all"] {
            let rule = |nth| format!("fail write {file} nth={nth} count={count} error=ENOSPC");
            sweep(&rule(0), 1, |nth| Full::Rule(rule(nth)));
        }
    }
}
