//! Rule 9: power loss at every write and sync of a history of edits and snapshots: recovery finds
//! every acknowledged edit, and only edits that were appended, in their order. Then power is lost
//! again during recovery.

#![allow(clippy::print_stdout, reason = "a failed test shows what it printed")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use frondb_core::prng::Prng;
use frondb_core::{ErrorKind, Result};
use frondb_device::SharedDevice;
use frondb_manifest::{Manifest, SnapshotWriter};
use frondb_testkit::faults::Script;
use frondb_testkit::{Crash, CrashTest, for_each_crash_point};
use frondb_testkit::{CrashMode, Faults, MemoryDevice};
use support::{create, edit, encode, open, state};

/// What the test knows of the history when power is lost.
#[derive(Debug, Default, Clone)]
struct Known {
    created: bool,
    /// Numbers of the edits that were not reported as failed.
    edits: Vec<u64>,
    /// Number of edits that were acknowledged.
    synced: usize,
}

struct History {
    prng: Prng,
    memory: Arc<MemoryDevice>,
    /// The device `memory` with injected faults.
    device: SharedDevice,
    known: Known,
    next: u64,
}

impl History {
    fn run(mut self, steps: u64) -> Known {
        let Ok(mut manifest) = self.create() else { return self.known };
        self.known.created = true;
        let mut writer = None;
        for _ in 0..steps {
            match self.step(manifest, &mut writer) {
                Ok(next) => manifest = next,
                Err(_) if self.memory.is_stopped() => break,
                // A failed sync: the process restarts without loss of power.
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Poisoned);
                    writer = None;
                    match self.reopen() {
                        Ok(next) => manifest = next,
                        Err(_) => break,
                    }
                }
            }
        }
        self.known
    }

    /// Creates the database, in as many attempts as the faults require.
    fn create(&mut self) -> Result<Manifest> {
        loop {
            match create(&self.device) {
                Err(error) if self.memory.is_stopped() => return Err(error),
                // An attempt failed after the database existed.
                Err(error) if error.kind() == ErrorKind::Exists => return self.reopen(),
                Err(_) => {}
                created => return created,
            }
        }
    }

    /// Opens the manifest again until no fault interferes. The edits found are durable from then
    /// on.
    fn reopen(&mut self) -> Result<Manifest> {
        loop {
            match open(&self.device) {
                Ok((manifest, recovered)) => {
                    let found = state(&recovered);
                    assert!(found.len() >= self.known.synced);
                    assert_eq!(found, self.known.edits[..found.len()]);
                    self.known.synced = found.len();
                    self.known.edits = found;
                    return Ok(manifest);
                }
                Err(error) if self.memory.is_stopped() => return Err(error),
                Err(error) => assert_ne!(error.kind(), ErrorKind::Corruption, "{error}"),
            }
        }
    }

    fn step(
        &mut self,
        manifest: Manifest,
        writer: &mut Option<SnapshotWriter>,
    ) -> Result<Manifest> {
        match self.prng.below(12) {
            0..=5 => {
                self.known.edits.push(self.next);
                manifest.append(&edit(self.next))?;
                self.next += 1;
            }
            6..=8 => {
                // If a ticket is durable, so are all edits before it.
                self.known.edits.push(self.next);
                let ticket = manifest.append(&edit(self.next))?;
                self.next += 1;
                let secured = self.next.is_multiple_of(2);
                match if secured { manifest.secure(ticket) } else { manifest.sync(ticket) } {
                    Ok(()) => self.known.synced = self.known.edits.len(),
                    Err(error) if error.kind() == ErrorKind::NoSpace => {
                        self.known.edits.truncate(self.known.synced);
                    }
                    Err(error) => return Err(error),
                }
            }
            9 => self.begin(&manifest, writer)?,
            10 => self.finish(writer)?,
            _ => {
                *writer = None;
                if self.prng.chance(1, 2) {
                    manifest.secure_all()?;
                }
                drop(manifest);
                return self.reopen();
            }
        }
        Ok(manifest)
    }

    fn begin(&mut self, manifest: &Manifest, writer: &mut Option<SnapshotWriter>) -> Result<()> {
        *writer = None;
        let snapshot = encode(&self.known.edits);
        let begun = manifest.begin_snapshot().and_then(|mut begun| {
            let (head, tail) = snapshot.split_at(snapshot.len() / 2);
            begun.write(head)?;
            begun.write(tail)?;
            Ok(begun)
        });
        match begun {
            Ok(begun) => *writer = Some(begun),
            Err(error) if error.kind() == ErrorKind::NoSpace => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn finish(&mut self, writer: &mut Option<SnapshotWriter>) -> Result<()> {
        let Some(writer) = writer.take() else { return Ok(()) };
        match writer.finish() {
            Ok(()) => self.known.synced = self.known.edits.len(),
            Err(error) if matches!(error.kind(), ErrorKind::NoSpace | ErrorKind::Busy) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

fn check_recovered(device: SharedDevice, known: &Known, mode: CrashMode) {
    let (manifest, recovered) = match open(&device) {
        Ok(opened) => opened,
        Err(error) if !known.created => {
            assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
            create(&device).unwrap();
            open(&device).unwrap()
        }
        Err(error) => panic!("{error}"),
    };
    let found = state(&recovered);
    assert!(found.len() <= known.edits.len());
    assert_eq!(found, known.edits[..found.len()]);
    assert!(found.len() >= known.synced, "{} of {} synced", found.len(), known.synced);
    if mode == CrashMode::KeepAll {
        assert_eq!(recovered.torn_tail, None, "the device stops between calls");
    }
    // The manifest continues from there, through edits and a snapshot.
    support::log(&manifest, &edit(1 << 40)).unwrap();
    drop(manifest);
    let (manifest, recovered) = open(&device).unwrap();
    assert_eq!(recovered.torn_tail, None);
    let mut expected = found;
    expected.push(1 << 40);
    assert_eq!(state(&recovered), expected);
    support::rotate(&manifest, &expected).unwrap();
    support::log(&manifest, &edit(1 << 41)).unwrap();
    drop(manifest);
    expected.push(1 << 41);
    assert_eq!(state(&open(&device).unwrap().1), expected);
    assert_eq!(device.list("").unwrap().len(), 2, "no file is left over");
}

fn check(crash: Crash, known: &Known) {
    for point in 0..64 {
        let device = crash.device.crash(CrashMode::KeepAll);
        device.stop_after(point);
        let again: SharedDevice = Arc::new(device.clone());
        let _ = open(&again);
        for mode in [CrashMode::LoseUnsynced, CrashMode::Random(point)] {
            check_recovered(Arc::new(device.crash(mode)), known, mode);
        }
        if !device.is_stopped() {
            break;
        }
    }
    check_recovered(crash.device, known, crash.mode);
}

fn history(seed: u64, memory: Arc<MemoryDevice>, faults: &str) -> Known {
    let script: Script = faults.parse().unwrap();
    let device: SharedDevice = Arc::new(Faults::over(Arc::clone(&memory) as _, &script));
    let prng = Prng::new(seed);
    History { prng, memory, device, known: Known::default(), next: 0 }.run(80)
}

/// Loses power at each point of one history per seed; the seed replaces `SEED` in `faults`.
fn power_loss(seeds: std::ops::Range<u64>, lotteries: u64, faults: &str) {
    for seed in seeds {
        let faults = faults.replace("SEED", &seed.to_string());
        let test = CrashTest { lotteries, ..CrashTest::new(400, seed) };
        let report = for_each_crash_point(test, |device| history(seed, device, &faults), check);
        println!("manifest with faults {faults:?}, seed {seed}: {report}");
        assert!(report.tried > 50);
    }
}

#[test]
fn power_loss_at_every_point() {
    power_loss(1..5, 3, "");
}

#[test]
fn power_loss_at_every_point_with_a_disk_that_is_sometimes_full() {
    // Superblocks are written in place and cannot fail for lack of space.
    power_loss(
        11..15,
        1,
        "random write MANIFEST chance=1/6 seed=SEED error=ENOSPC; \
         random allocate * chance=1/2 seed=SEED error=ENOSPC",
    );
}

#[test]
fn power_loss_at_every_point_with_syncs_that_sometimes_fail() {
    power_loss(
        21..25,
        1,
        "random sync * chance=1/12 seed=SEED; random sync_dir * chance=1/12 seed=SEED",
    );
}
