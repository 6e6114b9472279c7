//! `EIO` at every sync, write and read of a history, one at a time, and `ENOSPC` at every write of
//! the manifest and of the superblock.
//!
//! | failing call | what the engine does |
//! |---|---|
//! | sync | is poisoned: the state of the disk is unknown, no file of that kind is synced again |
//! | write | `Io` or `Poisoned`; nothing that was acknowledged is lost |
//! | read | the reader gets `Io` and may retry; background work leaves the data alone |
//!
//! In each case the data in memory can still be read. A reopen finds everything that was
//! acknowledged, both on the present files and on the files that a power loss would leave.
//!
//! `FRONDB_SEED` selects the history. `FRONDB_FAULT_STEP=n` tries only every n-th call.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;

use frondb::{ErrorKind, Result};
use frondb_simulator::crash::Check;
use frondb_simulator::{AllowedStates, History, Op, Profile, Setup, Simulation, check_recovered};
use frondb_testkit::faults::Script;
use frondb_testkit::seed;
use frondb_testkit::{CrashMode, Faults, MemoryDevice};

/// The outcome of a fault: the kind of the first error, if a call failed.
type Outcome = Option<ErrorKind>;

/// Executes the history until a call fails. Returns `None` if the fault never occurred.
fn run(history: &History, setup: &Setup, rule: &str) -> Option<Outcome> {
    let memory = MemoryDevice::new();
    let script: Script = rule.parse().unwrap();
    let faults = Arc::new(Faults::over(Arc::new(memory.clone()), &script));
    let known = Arc::new(AllowedStates::default());
    let shared = Arc::clone(&faults) as _;
    let outcome = match Simulation::on(shared, setup.clone(), Arc::clone(&known)) {
        Err(error) => Some(error.kind()),
        Ok(mut simulation) => {
            let failed = history
                .ops
                .iter()
                .find_map(|op| simulation.apply(op).err().map(|error| (op, error.kind())));
            if let Some((op, kind)) = &failed
                && simulation.is_open()
            {
                after_an_error(&mut simulation, op, *kind, &known);
            }
            let kind = failed.map(|(_, kind)| kind);
            if kind == Some(ErrorKind::Poisoned) && rule.starts_with("fail sync ") {
                assert_eq!(faults.injected(), 1, "synced again after a failed sync");
            }
            kind
        }
    };
    if faults.injected() == 0 {
        return None;
    }
    for mode in [CrashMode::LoseUnsynced, CrashMode::KeepAll, CrashMode::Random(1)] {
        check_recovered(&memory.crash(mode), setup, &known, Check::Once);
    }
    Some(outcome)
}

fn after_an_error(simulation: &mut Simulation, op: &Op, kind: ErrorKind, known: &AllowedStates) {
    if kind == ErrorKind::Io && is_read(op) && simulation.db().sync().is_ok() {
        // Only one call of the device failed.
        simulation.apply(op).unwrap();
        simulation.check_all().unwrap();
        return;
    }
    known.check(&simulation.read_held().unwrap(), &simulation.db().prepared());
    let db = simulation.db();
    let calls: [(&str, Result<()>); 6] = [
        ("sync", db.sync()),
        ("flush", db.flush()),
        ("checkpoint", db.checkpoint()),
        ("rename", db.rename_tree("any", "other")),
        ("drop", db.drop_tree("any")),
        ("close", db.close()),
    ];
    if calls[0].1.is_err() {
        for (name, result) in calls {
            let kind = result.as_ref().err().map(frondb::Error::kind);
            assert_eq!(kind, Some(ErrorKind::Poisoned), "{name} after {op:?}: {result:?}");
        }
    } else {
        assert!(kind != ErrorKind::Poisoned, "the database is no longer poisoned");
    }
}

fn is_read(op: &Op) -> bool {
    matches!(
        op,
        Op::Get { .. }
            | Op::Scan { .. }
            | Op::OpenCursor { .. }
            | Op::MoveCursor { .. }
            | Op::CheckAll
    )
}

/// If the test panics, prints which call failed.
struct At<'a>(u64, &'a str);

impl Drop for At<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("seed {}: {}", self.0, self.1);
        }
    }
}

fn sweep(call: &str, error: &str, reads: u64) -> BTreeMap<String, u64> {
    let seed = seed::from_env("FRONDB_SEED", 1);
    let step = seed::from_env("FRONDB_FAULT_STEP", 1) as usize;
    let profile = Profile {
        keys: 200,
        bulk: 120,
        reopen_in: 25,
        large_in: 40,
        reads_percent: reads,
        ..Profile::crash()
    };
    let mut outcomes = BTreeMap::new();
    for profile in [profile.clone(), profile.with_transactions()] {
        let history = History::new(seed, 60, &profile);
        sweep_history(seed, &history, call, error, step, &mut outcomes);
    }
    println!("{call} {error}: {outcomes:?}");
    outcomes
}

/// Runs one history again and again. In each run another call fails.
fn sweep_history(
    seed: u64,
    history: &History,
    call: &str,
    error: &str,
    step: usize,
    outcomes: &mut BTreeMap<String, u64>,
) {
    for nth in (1..).step_by(step) {
        let rule = format!("fail {call} nth={nth} {error}");
        let at = At(seed, &rule);
        let outcome = run(history, &Setup::tall(), &rule);
        drop(at);
        let Some(outcome) = outcome else { break };
        let name = outcome.map_or("no call failed".to_owned(), |kind| kind.to_string());
        *outcomes.entry(name).or_insert(0) += 1;
    }
}

#[test]
fn a_failed_sync_poisons_and_is_never_repeated() {
    for call in ["sync wal/", "sync data", "sync MANIFEST", "sync SUPER"] {
        let outcomes = sweep(call, "count=all", 5);
        assert!(outcomes.contains_key("Poisoned"), "{outcomes:?}");
        // `Io` if the engine was not open yet.
        assert!(outcomes.keys().all(|kind| kind == "Poisoned" || kind == "Io"), "{outcomes:?}");
    }
}

/// A failed sync may cause no error if the directory changed only by a removal, which need not be
/// durable.
#[test]
fn a_failed_sync_of_names_loses_nothing() {
    let outcomes = sweep("sync_dir *", "count=all", 5);
    let allowed = ["Poisoned", "Io", "no call failed"];
    assert!(outcomes.keys().all(|kind| allowed.contains(&&**kind)), "{outcomes:?}");
}

#[test]
fn a_failed_write_loses_nothing() {
    let outcomes = sweep("write *", "error=EIO", 5);
    let allowed = ["Poisoned", "Io", "no call failed"];
    assert!(outcomes.keys().all(|kind| allowed.contains(&&**kind)), "{outcomes:?}");
}

/// Log and manifest allocate their space before they write, so ENOSPC of a write means that the
/// file system has broken its promise. If the engine cannot undo its changes in memory, it is
/// poisoned.
#[test]
fn a_manifest_without_space_refuses_or_poisons() {
    for file in ["write MANIFEST", "write SUPER"] {
        let outcomes = sweep(file, "error=ENOSPC", 5);
        let allowed = ["Poisoned", "NoSpace", "no call failed"];
        assert!(outcomes.keys().all(|kind| allowed.contains(&&**kind)), "{outcomes:?}");
    }
}

#[test]
fn a_failed_read_is_an_error_of_that_read() {
    let outcomes = sweep("read *", "error=EIO", 40);
    let allowed = ["Io", "no call failed"];
    assert!(outcomes.keys().all(|kind| allowed.contains(&&**kind)), "{outcomes:?}");
}
