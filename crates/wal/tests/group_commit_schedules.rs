//! Group commit under many schedules: whenever `sync_to` returns, power loss at that moment leaves
//! the record; once the log is poisoned, every caller gets `Poisoned`.
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test -p frondb-wal --test group_commit_schedules`
#![cfg(shuttle)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use frondb_core::{ErrorKind, Lsn};
use frondb_device::SharedDevice;
use frondb_testkit::faults::Script;
use frondb_testkit::{CrashMode, Faults, MemoryDevice};
use frondb_wal::{SyncMode, Wal, WalOptions};
use support::{fresh, payload, recover, small};

const THREADS: u64 = 3;

/// The records that a power loss now would leave.
fn durable_records(memory: &MemoryDevice) -> Vec<Vec<u8>> {
    let device: SharedDevice = Arc::new(memory.crash(CrashMode::LoseUnsynced));
    recover(&device, &small(), Lsn(0), Lsn(0)).unwrap().0
}

/// Commits twice, as one of several threads. The second record is so long that it begins a segment.
fn commit(wal: &Wal, memory: &MemoryDevice, thread: u64) -> Result<(), ErrorKind> {
    for (round, len) in [(0, 20), (1, 3000)] {
        let bytes = payload(thread * 10 + round, len);
        let appended = wal.append(&[&bytes]).map_err(|error| error.kind())?;
        wal.sync_to(appended.end).map_err(|error| error.kind())?;
        assert!(wal.durable_lsn() >= appended.end);
        let found = durable_records(memory);
        assert!(found.contains(&bytes), "acknowledged, but not on disk");
    }
    Ok(())
}

/// Loses power at any moment: the log opens, with everything that was durable before.
fn observe(wal: &Wal, memory: &MemoryDevice) {
    for _ in 0..4 {
        let durable = wal.durable_lsn();
        let device: SharedDevice = Arc::new(memory.crash(CrashMode::LoseUnsynced));
        let (_, found, _) = recover(&device, &small(), Lsn(0), durable).unwrap();
        assert!(found.end_lsn() >= durable);
    }
}

fn schedule(script: &str) -> Vec<Result<(), ErrorKind>> {
    let memory = MemoryDevice::new();
    let script: Script = script.parse().unwrap();
    let faults = Faults::over(Arc::new(memory.clone()), &Script::default());
    let faults = Arc::new(faults);
    let device: SharedDevice = Arc::clone(&faults) as SharedDevice;
    let wal = shuttle::sync::Arc::new(fresh(&device, &small()).unwrap());
    faults.set_script(&script);
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (wal, memory) = (wal.clone(), memory.clone());
            shuttle::thread::spawn(move || commit(&wal, &memory, thread))
        })
        .collect();
    let (observed, seen) = (wal.clone(), memory.clone());
    let observer = shuttle::thread::spawn(move || observe(&observed, &seen));
    let results = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    observer.join().unwrap();
    results
}

#[test]
fn shuttle_a_sync_that_returns_has_happened() {
    shuttle::check_random(
        || {
            let results = schedule("");
            assert!(results.iter().all(Result::is_ok), "{results:?}");
        },
        1000,
    );
}

#[test]
fn shuttle_a_failed_sync_poisons_every_unfinished_commit() {
    shuttle::check_random(
        || {
            let results = schedule("fail sync wal nth=2");
            let failed = results.iter().filter(|result| result.is_err()).count();
            assert!(failed > 0, "{results:?}");
            assert!(results.iter().flat_map(|r| r.err()).all(|kind| kind == ErrorKind::Poisoned));
        },
        1000,
    );
}

#[test]
fn shuttle_a_failed_write_fails_exactly_the_records_it_had() {
    shuttle::check_random(
        || {
            let memory = MemoryDevice::new();
            let faults = Faults::over(Arc::new(memory.clone()), &Script::default());
            let faults = Arc::new(faults);
            let device: SharedDevice = Arc::clone(&faults) as SharedDevice;
            let options = WalOptions { reserve_bytes: 0, ..small() };
            let wal = shuttle::sync::Arc::new(fresh(&device, &options).unwrap());
            faults.set_script(&"tear write wal nth=2 bytes=30 error=ENOSPC".parse().unwrap());
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let wal = wal.clone();
                    shuttle::thread::spawn(move || {
                        let mut kept = Vec::new();
                        for round in 0..3 {
                            let bytes = payload(thread * 10 + round, 20);
                            let end = wal.append(&[&bytes]).unwrap().end;
                            match wal.sync_to(end) {
                                Ok(()) => kept.push(bytes),
                                Err(error) => assert_eq!(error.kind(), ErrorKind::NoSpace),
                            }
                        }
                        kept
                    })
                })
                .collect();
            let mut kept: Vec<_> =
                threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
            drop(wal);
            let mut found = durable_records(&memory);
            kept.sort();
            found.sort();
            assert_eq!(found, kept);
        },
        1000,
    );
}

/// In some schedules a thread is between its append and its wait when the mode changes.
#[test]
fn shuttle_after_a_change_of_the_mode_everything_acknowledged_is_durable() {
    shuttle::check_random(
        || {
            let memory = MemoryDevice::new();
            let device: SharedDevice = Arc::new(memory.clone());
            let options = WalOptions { sync: SyncMode::Never, ..small() };
            let wal = shuttle::sync::Arc::new(fresh(&device, &options).unwrap());
            let acknowledged = shuttle::sync::Arc::new(shuttle::sync::Mutex::new(Vec::new()));
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let (wal, acknowledged) = (wal.clone(), acknowledged.clone());
                    shuttle::thread::spawn(move || {
                        for round in 0..2 {
                            let bytes = payload(thread * 10 + round, 20);
                            wal.commit_to(wal.append(&[&bytes]).unwrap().end).unwrap();
                            acknowledged.lock().unwrap().push(bytes);
                        }
                    })
                })
                .collect();
            wal.set_sync_mode(SyncMode::Always).unwrap();
            let so_far = acknowledged.lock().unwrap().clone();
            let found = durable_records(&memory);
            assert!(so_far.iter().all(|bytes| found.contains(bytes)));
            for thread in threads {
                thread.join().unwrap();
            }
        },
        1000,
    );
}
