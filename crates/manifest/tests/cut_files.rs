//! Rule 9: a manifest file that is truncated, or zeroed from some offset on: every secured edit is
//! found, or the file is reported as damaged. Only edits that were synced and never secured can
//! look like a torn tail.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use frondb_core::ErrorKind;
use frondb_device::{Device, OpenOptions, SharedDevice};
use frondb_manifest::{Manifest, salvage};
use frondb_testkit::{CrashMode, MemoryDevice};
use support::{create, edit, log, open, rotate, state};

/// The change made to the file.
#[derive(Clone, Copy, Debug)]
enum Cut {
    Shorter,
    Zeros,
}

fn secure(manifest: &Manifest, number: u64) {
    let ticket = manifest.append(&edit(number)).unwrap();
    manifest.secure(ticket).unwrap();
}

fn damaged(memory: &MemoryDevice, name: &str, at: u64, cut: Cut) -> SharedDevice {
    let device = memory.crash(CrashMode::KeepAll);
    let file = device.open(name, OpenOptions::WRITE).unwrap();
    let len = file.len().unwrap();
    match cut {
        Cut::Shorter => file.set_len(at).unwrap(),
        Cut::Zeros => file.write_at(at, &vec![0; (len - at) as usize]).unwrap(),
    }
    Arc::new(device)
}

/// Bytes up to the last one that is not zero; the space after it was allocated ahead.
fn used(memory: &MemoryDevice, name: &str) -> u64 {
    let file = memory.open(name, OpenOptions::READ).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(0, &mut bytes).unwrap();
    bytes.iter().rposition(|&byte| byte != 0).unwrap() as u64 + 1
}

/// Cuts the file at every offset; returns how often the open failed with Corruption, and how often
/// it succeeded.
fn sweep(memory: &MemoryDevice, name: &str, expected: &[u64], secured: usize) -> (u64, u64) {
    let (mut refused, mut lost) = (0, 0);
    for cut in [Cut::Shorter, Cut::Zeros] {
        for at in 0..used(memory, name) {
            match open(&damaged(memory, name, at, cut)) {
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corruption, "{cut:?} at {at}: {error}");
                    assert_eq!(error.place().unwrap().file, name, "{cut:?} at {at}: {error}");
                    refused += 1;
                }
                Ok((_, recovered)) => {
                    let found = state(&recovered);
                    assert!(found.len() >= secured, "{cut:?} at {at} lost {found:?}");
                    assert_eq!(found, expected[..found.len()], "{cut:?} at {at}");
                    lost += 1;
                }
            }
        }
    }
    (refused, lost)
}

#[test]
fn secured_edits_are_there_or_the_file_is_damaged() {
    for mode in [CrashMode::KeepAll, CrashMode::LoseUnsynced] {
        for last in 1..6 {
            let memory = MemoryDevice::new();
            let device: SharedDevice = Arc::new(memory.clone());
            let manifest = create(&device).unwrap();
            (1..=last).for_each(|number| secure(&manifest, number));
            let expected: Vec<u64> = (1..=last).collect();
            let crashed = memory.crash(mode);
            let end = used(&crashed, "MANIFEST-000001");
            let seen = sweep(&crashed, "MANIFEST-000001", &expected, expected.len());
            assert_eq!(seen, (2 * end, 0), "{mode:?}, {last} edits");
        }
    }
}

#[test]
fn only_unsecured_edits_may_be_lost() {
    let memory = MemoryDevice::new();
    let device: SharedDevice = Arc::new(memory.clone());
    let manifest = create(&device).unwrap();
    log(&manifest, &edit(1)).unwrap();
    rotate(&manifest, &[1]).unwrap();
    log(&manifest, &edit(2)).unwrap();
    secure(&manifest, 3);
    log(&manifest, &edit(4)).unwrap();
    log(&manifest, &edit(5)).unwrap();
    let (refused, lost) = sweep(&memory, "MANIFEST-000002", &[1, 2, 3, 4, 5], 3);
    assert!(refused > 300 && lost > 100, "{refused} refused, {lost} lost");
}

#[test]
fn a_secured_manifest_loses_nothing_even_with_one_superblock() {
    let memory = MemoryDevice::new();
    let device: SharedDevice = Arc::new(memory.clone());
    let manifest = create(&device).unwrap();
    secure(&manifest, 1);
    log(&manifest, &edit(2)).unwrap();
    manifest.secure_all().unwrap();
    let superblocks = manifest.stats().superblocks;
    manifest.secure_all().unwrap();
    assert_eq!(manifest.stats().superblocks, superblocks + 1);
    drop(manifest);
    let memory = memory.crash(CrashMode::LoseUnsynced);
    for slot in [None, Some(0), Some(1)] {
        let memory = memory.crash(CrashMode::KeepAll);
        if let Some(slot) = slot {
            memory
                .open("SUPER", OpenOptions::WRITE)
                .unwrap()
                .write_at(slot * 4096, &[0; 64])
                .unwrap();
        }
        let end = used(&memory, "MANIFEST-000001");
        assert_eq!(sweep(&memory, "MANIFEST-000001", &[1, 2], 2), (2 * end, 0), "{slot:?}");
        // One superblock is enough, and the other one is restored.
        let device: SharedDevice = Arc::new(memory.clone());
        let (_, recovered) = open(&device).unwrap();
        assert_eq!(state(&recovered), [1, 2]);
        assert_eq!(recovered.warnings.len(), usize::from(slot.is_some()));
        assert!(open(&device).unwrap().1.warnings.is_empty());
    }
}

/// Startup returns what it found, including edits that no superblock recorded: from then on they
/// are secured.
#[test]
fn recovered_edits_are_secured() {
    let memory = MemoryDevice::new();
    let device: SharedDevice = Arc::new(memory.clone());
    log(&create(&device).unwrap(), &edit(1)).unwrap();
    drop(open(&device).unwrap());
    let memory = memory.crash(CrashMode::LoseUnsynced);
    let end = used(&memory, "MANIFEST-000001");
    assert_eq!(sweep(&memory, "MANIFEST-000001", &[1], 1), (2 * end, 0));
}

/// A superblock that records more of the same file is written to both slots in turn; the superblock
/// of a new file replaces the one in either slot.
#[test]
fn every_point_of_securing_and_changing_files_keeps_what_was_secured() {
    for point in 0.. {
        let memory = MemoryDevice::new();
        let device: SharedDevice = Arc::new(memory.clone());
        let manifest = create(&device).unwrap();
        memory.stop_after(memory.points() + point);
        let mut secured = Vec::new();
        let history = || -> frondb_core::Result<()> {
            for number in 1..4 {
                let ticket = manifest.append(&edit(number))?;
                manifest.secure(ticket)?;
                secured.push(number);
                if number != 2 {
                    rotate(&manifest, &secured)?;
                }
                manifest.secure_all()?;
            }
            Ok(())
        };
        let mut history = history;
        let ended = history();
        for mode in [CrashMode::LoseUnsynced, CrashMode::KeepAll, CrashMode::Random(point)] {
            let crashed: SharedDevice = Arc::new(memory.crash(mode));
            let (manifest, recovered) = open(&crashed).unwrap();
            let mut found = state(&recovered);
            assert!(found.starts_with(&secured), "point {point}: {found:?}");
            secure(&manifest, 9);
            drop(manifest);
            found.push(9);
            assert_eq!(state(&open(&crashed).unwrap().1), found);
        }
        if ended.is_ok() {
            break;
        }
    }
}

/// Salvage repairs a limited number of records, and keeps everything before the next damaged one.
#[test]
fn salvage_keeps_what_is_before_the_first_record_that_it_does_not_repair() {
    const NAME: &str = "MANIFEST-000001";
    let memory = MemoryDevice::new();
    let device: SharedDevice = Arc::new(memory.clone());
    let manifest = create(&device).unwrap();
    let mut ends = vec![used(&memory, NAME)];
    for number in 1..=40 {
        secure(&manifest, number);
        ends.push(used(&memory, NAME));
    }
    let damaged = memory.crash(CrashMode::KeepAll);
    let file = damaged.open(NAME, OpenOptions::WRITE).unwrap();
    for number in 11..=30 {
        let at = u64::midpoint(ends[number - 1], ends[number]);
        let mut byte = [0];
        file.read_exact_at(at, &mut byte).unwrap();
        file.write_at(at, &[byte[0] ^ 1]).unwrap();
    }
    let damaged: SharedDevice = Arc::new(damaged);
    let findings = salvage(&damaged).unwrap();
    assert_eq!((findings.repaired.len(), findings.lost.len()), (16, 1), "{findings:?}");
    let (_, recovered) = open(&damaged).unwrap();
    assert_eq!(state(&recovered), (1..=26).collect::<Vec<u64>>());
}
