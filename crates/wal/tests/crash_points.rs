//! Power loss at every write and sync of a history that appends, writes, syncs, rolls, recycles,
//! fails to write and reopens: what was acknowledged is there, what is there was appended, in order
//! and without a gap, and what was reported as failed is not there. Then power is lost again during
//! recovery.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use frondb_core::prng::Prng;
use frondb_core::{ErrorKind, Lsn, Result};
use frondb_device::faults::Script;
use frondb_device::{CrashMode, FaultDevice, MemoryDevice, SharedDevice};
use frondb_testkit::{Crash, CrashTest, for_each_crash_point};
use frondb_wal::{Wal, WalOptions};
use support::{payload, recover, small};

/// What the history knows when it ends.
#[derive(Debug, Default, Clone)]
struct Known {
    /// The records that were not reported as failed, by number, with their Lsns.
    records: Vec<(u64, Lsn, Lsn)>,
    /// How many of them were acknowledged as written.
    written: usize,
    /// How many of them were acknowledged as durable.
    synced: usize,
    /// What a manifest would know.
    start: Lsn,
    durable: Lsn,
}

const OPTIONS: fn(bool) -> WalOptions =
    |compression| WalOptions { compression, spares_max: 2, ..small() };

struct History {
    prng: Prng,
    device: SharedDevice,
    options: WalOptions,
    known: Known,
    number: u64,
}

impl History {
    /// Runs until the device stops.
    fn run(mut self, steps: u64) -> Known {
        let Ok((_, mut wal, _)) = recover(&self.device, &self.options, Lsn(0), Lsn(0)) else {
            return self.known;
        };
        for _ in 0..steps {
            match self.step(wal) {
                Ok(next) => wal = next,
                Err(_) => break,
            }
        }
        self.known
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
                // segments go.
                self.sync(&wal)?;
                if let Some(&(_, start, _)) = self.known.records.last() {
                    (self.known.start, self.known.durable) = (start, wal.durable_lsn());
                    wal.recycle(start)?;
                }
            }
            18 => wal.trim_spares()?,
            _ => {
                drop(wal);
                let (start, durable) = (self.known.start, self.known.durable);
                let mut opened = recover(&self.device, &self.options, start, durable);
                while opened.as_ref().is_err_and(|error| error.kind() == ErrorKind::NoSpace) {
                    opened = recover(&self.device, &self.options, start, durable);
                }
                let (_, wal, _) = opened?;
                // What was only in memory is gone, what was written is durable now.
                self.known.records.retain(|&(_, _, end)| end <= wal.end_lsn());
                let all = self.known.records.len();
                (self.known.written, self.known.synced) = (all, all);
                return Ok(wal);
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

    /// After a write that failed for lack of space the records behind `end` are gone for good.
    fn settle(&mut self, wal: &Wal, result: Result<()>) -> Result<()> {
        let end = wal.end_lsn();
        match result {
            Err(error) if error.kind() == ErrorKind::NoSpace => {
                for &(_, _, lsn) in &self.known.records {
                    let failed = wal.write_to(lsn).is_err();
                    assert_eq!(failed, lsn > end, "who waits learns exactly what failed");
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
    // The log goes on where it ended, and the tail does not come back.
    let end = wal.append(&[&payload(u64::MAX, 50)]).unwrap().end;
    wal.sync_to(end).unwrap();
    drop(wal);
    let (again, _, torn) = recover(&device, &small(), known.start, end).unwrap();
    assert_eq!(again[..records.len()], records[..]);
    assert_eq!(again[records.len()..], [payload(u64::MAX, 50)]);
    assert_eq!(torn, None);
}

fn check(crash: Crash, known: &Known) {
    // Lose power again at each point of recovery.
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

fn history(seed: u64, device: SharedDevice, compression: bool) -> Known {
    let options = OPTIONS(compression);
    let prng = Prng::new(seed);
    History { prng, device, options, known: Known::default(), number: 0 }.run(80)
}

#[test]
fn power_loss_at_every_point() {
    for seed in 1..=4 {
        let report = for_each_crash_point(
            CrashTest::new(400, seed),
            |device| history(seed, device, seed % 2 == 0),
            check,
        );
        println!("wal, seed {seed}: {report}");
        assert!(report.tried > 50);
    }
}

#[test]
fn power_loss_at_every_point_with_a_disk_that_is_full_now_and_then() {
    for seed in 11..=14 {
        let script = format!(
            "random write * chance=1/6 seed={seed} error=ENOSPC; \
             random allocate * chance=1/2 seed={seed} error=ENOSPC"
        );
        let script: Script = script.parse().unwrap();
        let report = for_each_crash_point(
            CrashTest::new(400, seed),
            |device| {
                let device: Arc<MemoryDevice> = device;
                let device = FaultDevice::new(device, &script);
                history(seed, Arc::new(device), false)
            },
            check,
        );
        println!("wal with ENOSPC, seed {seed}: {report}");
        assert!(report.tried > 50);
    }
}
