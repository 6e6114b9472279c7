//! Rule 9: flips every bit of the superblocks and of a manifest file. The result is Corruption with
//! file and offset, or a cut tail that is reported, or a warning with nothing lost. Damage is never
//! silent and never yields other data.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use frondb_core::ErrorKind;
use frondb_device::{Device, OpenOptions, SharedDevice};
use frondb_testkit::{CrashMode, MemoryDevice};
use support::{create, edit, log, open, rotate, state};

fn flipped(memory: &MemoryDevice, name: &str, bit: u64) -> SharedDevice {
    let device = memory.crash(CrashMode::KeepAll);
    let file = device.open(name, OpenOptions::WRITE).unwrap();
    let mut byte = [0];
    file.read_exact_at(bit / 8, &mut byte).unwrap();
    byte[0] ^= 1 << (bit % 8);
    file.write_at(bit / 8, &byte).unwrap();
    Arc::new(device)
}

/// A manifest after two snapshots, with edits after the last one.
fn manifest() -> (MemoryDevice, Vec<u64>) {
    let memory = MemoryDevice::new();
    let device: SharedDevice = Arc::new(memory.clone());
    let manifest = create(&device).unwrap();
    log(&manifest, &edit(1)).unwrap();
    rotate(&manifest, &[1]).unwrap();
    log(&manifest, &edit(2)).unwrap();
    let mut writer = manifest.begin_snapshot().unwrap();
    log(&manifest, &edit(3)).unwrap();
    writer.write(&support::encode(&[1, 2])).unwrap();
    writer.finish().unwrap();
    (4..8).for_each(|n| log(&manifest, &edit(n)).unwrap());
    drop(manifest);
    (memory, (1..8).collect())
}

#[derive(Debug, Default)]
struct Seen {
    corrupt: u64,
    trimmed: u64,
    warned: u64,
}

fn sweep(memory: &MemoryDevice, name: &str, expected: &[u64]) -> Seen {
    let mut seen = Seen::default();
    let bits = memory.open(name, OpenOptions::READ).unwrap().len().unwrap() * 8;
    for bit in 0..bits {
        match open(&flipped(memory, name, bit)) {
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corruption, "{name} bit {bit}: {error}");
                assert_eq!(
                    error.place().expect("a corruption has a place").file,
                    name,
                    "bit {bit}: {error}"
                );
                seen.corrupt += 1;
            }
            Ok((_, recovered)) => {
                let found = state(&recovered);
                if recovered.torn_tail.is_some() {
                    // Only the last edit may be lost: no later record proves that it was durable.
                    assert!(found.len() + 1 >= expected.len(), "{name} bit {bit}: {found:?}");
                    assert_eq!(found, expected[..found.len()], "{name} bit {bit}");
                    seen.trimmed += 1;
                } else {
                    assert!(!recovered.warnings.is_empty(), "{name} bit {bit} was not noticed");
                    assert_eq!(found, expected, "{name} bit {bit}");
                    seen.warned += 1;
                }
            }
        }
    }
    seen
}

#[test]
fn a_superblock_in_force_is_corruption_and_an_old_one_a_warning() {
    let (memory, expected) = manifest();
    let seen = sweep(&memory, "SUPER", &expected);
    assert_eq!((seen.corrupt, seen.warned, seen.trimmed), (4096 * 8, 4096 * 8, 0));
}

#[test]
fn either_superblock_of_a_new_database_suffices() {
    let memory = MemoryDevice::new();
    let device: SharedDevice = Arc::new(memory.clone());
    log(&create(&device).unwrap(), &edit(1)).unwrap();
    let seen = sweep(&memory, "SUPER", &[1]);
    assert_eq!((seen.corrupt, seen.warned, seen.trimmed), (0, 2 * 4096 * 8, 0));
}

#[test]
fn a_newer_superblock_of_the_same_file_replaces_either() {
    let memory = MemoryDevice::new();
    let device: SharedDevice = Arc::new(memory.clone());
    let manifest = create(&device).unwrap();
    rotate(&manifest, &[1]).unwrap();
    let ticket = manifest.append(&edit(2)).unwrap();
    manifest.secure(ticket).unwrap();
    let seen = sweep(&memory, "SUPER", &[1, 2]);
    assert_eq!((seen.corrupt, seen.warned, seen.trimmed), (0, 2 * 4096 * 8, 0));
}

#[test]
fn a_manifest_file_never_changes_silently() {
    let (memory, expected) = manifest();
    let seen = sweep(&memory, "MANIFEST-000003", &expected);
    assert!(seen.corrupt > 3_000 && seen.trimmed > 8_000 && seen.warned == 0, "{seen:?}");
}

#[test]
fn a_lost_file_is_corruption() {
    for name in ["SUPER", "MANIFEST-000003"] {
        let (memory, _) = manifest();
        memory.remove(name).unwrap();
        let error = open(&(Arc::new(memory.clone()) as SharedDevice)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert_eq!(error.place().unwrap().file, name);
        if name == "SUPER" {
            // A new database cannot be created over the old one either.
            let error = create(&(Arc::new(memory) as SharedDevice)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption);
        }
    }
}

/// Power is lost at each point of a change of files; the next process logs an edit and loses power
/// too, so that the removal of old files may not have happened. If a superblock is then damaged,
/// recovery must not return to a file without that edit.
#[test]
fn a_damaged_superblock_never_brings_back_an_older_state() {
    let mut fell_back = 0;
    for point in 0.. {
        let memory = MemoryDevice::new();
        let device: SharedDevice = Arc::new(memory.clone());
        let manifest = create(&device).unwrap();
        log(&manifest, &edit(1)).unwrap();
        memory.stop_after(memory.points() + point);
        let rotated = rotate(&manifest, &[1]);
        for mode in [CrashMode::LoseUnsynced, CrashMode::KeepAll] {
            let memory = memory.crash(mode);
            let device: SharedDevice = Arc::new(memory.clone());
            log(&open(&device).unwrap().0, &edit(2)).unwrap();
            let memory = memory.crash(CrashMode::LoseUnsynced);
            for slot in 0..2 {
                match open(&flipped(&memory, "SUPER", (slot * 4096 + 100) * 8)) {
                    Ok((_, recovered)) => {
                        assert_eq!(state(&recovered), [1, 2], "point {point}");
                        fell_back += 1;
                    }
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Corruption, "{error}"),
                }
            }
        }
        if rotated.is_ok() {
            break;
        }
    }
    assert!(fell_back > 0);
}
