//! Rules 8, 9 and 11: power loss at every write and sync of a history that appends, writes, syncs,
//! rolls over, recycles, fails to write and reopens. Recovery finds all acknowledged records, only
//! records that were appended, in order and without a gap, and no record that was reported as
//! failed. Then power is lost again during recovery.

#![allow(clippy::print_stdout, reason = "a failed test shows what it printed")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use frondb_core::prng::Prng;
use frondb_core::{ErrorKind, Lsn, Result};
use frondb_device::SharedDevice;
use frondb_testkit::faults::Script;
use frondb_testkit::{Crash, CrashTest, for_each_crash_point};
use frondb_testkit::{CrashMode, Faults, MemoryDevice};
use frondb_wal::{Wal, WalOptions};
use support::{payload, recover, small, unmark};

/// What the test knows of the history when power is lost.
#[derive(Debug, Default, Clone)]
struct Known {
    /// The records that were not reported as failed, by number, with their Lsns.
    records: Vec<(u64, Lsn, Lsn)>,
    /// Number of records acknowledged as written.
    written: usize,
    /// Number of records acknowledged as durable.
    synced: usize,
    /// The start and durable Lsn that a manifest would record.
    start: Lsn,
    durable: Lsn,
    /// Whether the test itself is changing the files.
    is_between: bool,
}

const OPTIONS: fn(bool) -> WalOptions =
    |compression| WalOptions { compression, spares_max: 2, ..small() };

struct History {
    prng: Prng,
    memory: Arc<MemoryDevice>,
    /// The same device, with its faults.
    device: SharedDevice,
    options: WalOptions,
    known: Known,
    number: u64,
}

impl History {
    /// Runs `steps` steps, or fewer if the device stops.
    fn run(mut self, steps: u64) -> Known {
        let Ok(mut wal) = self.reopen() else { return self.known };
        for _ in 0..steps {
            match self.step(wal) {
                Ok(next) => wal = next,
                Err(_) if self.memory.is_stopped() => break,
                // A failed sync: the process restarts without loss of power.
                Err(_) => match self.reopen() {
                    Ok(next) => wal = next,
                    Err(_) => break,
                },
            }
        }
        self.known
    }

    /// Opens the log again until no fault interferes. The records found are durable from then on.
    fn reopen(&mut self) -> Result<Wal> {
        let (start, durable) = (self.known.start, self.known.durable);
        loop {
            match recover(&self.device, &self.options, start, durable) {
                Ok((_, wal, _)) => {
                    self.known.records.retain(|&(_, _, end)| end <= wal.end_lsn());
                    let all = self.known.records.len();
                    assert!(all >= self.known.synced);
                    (self.known.written, self.known.synced) = (all, all);
                    return Ok(wal);
                }
                Err(error) if self.memory.is_stopped() => return Err(error),
                Err(error) => assert_ne!(error.kind(), ErrorKind::Corruption, "{error}"),
            }
        }
    }

    fn step(&mut self, wal: Wal) -> Result<Wal> {
        match self.prng.below(20) {
            0..=9 => self.append(&wal)?,
            10..=12 => {
                let result = wal.write_out();
                self.settle(&wal, result)?;
                self.known.written = self.known.records.len();
            }
            13..=16 => self.sync(&wal)?,
            17 => {
                // A checkpoint: the log is durable up to there, the manifest says so, then the
                // segments are removed.
                self.sync(&wal)?;
                if let Some(&(_, start, _)) = self.known.records.last() {
                    (self.known.start, self.known.durable) = (start, wal.durable_lsn());
                    wal.recycle(start)?;
                }
            }
            18 => match self.prng.below(3) {
                0 | 1 => wal.keep_spares(self.prng.below(2) == 0)?,
                _ => wal.end_segment(self.prng.below(2 << 10))?,
            },
            _ => {
                drop(wal);
                return self.reopen();
            }
        }
        Ok(wal)
    }

    fn append(&mut self, wal: &Wal) -> Result<()> {
        for _ in 0..=self.prng.below(3) {
            let len = self.prng.below(900) as usize;
            let appended = wal.append(&[&payload(self.number, len)])?;
            self.known.records.push((self.number, appended.start, appended.end));
            self.number += 1;
        }
        Ok(())
    }

    fn sync(&mut self, wal: &Wal) -> Result<()> {
        let result = wal.sync();
        self.settle(wal, result)?;
        let all = self.known.records.len();
        (self.known.written, self.known.synced) = (all, all);
        Ok(())
    }

    /// After a write that failed for lack of space, the records after `end` must never be found
    /// again.
    fn settle(&mut self, wal: &Wal, result: Result<()>) -> Result<()> {
        let end = wal.end_lsn();
        match result {
            Err(error) if error.kind() == ErrorKind::NoSpace => {
                for &(_, _, lsn) in &self.known.records {
                    let failed = wal.write_to(lsn).is_err();
                    assert_eq!(
                        failed,
                        lsn > end,
                        "a waiter fails exactly if its record was abandoned"
                    );
                }
                self.known.records.retain(|&(_, _, lsn)| lsn <= end);
                Ok(())
            }
            other => other,
        }
    }
}

fn check_recovered(device: SharedDevice, known: &Known, mode: CrashMode) {
    let (records, wal, torn) =
        recover(&device, &small(), known.start, known.durable).expect("the log opens");
    let expected: Vec<_> =
        known.records.iter().filter(|(_, start, _)| *start >= known.start).collect();
    let skipped = known.records.len() - expected.len();
    assert!(records.len() <= expected.len(), "{} of {}", records.len(), expected.len());
    for (record, (number, ..)) in records.iter().zip(&expected) {
        assert_eq!(record[..8], number.to_le_bytes(), "order");
        assert_eq!(*record, payload(*number, record.len()), "content of record {number}");
    }
    let found = skipped + records.len();
    assert!(found >= known.synced, "{found} of {} synced records", known.synced);
    if mode == CrashMode::KeepAll {
        assert!(found >= known.written, "{found} of {} written records", known.written);
        // The device stops between calls, so no write is torn.
        assert_eq!(torn, None);
    }
    // The log continues where it ended, and the tail does not come back.
    let end = wal.append(&[&payload(u64::MAX, 50)]).unwrap().end;
    wal.sync_to(end).unwrap();
    drop(wal);
    let (again, _, torn) = recover(&device, &small(), known.start, end).unwrap();
    assert_eq!(again[..records.len()], records[..]);
    assert_eq!(again[records.len()..], [payload(u64::MAX, 50)]);
    assert_eq!(torn, None);
}

fn check(crash: Crash, known: &Known) {
    // Loses power again at each point of recovery.
    let shared: SharedDevice = Arc::clone(&crash.device) as SharedDevice;
    for point in 0..64 {
        let device = crash.device.crash(CrashMode::KeepAll);
        device.stop_after(point);
        let again: SharedDevice = Arc::new(device.clone());
        let _ = recover(&again, &small(), known.start, known.durable);
        for mode in [CrashMode::LoseUnsynced, CrashMode::Random(point)] {
            let crashed: SharedDevice = Arc::new(device.crash(mode));
            check_recovered(crashed, known, mode);
        }
        if !device.is_stopped() {
            break;
        }
    }
    check_recovered(shared, known, crash.mode);
}

fn history(seed: u64, memory: Arc<MemoryDevice>, compression: bool, faults: &str) -> Known {
    let script: Script = faults.parse().unwrap();
    let device: SharedDevice = Arc::new(Faults::over(Arc::clone(&memory) as _, &script));
    let (options, prng) = (OPTIONS(compression), Prng::new(seed));
    History { prng, memory, device, options, known: Known::default(), number: 0 }.run(80)
}

/// Loses power at each point of one history per seed; the seed replaces `SEED` in `faults`. Every
/// second history compresses.
fn power_loss(seeds: std::ops::Range<u64>, faults: &str) {
    for seed in seeds {
        let faults = faults.replace("SEED", &seed.to_string());
        let report = for_each_crash_point(
            CrashTest::new(400, seed),
            |device| history(seed, device, seed % 2 == 0, &faults),
            check,
        );
        println!("wal with faults {faults:?}, seed {seed}: {report}");
        assert!(report.tried > 50);
    }
}

#[test]
fn power_loss_at_every_point() {
    power_loss(1..5, "");
}

#[test]
fn power_loss_at_every_point_with_a_disk_that_is_sometimes_full() {
    power_loss(
        11..15,
        "random write * chance=1/6 seed=SEED error=ENOSPC; \
         random allocate * chance=1/2 seed=SEED error=ENOSPC",
    );
}

#[test]
fn power_loss_at_every_point_with_syncs_that_sometimes_fail() {
    power_loss(
        21..25,
        "random sync * chance=1/12 seed=SEED; random sync_dir * chance=1/12 seed=SEED; \
         random rename * chance=1/12 seed=SEED",
    );
}

/// A new log, and one of a build without a mark: power is lost at every call until the mark exists
/// and `LOG` says so. Nothing that was synced is lost, and no intact log is ever called damaged.
#[test]
fn power_loss_at_every_point_until_the_log_has_its_mark() {
    for (upgrade, seed) in [(false, 31), (true, 32), (false, 33), (true, 34)] {
        let report = for_each_crash_point(
            CrashTest::new(400, seed),
            |memory| {
                let mut known = Known::default();
                let device: SharedDevice = Arc::clone(&memory) as _;
                let mut run = || -> Result<()> {
                    for number in 0..4 {
                        let (records, wal, _) = recover(&device, &small(), Lsn(0), Lsn(0))?;
                        assert_eq!(records.len(), known.synced);
                        let appended = wal.append(&[&payload(number, 40)])?;
                        known.records.push((number, appended.start, appended.end));
                        wal.sync_to(appended.end)?;
                        known.synced += 1;
                        known.written = known.synced;
                        drop(wal);
                        if upgrade && number == 0 {
                            // No build leaves the states that this call passes through.
                            known.is_between = true;
                            unmark(&*device)?;
                            known.is_between = false;
                        }
                    }
                    Ok(())
                };
                let _ = run();
                known
            },
            |crash, known| {
                if !known.is_between {
                    check(crash, known);
                }
            },
        );
        println!("mark, upgrade {upgrade}, seed {seed}: {report}");
        assert!(report.tried > 20);
    }
}
