//! One flipped bit anywhere in a database. A reader of the damaged bytes reports file and offset,
//! or the bit is unused, or the log or the manifest is cut at the bit, which is reported. No answer
//! is wrong, nothing panics, and no more than the damaged block is lost.
//!
//! `FRONDB_SEED` selects other bits, `FRONDB_FLIPS` the number of random bits in each file.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;

use frondb::{Db, Error, ErrorKind, Result};
use frondb_core::prng::Prng;
use frondb_device::{Device, OpenOptions};
use frondb_simulator::crash::{DatabaseContents, read_all};
use frondb_simulator::model::Message;
use frondb_simulator::setup::{clock, open};
use frondb_simulator::{AllowedStates, History, Op, Profile, Setup, Simulation};
use frondb_testkit::seed;
use frondb_testkit::{CrashMode, MemoryDevice};

/// The outcome of a flip.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Outcome {
    /// The database did not open, and the error names the damaged place.
    Refused,
    /// The database opened. Reads that need the damaged block failed; all other reads were correct.
    BlockLost,
    /// The database opened. Reads of one large value failed; all other reads were correct.
    ValueLost,
    /// The log or the manifest was cut at the flipped bit, and the cut was reported.
    Trimmed,
    /// Every answer was correct, because the bit is unused or the data is stored twice.
    Harmless,
}

/// A database with every kind of data; closed, or still open as after a kill.
fn database(close: bool) -> (MemoryDevice, Setup, Arc<AllowedStates>) {
    let device = MemoryDevice::new();
    let setup = Setup::tall();
    let profile =
        Profile { reopen_in: 0, large_in: 60, reads_percent: 0, keys: 200, ..Profile::general() };
    let known = Arc::new(AllowedStates::default());
    let mut history = History::new(5, 90, &profile);
    if !close {
        // Writes that only the log holds. Without updates, any tree accepts them.
        let more = History::new(6, 200, &profile).ops.into_iter().filter_map(|op| match op {
            Op::Write { mut messages, sync } => {
                messages.retain(|(_, message)| !matches!(message, Message::Update(..)));
                Some(Op::Write { messages, sync })
            }
            _ => None,
        });
        history.ops.extend(more.take(10));
    }
    let mut simulation =
        Simulation::new(device.clone(), setup.clone(), Arc::clone(&known)).unwrap();
    simulation.run(&history).unwrap();
    if close {
        simulation.db().close().unwrap();
    }
    drop(simulation);
    (device, setup, known)
}

fn files(device: &MemoryDevice) -> Vec<String> {
    let mut files = Vec::new();
    for name in device.list("").unwrap() {
        match device.list(&name) {
            Ok(below) => files.extend(below.into_iter().map(|file| format!("{name}/{file}"))),
            Err(_) => files.push(name),
        }
    }
    files
}

fn flip(device: &MemoryDevice, file: &str, offset: u64, bit: u64) {
    let file = device.open(file, OpenOptions::WRITE).unwrap();
    let mut byte = [0];
    file.read_exact_at(offset, &mut byte).unwrap();
    file.write_at(offset, &[byte[0] ^ (1 << bit)]).unwrap();
    file.sync().unwrap();
}

/// Checks that the error is a corruption and names the file, or the file `SUPER`.
fn assert_names(error: &Error, file: &str) {
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    let place = error.place().unwrap();
    let name = file.rsplit('/').next().unwrap();
    assert!(place.file.contains(name) || place.file.contains("SUPER"), "{error}: not in {file}");
}

/// Looks up each key of `whole`, the contents before the damage. Returns the number of keys that
/// cannot be read.
fn read_by_key(db: &Db, whole: &DatabaseContents, file: &str) -> Result<usize> {
    let mut lost = 0;
    for (name, entries) in whole {
        let tree = db.open_tree(name)?;
        for (key, value) in entries {
            match tree.get(key) {
                Ok(found) => assert!(found.as_ref() == Some(value), "a wrong answer"),
                Err(error) => {
                    assert_names(&error, file);
                    lost += 1;
                }
            }
        }
    }
    Ok(lost)
}

fn outcome(
    device: &MemoryDevice,
    setup: &Setup,
    whole: &DatabaseContents,
    known: &AllowedStates,
    file: &str,
) -> Outcome {
    let db = match open(device, setup, &(clock() as _)) {
        Ok(db) => db,
        Err(error) => {
            assert_names(&error, file);
            return Outcome::Refused;
        }
    };
    let recovery = db.recovery().clone();
    let trimmed = recovery.log_tail.is_some() || recovery.manifest_tail.is_some();
    match read_all(&db) {
        Ok(found) if found == *whole => Outcome::Harmless,
        Ok(found) => {
            assert!(trimmed, "other contents and no tail reported");
            known.check(&found, &db.prepared());
            Outcome::Trimmed
        }
        Err(error) => {
            assert_names(&error, file);
            let all: usize = whole.values().map(Vec::len).sum();
            let lost = read_by_key(&db, whole, file).unwrap();
            assert!(lost < all / 2, "{lost} of {all} entries are unreadable");
            let report = db.verify(&mut |_, _, _| true).unwrap();
            assert!(!report.faults.is_empty(), "verify found nothing");
            if error.place().unwrap().what != "value" {
                return Outcome::BlockLost;
            }
            assert!(lost == 1 && report.faults.len() == 1, "{:?}", report.faults);
            assert_names(&report.faults[0], file);
            Outcome::ValueLost
        }
    }
}

fn sweep(close: bool) -> BTreeMap<(String, Outcome), u64> {
    let seed = seed::from_env("FRONDB_SEED", 1);
    let flips = seed::from_env("FRONDB_FLIPS", 250);
    let (device, setup, known) = database(close);
    let copy = || device.crash(CrashMode::KeepAll);
    let whole = read_all(&open(&copy(), &setup, &(clock() as _)).unwrap()).unwrap();
    let mut outcomes = BTreeMap::new();
    let mut prng = Prng::new(seed);
    for file in files(&device) {
        let bytes = device.open(&file, OpenOptions::READ).unwrap().len().unwrap();
        // Every bit of the first 24 bytes, which contain headers, and a sample of the other bits.
        let head = (0..bytes.min(24)).flat_map(|offset| (0..8).map(move |bit| (offset, bit)));
        let mut places: Vec<(u64, u64)> = head.collect();
        for _ in 0..if bytes > 0 { flips } else { 0 } {
            places.push((prng.below(bytes), prng.below(8)));
        }
        for (offset, bit) in places {
            let device = copy();
            flip(&device, &file, offset, bit);
            let at = At(&file, offset, bit);
            let outcome = outcome(&device, &setup, &whole, &known, &file);
            drop(at);
            let kind = file.trim_matches(|c: char| c.is_ascii_digit() || c == '-').to_owned();
            *outcomes.entry((kind, outcome)).or_insert(0) += 1;
        }
    }
    outcomes
}

/// If the test panics, prints the flipped bit.
struct At<'a>(&'a str, u64, u64);

impl Drop for At<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("bit {} of byte {} of {}", self.2, self.1, self.0);
        }
    }
}

#[test]
fn a_flipped_bit_in_a_closed_database_is_found() {
    let outcomes = sweep(true);
    println!("{outcomes:#?}");
    let count = |file: &str, outcome| {
        let key = |(name, found): &(String, Outcome)| name.contains(file) && *found == outcome;
        outcomes.iter().filter(|(k, _)| key(k)).map(|(_, n)| n).sum::<u64>()
    };
    assert!(count("MANIFEST", Outcome::Refused) > 0);
    assert!(count("data", Outcome::BlockLost) > 0);
    assert!(count("data", Outcome::ValueLost) > 0);
}

#[test]
fn a_flipped_bit_in_a_log_is_found_or_cuts_its_tail() {
    let outcomes = sweep(false);
    println!("{outcomes:#?}");
    let of = |outcome| outcomes.iter().any(|((file, o), _)| file.contains("wal") && *o == outcome);
    assert!(of(Outcome::Refused) && of(Outcome::Trimmed));
}
