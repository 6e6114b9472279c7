//! Rule 9: segments that are truncated, zeroed from some offset on, or removed. Records
//! acknowledged as durable are found, or the log is reported as damaged and the error names the
//! file. Records that were only written may be missing.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use frondb_core::{ErrorKind, Lsn};
use frondb_device::{Device, OpenOptions, SharedDevice};
use frondb_testkit::{CrashMode, Faults, MemoryDevice};
use frondb_wal::owner::{self, OWNER_FILE};
use frondb_wal::{MARK_FILE, WalOptions, salvage};
use support::{DB, fresh, payload, recover, unmark};

fn options() -> WalOptions {
    WalOptions { segment_bytes: 4096, reserve_bytes: 512, ..WalOptions::default() }
}

/// A log of `count` synced records of 300 bytes, followed by two that were only written.
fn log(count: u64, close: bool) -> MemoryDevice {
    let memory = MemoryDevice::new();
    let device: SharedDevice = Arc::new(memory.clone());
    let wal = fresh(&device, &options()).unwrap();
    for number in 0..count + 2 {
        let end = wal.append(&[&payload(number, 300)]).unwrap().end;
        if number < count { wal.sync_to(end) } else { wal.write_to(end) }.unwrap();
    }
    if close {
        wal.close().unwrap()
    } else {
        drop(wal)
    }
    memory
}

fn segments(memory: &MemoryDevice) -> Vec<String> {
    memory.list("").unwrap().into_iter().filter(|name| name.ends_with(".wal")).collect()
}

/// Opens what is left of a log. At least `durable` records must be found, or the error must name
/// `file`.
fn check(memory: MemoryDevice, durable: u64, file: &str, what: &str) {
    let device: SharedDevice = Arc::new(memory);
    match recover(&device, &options(), Lsn(0), Lsn(0)) {
        Ok((records, ..)) => {
            assert!(records.len() as u64 >= durable, "{what} lost {} of {durable}", records.len());
            for (number, record) in records.iter().enumerate() {
                assert_eq!(*record, payload(number as u64, 300), "{what}");
            }
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corruption, "{what}: {error}");
            assert_eq!(error.place().unwrap().file, file, "{what}: {error}");
        }
    }
}

/// Truncates, zeroes and removes each file of the log.
fn sweep(memory: &MemoryDevice, durable: u64) {
    for name in segments(memory) {
        let removed = memory.crash(CrashMode::KeepAll);
        removed.remove(&name).unwrap();
        check(removed, durable, &name, "a removed segment");
        let len = memory.open(&name, OpenOptions::READ).unwrap().len().unwrap();
        for at in (0..len).step_by(29) {
            let shorter = memory.crash(CrashMode::KeepAll);
            shorter.open(&name, OpenOptions::WRITE).unwrap().set_len(at).unwrap();
            check(shorter, durable, &name, "a segment cut short");
            let zeroed = memory.crash(CrashMode::KeepAll);
            let file = zeroed.open(&name, OpenOptions::WRITE).unwrap();
            file.write_at(at, &vec![0; (len - at) as usize]).unwrap();
            check(zeroed, durable, &name, "a zeroed segment");
        }
    }
}

#[test]
fn after_a_kill_no_synced_record_is_lost_silently() {
    for count in [1, 5, 13, 14, 40] {
        sweep(&log(count, false), count);
    }
}

#[test]
fn after_a_close_nothing_is_lost_silently_even_with_one_slot() {
    let memory = log(20, true).crash(CrashMode::LoseUnsynced);
    sweep(&memory, 22);
    for slot in [0, 4096] {
        let memory = memory.crash(CrashMode::KeepAll);
        memory.open("LOG.mark", OpenOptions::WRITE).unwrap().write_at(slot, &[0; 64]).unwrap();
        sweep(&memory, 22);
    }
}

/// After power loss the mark may lack the syncs since the newest segment began, and no others.
#[test]
fn after_power_loss_what_was_synced_before_the_newest_segment_is_known() {
    let memory = log(40, false).crash(CrashMode::LoseUnsynced);
    let in_newest = {
        let device: SharedDevice = Arc::new(memory.crash(CrashMode::KeepAll));
        let newest = segments(&memory).pop().unwrap();
        let header = memory.open(&newest, OpenOptions::READ).unwrap();
        let mut first = [0; 8];
        header.read_exact_at(40, &mut first).unwrap();
        let (records, ..) =
            recover(&device, &options(), Lsn(u64::from_le_bytes(first)), Lsn(0)).unwrap();
        records.len() as u64
    };
    assert!(in_newest > 0);
    sweep(&memory, 40 - in_newest);
}

/// Like a replay, a salvage does not read segments below the start.
#[test]
fn salvage_ignores_a_damaged_segment_below_the_start() {
    let memory = log(60, true);
    let names = segments(&memory);
    assert!(names.len() > 3);
    let mut first = [0; 8];
    let newest = memory.open(&names[names.len() - 1], OpenOptions::READ).unwrap();
    newest.read_exact_at(40, &mut first).unwrap();
    let start = Lsn(u64::from_le_bytes(first));
    let open = |start, damaged: &str| -> (SharedDevice, _) {
        let memory = memory.crash(CrashMode::KeepAll);
        memory.open(damaged, OpenOptions::WRITE).unwrap().set_len(0).unwrap();
        let device: SharedDevice = Arc::new(memory);
        let findings = salvage(&device, DB, start, Lsn(0)).unwrap();
        (device, findings)
    };
    for damaged in &names[..names.len() - 1] {
        let (device, findings) = open(start, damaged);
        assert!(findings.lost.is_empty() && findings.repaired.is_empty(), "{findings:?}");
        let (records, ..) = recover(&device, &options(), start, start).unwrap();
        assert_eq!(records.last(), Some(&payload(61, 300)), "{damaged}");
        let (_, findings) = open(Lsn(0), damaged);
        assert_eq!(findings.lost[0].place().unwrap().file, *damaged);
    }
    let (_, findings) = open(start, &names[names.len() - 1]);
    assert_eq!(findings.lost[0].place().unwrap().file, names[names.len() - 1]);
}

/// Removes or damages the mark.
fn damage_mark(memory: &MemoryDevice, how: &str) {
    let mark = || memory.open(MARK_FILE, OpenOptions::WRITE).unwrap();
    match how {
        "removed" => memory.remove(MARK_FILE).unwrap(),
        "cut" => mark().set_len(63).unwrap(),
        "zeroed" => mark().write_at(0, &[0; 4160]).unwrap(),
        other => panic!("{other}"),
    }
}

/// Segments that are lost together with the mark, with or without `LOG`: as long as any file says
/// that there was a mark, the log counts as damaged, and a salvage reports that records may be
/// missing.
#[test]
fn losing_the_mark_with_the_newest_segment_is_damage() {
    for close in [false, true] {
        let memory = log(40, close);
        let names = segments(&memory);
        for how in ["removed", "cut", "zeroed"] {
            // First remove no segment, then the newest, then one more each time; at last all of
            // them.
            for from in (0..=names.len()).rev() {
                for owner_too in [false, true] {
                    // With all segments and `LOG` removed, nothing in the directory would identify
                    // the database.
                    if owner_too && from == 0 {
                        continue;
                    }
                    let what = format!("mark {how}, segments from {from}, LOG gone: {owner_too}");
                    let memory = memory.crash(CrashMode::KeepAll);
                    damage_mark(&memory, how);
                    names[from..].iter().for_each(|name| memory.remove(name).unwrap());
                    let device: SharedDevice = Arc::new(memory);
                    if owner_too {
                        device.remove(OWNER_FILE).unwrap();
                        // As the engine does: `LOG` is restored from a segment.
                        drop(owner::take(&device, DB).unwrap());
                    }
                    let error = recover(&device, &options(), Lsn(0), Lsn(0)).unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Corruption, "{what}: {error}");
                    assert_eq!(error.place().unwrap().file, MARK_FILE, "{what}: {error}");
                    let findings = salvage(&device, DB, Lsn(0), Lsn(0)).unwrap();
                    assert_eq!(findings.lost[0].place().unwrap().file, MARK_FILE, "{what}");
                    let records = recover(&device, &options(), Lsn(0), Lsn(0)).unwrap().0;
                    assert!(records.len() <= 42, "{what}");
                }
            }
        }
    }
}

/// A log written by a build that had no marks can be opened, and has a mark from then on.
#[test]
fn a_log_without_a_mark_gets_one() {
    let memory = log(20, true);
    unmark(&memory).unwrap();
    let device: SharedDevice = Arc::new(memory.clone());
    let (records, wal, torn) = recover(&device, &options(), Lsn(0), Lsn(0)).unwrap();
    assert_eq!((records.len(), torn), (22, None));
    drop(wal);
    let memory = memory.crash(CrashMode::LoseUnsynced);
    sweep(&memory, 22);
    memory.remove(MARK_FILE).unwrap();
    let device: SharedDevice = Arc::new(memory);
    let error = recover(&device, &options(), Lsn(0), Lsn(0)).unwrap_err();
    assert_eq!(error.place().unwrap().file, MARK_FILE, "{error}");
}

/// Where there is no space for a mark, no file says that there is one.
#[test]
fn a_log_without_space_for_a_mark_opens_without() {
    for script in [
        "random write LOG.mark chance=1/1 seed=1 error=ENOSPC",
        "random write LOG.new chance=1/1 seed=1 error=ENOSPC",
    ] {
        let memory = MemoryDevice::new();
        let script = script.parse().unwrap();
        let device: SharedDevice =
            Arc::new(Faults::over(Arc::new(memory.clone()) as SharedDevice, &script));
        for number in 0..3 {
            let (records, wal, _) = recover(&device, &options(), Lsn(0), Lsn(0)).unwrap();
            assert_eq!(records.len(), number);
            wal.sync_to(wal.append(&[b"record"]).unwrap().end).unwrap();
        }
        if memory.exists(MARK_FILE).unwrap() {
            memory.remove(MARK_FILE).unwrap();
        }
        let device: SharedDevice = Arc::new(memory);
        assert_eq!(recover(&device, &options(), Lsn(0), Lsn(0)).unwrap().0.len(), 3);
    }
}
