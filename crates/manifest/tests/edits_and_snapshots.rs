//! Everything logged is found again: edits, snapshots, and edits made while a snapshot was written.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use frondb_core::ErrorKind;
use frondb_device::{Device, OpenOptions, SharedDevice};
use frondb_manifest::Manifest;
use frondb_testkit::faults::Script;
use frondb_testkit::{CrashMode, Faults, MemoryDevice};
use support::{create, edit, encode, log, open, options, rotate, state};

fn memory() -> SharedDevice {
    Arc::new(MemoryDevice::new())
}

#[test]
fn edits_come_back_in_order() {
    let device = memory();
    let manifest = create(&device).unwrap();
    let tickets: Vec<_> = (0..10).map(|n| manifest.append(&edit(n)).unwrap()).collect();
    manifest.sync(tickets[9]).unwrap();
    assert_eq!(manifest.stats().syncs, 1, "edits that wait together share a sync");
    for ticket in tickets {
        manifest.sync(ticket).unwrap();
    }
    assert_eq!(manifest.stats().syncs, 1);
    log(&manifest, b"").unwrap();
    drop(manifest);
    let (manifest, recovered) = open(&device).unwrap();
    assert_eq!(recovered.edits.len(), 11);
    assert_eq!(recovered.edits[3], edit(3));
    assert_eq!(recovered.edits[10], b"");
    assert!(recovered.snapshot.is_empty());
    assert_eq!((recovered.torn_tail, recovered.warnings), (None, vec![]));
    assert!(manifest.log_bytes() > 0);
}

#[test]
fn an_edit_that_was_not_synced_is_not_durable() {
    let device = memory();
    let manifest = create(&device).unwrap();
    manifest.append(&edit(1)).unwrap();
    drop(manifest);
    assert!(open(&device).unwrap().1.edits.is_empty());
}

#[test]
fn edits_made_during_a_snapshot_are_carried_over() {
    let device = memory();
    let manifest = create(&device).unwrap();
    (0..5).for_each(|n| log(&manifest, &edit(n)).unwrap());
    let mut writer = manifest.begin_snapshot().unwrap();
    log(&manifest, &edit(5)).unwrap();
    writer.write(&encode(&[0, 1, 2])).unwrap();
    let waiting = manifest.append(&edit(6)).unwrap();
    writer.write(&encode(&[3, 4])).unwrap();
    writer.finish().unwrap();
    // The edit is durable through the new file already: no sync is needed.
    let syncs = manifest.stats().syncs;
    manifest.sync(waiting).unwrap();
    assert_eq!(manifest.stats().syncs, syncs);
    log(&manifest, &edit(7)).unwrap();
    assert_eq!(device.list("").unwrap(), ["MANIFEST-000002", "SUPER"]);
    drop(manifest);
    let (manifest, recovered) = open(&device).unwrap();
    assert_eq!(recovered.snapshot, encode(&[0, 1, 2, 3, 4]));
    assert_eq!(state(&recovered), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert!(manifest.snapshot_bytes() > 0);
}

#[test]
fn a_large_snapshot_comes_back() {
    let device = memory();
    let manifest = create(&device).unwrap();
    let numbers: Vec<u64> =
        (0..200_000).map(|n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
    rotate(&manifest, &numbers).unwrap();
    rotate(&manifest, &numbers[..100_000]).unwrap();
    drop(manifest);
    assert_eq!(open(&device).unwrap().1.snapshot, encode(&numbers[..100_000]));
}

#[test]
fn an_abandoned_snapshot_changes_nothing() {
    let device = memory();
    let manifest = create(&device).unwrap();
    log(&manifest, &edit(1)).unwrap();
    let mut writer = manifest.begin_snapshot().unwrap();
    let busy = manifest.begin_snapshot().unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Busy);
    writer.write(b"half").unwrap();
    drop(writer);
    assert_eq!(device.list("").unwrap(), ["MANIFEST-000001", "SUPER"]);
    log(&manifest, &edit(2)).unwrap();
    rotate(&manifest, &[1, 2]).unwrap();
    drop(manifest);
    assert_eq!(state(&open(&device).unwrap().1), [1, 2]);
}

#[test]
fn a_snapshot_that_may_contain_abandoned_edits_is_not_finished() {
    let memory = Arc::new(MemoryDevice::new());
    let faults = Arc::new(Faults::over(memory, &Script::default()));
    let device: SharedDevice = Arc::clone(&faults) as SharedDevice;
    let manifest = create(&device).unwrap();
    log(&manifest, &edit(1)).unwrap();
    let ticket = manifest.append(&edit(2)).unwrap();
    let mut writer = manifest.begin_snapshot().unwrap();
    writer.write(&encode(&[1, 2])).unwrap();
    faults.set_script(&"fail write MANIFEST-000001 error=ENOSPC".parse().unwrap());
    let later = manifest.append(&edit(3)).unwrap();
    assert_eq!(manifest.sync(later).unwrap_err().kind(), ErrorKind::NoSpace);
    assert_eq!(manifest.sync(ticket).unwrap_err().kind(), ErrorKind::NoSpace);
    assert_eq!(writer.finish().unwrap_err().kind(), ErrorKind::Busy);
    log(&manifest, &edit(4)).unwrap();
    drop(manifest);
    assert_eq!(state(&open(&device).unwrap().1), [1, 4]);
}

/// A final edit that could not be written poisons the manifest immediately, so that no edit that
/// depends on it is ever found.
#[test]
fn nothing_follows_a_final_edit_that_was_abandoned() {
    let memory = Arc::new(MemoryDevice::new());
    let faults = Arc::new(Faults::over(memory, &Script::default()));
    let device: SharedDevice = Arc::clone(&faults) as SharedDevice;
    let manifest = create(&device).unwrap();
    log(&manifest, &edit(1)).unwrap();
    let first = manifest.append(&edit(2)).unwrap();
    let last = manifest.append_final(&edit(3)).unwrap();
    faults.set_script(&"fail write MANIFEST-000001 error=ENOSPC".parse().unwrap());
    assert_eq!(manifest.sync(first).unwrap_err().kind(), ErrorKind::Poisoned);
    assert_eq!(manifest.append(&edit(4)).unwrap_err().kind(), ErrorKind::Poisoned);
    assert_eq!(manifest.sync(last).unwrap_err().kind(), ErrorKind::Poisoned);
    drop(manifest);
    assert_eq!(state(&open(&device).unwrap().1), [1]);
}

#[test]
fn a_failed_sync_poisons_the_manifest_for_good() {
    for script in [
        "fail sync MANIFEST-000001",
        "fail sync MANIFEST-000002",
        "fail sync SUPER",
        "fail write SUPER",
        "fail sync_dir *",
    ] {
        let memory = MemoryDevice::new();
        let inner: SharedDevice = Arc::new(memory.clone());
        let faults = Arc::new(Faults::over(inner, &Script::default()));
        let device: SharedDevice = Arc::clone(&faults) as SharedDevice;
        let manifest = create(&device).unwrap();
        faults.set_script(&script.parse().unwrap());
        let first = log(&manifest, &edit(1)).and_then(|()| rotate(&manifest, &[1]));
        assert_eq!(first.unwrap_err().kind(), ErrorKind::Poisoned, "{script}");
        // The fault happens only once, but nothing is retried.
        assert_eq!(manifest.append(&edit(2)).unwrap_err().kind(), ErrorKind::Poisoned);
        assert_eq!(rotate(&manifest, &[1]).unwrap_err().kind(), ErrorKind::Poisoned);
        drop(manifest);
        let (manifest, recovered) = open(&device).unwrap();
        assert_eq!(state(&recovered), [1], "{script}");
        // Recovered edits are durable, whatever had reached the disk before.
        let lost: SharedDevice = Arc::new(memory.crash(CrashMode::LoseUnsynced));
        assert_eq!(state(&open(&lost).unwrap().1), [1], "{script}");
        log(&manifest, &edit(3)).unwrap();
        let lost: SharedDevice = Arc::new(memory.crash(CrashMode::LoseUnsynced));
        assert_eq!(state(&open(&lost).unwrap().1), [1, 3], "{script}");
    }
}

#[test]
fn a_creation_that_failed_half_way_is_repeated_or_goes_on() {
    for (operation, nth) in ["write", "sync", "sync_dir", "rename", "open"]
        .into_iter()
        .flat_map(|operation| (1..5).map(move |nth| (operation, nth)))
    {
        let memory = MemoryDevice::new();
        let script = format!("fail {operation} * nth={nth}").parse().unwrap();
        let faults = Arc::new(Faults::over(Arc::new(memory.clone()), &script));
        let device: SharedDevice = Arc::clone(&faults) as SharedDevice;
        let manifest = create(&device).or_else(|_| match open(&device) {
            Ok((manifest, _)) => Ok(manifest),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NotFound, "{operation} {nth}: {error}");
                create(&device)
            }
        });
        faults.set_script(&Script::default());
        log(&manifest.unwrap(), &edit(1)).unwrap();
        let lost: SharedDevice = Arc::new(memory.crash(CrashMode::LoseUnsynced));
        assert_eq!(state(&open(&lost).unwrap().1), [1], "{operation} {nth}");
    }
}

#[test]
fn a_database_is_created_once_and_found_by_name() {
    let device = memory();
    assert!(!Manifest::exists(&device).unwrap());
    assert_eq!(open(&device).unwrap_err().kind(), ErrorKind::NotFound);
    create(&device).unwrap();
    assert!(Manifest::exists(&device).unwrap());
    assert_eq!(create(&device).unwrap_err().kind(), ErrorKind::Exists);
    open(&device).unwrap();
}

/// The format version of this build.
const VERSION: u8 = 8;

fn superblock(device: &SharedDevice, slot: u64) -> Vec<u8> {
    let file = device.open("SUPER", OpenOptions::READ).unwrap();
    let mut bytes = vec![0; 4096];
    file.read_exact_at(slot * 4096, &mut bytes).unwrap();
    bytes
}

/// Changes the version in a superblock.
fn set_version(device: &SharedDevice, slot: u64, version: u8) {
    let mut bytes = superblock(device, slot);
    bytes[8] = version;
    let checksum = frondb_core::checksum::xxh3(&bytes[..4088]);
    bytes[4088..].copy_from_slice(&checksum.to_le_bytes());
    let file = device.open("SUPER", OpenOptions::WRITE).unwrap();
    file.write_at(slot * 4096, &bytes).unwrap();
}

/// An earlier build must not open a database that this build may have written to.
#[test]
fn opening_a_database_of_an_earlier_version_writes_this_version() {
    let versions = |device: &SharedDevice| [0, 1].map(|slot| superblock(device, slot)[8]);
    let slots = [vec![0, 1], vec![0], vec![1]];
    for (version, old) in (1..VERSION).flat_map(|version| slots.clone().map(|old| (version, old))) {
        let device = memory();
        let manifest = create(&device).unwrap();
        log(&manifest, &edit(1)).unwrap();
        manifest.secure_all().unwrap();
        drop(manifest);
        assert_eq!(versions(&device), [VERSION; 2]);
        old.iter().for_each(|slot| set_version(&device, *slot, version));
        let (_, recovered) = open(&device).unwrap();
        assert_eq!(recovered.edits, [edit(1)]);
        assert!(versions(&device).contains(&VERSION), "{old:?}");
        let (manifest, _) = open(&device).unwrap();
        drop(manifest);
        assert_eq!(versions(&device), [VERSION; 2], "{old:?}: no slot is left as it was");
    }
}

/// A torn write during the open changes nothing that is in force.
#[test]
fn a_crash_while_a_database_of_an_earlier_version_is_opened_loses_nothing() {
    for (stop, seed) in (0..12).flat_map(|stop| (0..20).map(move |seed| (stop, seed))) {
        let memory = Arc::new(MemoryDevice::new());
        let device: SharedDevice = Arc::clone(&memory) as SharedDevice;
        let manifest = create(&device).unwrap();
        log(&manifest, &edit(1)).unwrap();
        // The other superblock then names the previous manifest file.
        rotate(&manifest, &[1]).unwrap();
        log(&manifest, &edit(2)).unwrap();
        drop(manifest);
        [0, 1].iter().for_each(|slot| set_version(&device, *slot, 1));
        device.open("SUPER", OpenOptions::WRITE).unwrap().sync().unwrap();
        memory.stop_after(memory.points() + stop);
        let _stopped = open(&device);
        let after: SharedDevice = Arc::new(memory.crash(CrashMode::Random(seed)));
        let (_, recovered) = open(&after).unwrap();
        assert_eq!(recovered.edits.last(), Some(&edit(2)), "stop {stop}, seed {seed}");
    }
}

#[test]
fn a_foreign_file_and_a_newer_format_are_refused_with_the_reason() {
    let device = memory();
    let file = device.open("SUPER", OpenOptions::CREATE).unwrap();
    file.write_at(0, b"SQLite format 3\0").unwrap();
    let error = open(&device).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("not a FronDB database"), "{error}");

    let device = memory();
    create(&device).unwrap();
    set_version(&device, 1, VERSION + 1);
    let error = open(&device).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("use a newer FronDB"), "{error}");
}

/// Rule 25: on a full disk, edits use the space that is allocated ahead. Once that is used up,
/// edits fail until there is space again.
#[test]
fn edits_use_the_reserve_when_the_disk_is_full() {
    let memory = Arc::new(MemoryDevice::new());
    let device: SharedDevice = Arc::clone(&memory) as SharedDevice;
    let manifest = Manifest::create(
        Arc::clone(&device),
        support::DB,
        frondb_manifest::ManifestOptions { reserve_bytes: 64 * 1024 },
        &[],
    )
    .unwrap();
    assert!(manifest.has_reserve());
    memory.set_capacity(0);
    assert_eq!(memory.free_bytes().unwrap(), 0);
    let mut logged = 0;
    let error = loop {
        match log(&manifest, &edit(logged)) {
            Ok(()) => logged += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    assert!(logged > 300, "only {logged} edits");
    assert!(!manifest.has_reserve());
    assert!(!manifest.make_room(64 * 1024).unwrap());
    // Space is freed and edits succeed again; nothing acknowledged is lost, and nothing that failed
    // comes back.
    memory.set_capacity(1 << 20);
    assert!(manifest.make_room(64 * 1024).unwrap());
    assert!(manifest.has_reserve());
    log(&manifest, &edit(1_000_000)).unwrap();
    assert!(manifest.has_reserve());
    drop(manifest);
    let (_, recovered) = Manifest::open(device, options()).unwrap();
    let expected: Vec<u64> = (0..logged).chain([1_000_000]).collect();
    assert_eq!(state(&recovered), expected);
}
