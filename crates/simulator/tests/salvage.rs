//! Salvage of databases that are damaged anywhere. It never panics. Every row that it saves under
//! the name of its tree is a row of the undamaged database, and every row that it does not save
//! lies in a range that it lists. One damaged byte of a short record of the manifest or the log is
//! repaired.
//!
//! `FRONDB_SEED` selects the damaged places. `FRONDB_FLIPS` sets how often each file gets damage of
//! each kind.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;

use frondb::testing::TestDb;
use frondb::{Db, ErrorKind, SalvageReport};
use frondb_core::executor::ThreadExecutor;
use frondb_core::prng::Prng;
use frondb_device::{Device, OpenOptions};
use frondb_simulator::crash::{DatabaseContents, read_all};
use frondb_simulator::setup::{clock, open};
use frondb_simulator::{AllowedStates, History, Profile, Setup, Simulation};
use frondb_testkit::seed;
use frondb_testkit::{CrashMode, MemoryDevice};

/// The kind of damage to a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Damage {
    /// One byte is changed: XOR with this number.
    Byte(u8),
    /// A sector is zeroed.
    Sector,
    /// The file is truncated at the offset of the damage.
    Cut,
    Removed,
}

/// A database with every kind of data, all of it durable; closed, or still open as after a kill.
fn database(close: bool) -> (MemoryDevice, Setup, DatabaseContents) {
    let device = MemoryDevice::new();
    let setup = Setup::tall();
    let profile =
        Profile { reopen_in: 0, large_in: 60, reads_percent: 0, keys: 200, ..Profile::general() };
    let history = History::new(5, 90, &profile);
    let known = Arc::new(AllowedStates::default());
    let mut simulation = Simulation::new(device.clone(), setup.clone(), known).unwrap();
    simulation.run(&history).unwrap();
    if close {
        simulation.db().close().unwrap();
    } else {
        simulation.db().sync().unwrap();
    }
    let device = device.crash(CrashMode::KeepAll);
    let whole = open(&device.crash(CrashMode::KeepAll), &setup, &(clock() as _)).unwrap();
    let whole = read_all(&whole).unwrap();
    assert!(whole.values().map(Vec::len).sum::<usize>() > 100);
    (device, setup, whole)
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

/// Bytes up to the last byte that is not zero; the rest of the file is allocated ahead.
fn used(device: &MemoryDevice, name: &str) -> u64 {
    let file = device.open(name, OpenOptions::READ).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(0, &mut bytes).unwrap();
    bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last as u64 + 1)
}

/// Bytes of the last record of the manifest.
const LAST_RECORD_BYTES: u64 = 16;

/// The kind of a cut at this byte. If the database was open, the superblock may not record the
/// manifest's last record yet. A cut in this record then looks like the torn end of a write that
/// was never acknowledged.
fn kind_of_cut(len: u64, offset: u64, is_closed: bool) -> &'static str {
    if is_closed || len - offset > LAST_RECORD_BYTES { "cut" } else { "cut of the end" }
}

fn damage(device: &MemoryDevice, name: &str, offset: u64, what: Damage) {
    let file = device.open(name, OpenOptions::WRITE).unwrap();
    match what {
        Damage::Byte(change) => {
            let mut byte = [0];
            file.read_exact_at(offset, &mut byte).unwrap();
            file.write_at(offset, &[byte[0] ^ change]).unwrap();
        }
        Damage::Sector => {
            let from = offset / 512 * 512;
            let len = (file.len().unwrap() - from).min(512);
            file.write_at(from, &vec![0; len as usize]).unwrap();
        }
        Damage::Cut => file.set_len(offset).unwrap(),
        Damage::Removed => device.remove(name).unwrap(),
    }
}

/// Saves what can be read, including `uncertain` trees; `None` if nothing can be read.
fn salvage(device: &MemoryDevice, setup: &Setup) -> Option<(SalvageReport, DatabaseContents)> {
    let (from, executor) = (Arc::new(device.clone()), ThreadExecutor::shared());
    let damaged = match Db::open_damaged(from, None, setup.options(), clock(), &executor) {
        Ok(damaged) => damaged,
        Err(error) => {
            let kinds = [ErrorKind::Corruption, ErrorKind::NotFound];
            assert!(kinds.contains(&error.kind()), "{error}");
            return None;
        }
    };
    let target = Arc::new(MemoryDevice::new());
    let new = TestDb::on(target).options(setup.options()).open().unwrap();
    let report = damaged.save(&new, true, &mut |_, _, _| true).unwrap();
    let found = read_all(&new).unwrap();
    Some((report, found))
}

/// Checks that every saved row is correct and every other row is in a listed range.
fn check(report: &SalvageReport, found: &DatabaseContents, whole: &DatabaseContents) {
    for (name, rows) in found {
        if name.ends_with(".uncertain") {
            assert!(!report.cut.is_empty(), "{name} is reported as uncertain without a reason");
            continue;
        }
        let right: BTreeMap<_, _> = whole[name].iter().cloned().collect();
        for (key, value) in rows {
            assert!(right.get(key) == Some(value), "a row of {name} that does not exist");
        }
    }
    if !report.cut.is_empty() {
        assert!(report.trees.iter().all(|tree| tree.saved_as.as_ref() != Some(&tree.name)));
        return;
    }
    for (name, rows) in whole {
        let tree = report.trees.iter().find(|tree| tree.name == *name);
        let tree = tree.unwrap_or_else(|| panic!("tree {name} is not in the report"));
        let saved: BTreeMap<_, _> = found.get(name).into_iter().flatten().cloned().collect();
        assert_eq!(tree.rows, saved.len() as u64);
        for (key, _) in rows.iter().filter(|(key, _)| !saved.contains_key(key)) {
            let is_listed = |range: &frondb::DamagedRange| {
                range.lo <= *key && range.hi.as_ref().is_none_or(|hi| key < hi)
            };
            assert!(tree.lost.iter().any(is_listed), "a row of {name} is lost and not listed");
        }
    }
}

/// Number of cases by file and damage: everything saved, parts of trees lost, all uncertain,
/// nothing saved.
type Outcomes = BTreeMap<(String, &'static str), [u64; 4]>;

fn sweep(close: bool) -> Outcomes {
    let seed = seed::from_env("FRONDB_SEED", 1);
    let count = seed::from_env("FRONDB_FLIPS", 4);
    let (device, setup, whole) = database(close);
    let mut prng = Prng::new(seed);
    let mut outcomes = Outcomes::new();
    let mut lost = Vec::new();
    for file in files(&device) {
        let len = used(&device, &file);
        let mut places = vec![(0, Damage::Removed, "removed")];
        for _ in 0..if len > 0 { count } else { 0 } {
            let change = 1 + prng.below(255) as u8;
            places.push((prng.below(len), Damage::Byte(change), "byte"));
            places.push((prng.below(len.min(3000)), Damage::Byte(change), "byte"));
            places.push((prng.below(len), Damage::Sector, "sector"));
            let cut = prng.below(len);
            places.push((cut, Damage::Cut, kind_of_cut(len, cut, close)));
        }
        for (offset, what, kind) in places {
            let device = device.crash(CrashMode::KeepAll);
            damage(&device, &file, offset, what);
            let at = At(&file, offset, what);
            let outcome = match salvage(&device, &setup) {
                None => 3,
                Some((report, found)) => {
                    check(&report, &found, &whole);
                    if kind == "byte" && report.cut.is_empty() {
                        let all: usize = whole.values().map(Vec::len).sum();
                        let saved: u64 = report.trees.iter().map(|tree| tree.rows).sum();
                        lost.push((all - saved as usize) as f64 / all as f64);
                    }
                    if !report.cut.is_empty() { 2 } else { usize::from(!report.is_complete()) }
                }
            };
            drop(at);
            let name = file.trim_matches(|c: char| c.is_ascii_digit() || c == '-').to_owned();
            outcomes.entry((name, kind)).or_default()[outcome] += 1;
        }
    }
    lost.sort_by(f64::total_cmp);
    println!(
        "part of the rows lost by a byte: {:?} at most {:?}",
        lost[lost.len() / 2],
        lost.last()
    );
    println!("whole, parts lost, uncertain, nothing: {outcomes:#?}");
    outcomes
}

/// If the test panics, prints the damage.
struct At<'a>(&'a str, u64, Damage);

impl Drop for At<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{:?} at byte {} of {}", self.2, self.1, self.0);
        }
    }
}

fn of(outcomes: &Outcomes, file: &str, kind: &str) -> [u64; 4] {
    let mut sum = [0; 4];
    for ((name, damage), counts) in outcomes {
        if name.contains(file) && *damage == kind {
            (0..4).for_each(|i| sum[i] += counts[i]);
        }
    }
    sum
}

#[test]
fn a_damaged_byte_of_manifest_or_log_loses_nothing() {
    for close in [true, false] {
        let outcomes = sweep(close);
        for file in ["MANIFEST", "SUPER", ".wal", "LOG"] {
            let [whole, lost, uncertain, nothing] = of(&outcomes, file, "byte");
            assert!(whole > 0 && lost + nothing == 0, "{file}: {outcomes:?}");
            // In records over 4 KiB only a flipped bit can be repaired.
            assert!(uncertain * 4 < whole, "{file}: {uncertain} of {whole}");
        }
        assert!(of(&outcomes, "data", "byte")[1] > 0, "blocks are lost");
        assert!(of(&outcomes, "data", "cut")[1] > 0, "ends of data files are lost");
        let [whole, lost, ..] = of(&outcomes, "MANIFEST", "cut");
        assert_eq!(whole + lost, 0, "a truncated manifest proves nothing");
    }
}
