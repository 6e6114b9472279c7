//! The state that the in-memory device leaves after a power loss, and how the device stops.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use frondb_core::ErrorKind;
use frondb_device::{Device, OpenOptions, SharedFile};
use frondb_testkit::{CrashMode, MemoryDevice};

fn content(device: &MemoryDevice, name: &str) -> Option<Vec<u8>> {
    if !device.exists(name).unwrap() {
        return None;
    }
    let file = device.open(name, OpenOptions::READ).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    file.read_exact_at(0, &mut bytes).unwrap();
    Some(bytes)
}

/// A file of 1000 bytes with the value 1; content and name are durable.
fn durable(device: &MemoryDevice, name: &str) -> SharedFile {
    let file = device.open(name, OpenOptions::CREATE_NEW).unwrap();
    file.write_at(0, &[1; 1000]).unwrap();
    file.sync().unwrap();
    device.sync_dir("").unwrap();
    file
}

#[test]
fn unsynced_writes_are_lost_or_kept() {
    let device = MemoryDevice::new();
    let file = durable(&device, "f");
    file.write_at(500, &[2; 1000]).unwrap();
    let lost = device.crash(CrashMode::LoseUnsynced);
    assert_eq!(content(&lost, "f").unwrap(), [1; 1000]);
    let kept = device.crash(CrashMode::KeepAll);
    assert_eq!(content(&kept, "f").unwrap(), [[1; 500].as_slice(), &[2; 1000]].concat());
}

#[test]
fn a_name_is_durable_only_after_a_sync_of_its_directory() {
    let device = MemoryDevice::new();
    let file = device.open("f", OpenOptions::CREATE).unwrap();
    file.write_at(0, b"synced").unwrap();
    file.sync().unwrap();
    assert_eq!(content(&device.crash(CrashMode::LoseUnsynced), "f"), None);
    device.sync_dir("").unwrap();
    assert_eq!(content(&device.crash(CrashMode::LoseUnsynced), "f").unwrap(), b"synced");
}

#[test]
fn a_durable_name_does_not_make_content_durable() {
    let device = MemoryDevice::new();
    device.open("f", OpenOptions::CREATE).unwrap().write_at(0, b"x").unwrap();
    device.sync_dir("").unwrap();
    assert_eq!(content(&device.crash(CrashMode::LoseUnsynced), "f").unwrap(), b"");
}

#[test]
fn an_unsynced_removal_can_come_back_with_its_content() {
    let device = MemoryDevice::new();
    drop(durable(&device, "f"));
    device.remove("f").unwrap();
    let lost = device.crash(CrashMode::LoseUnsynced);
    assert_eq!(content(&lost, "f").unwrap(), [1; 1000]);
    assert_eq!(content(&device.crash(CrashMode::KeepAll), "f"), None);
    device.sync_dir("").unwrap();
    assert_eq!(content(&device.crash(CrashMode::LoseUnsynced), "f"), None);
}

#[test]
fn a_random_crash_is_repeated_by_its_seed() {
    let device = MemoryDevice::new();
    let file = durable(&device, "f");
    for index in 0..20 {
        file.write_at(index * 700, &[index as u8 + 2; 900]).unwrap();
        device.open(&format!("g{index}"), OpenOptions::CREATE).unwrap();
    }
    let found = |seed| {
        let crashed = device.crash(CrashMode::Random(seed));
        (crashed.list("").unwrap(), content(&crashed, "f").unwrap())
    };
    assert_eq!(found(7), found(7));
    let different = (0..50).filter(|&seed| found(seed) != found(seed + 1)).count();
    assert!(different > 40, "only {different} of 50 seeds differ from the next");
    for seed in 0..200 {
        let (names, bytes) = found(seed);
        assert!(names.contains(&"f".to_owned()));
        assert!(bytes.len() >= 1000, "the length is at least the synced one");
    }
}

#[test]
fn a_crash_copy_is_independent() {
    let device = MemoryDevice::new();
    let file = durable(&device, "f");
    let lock = device.lock("LOCK").unwrap();
    let crashed = device.crash(CrashMode::KeepAll);
    assert_eq!((crashed.points(), crashed.is_stopped()), (0, false));
    crashed.lock("LOCK").unwrap();
    file.write_at(0, &[9; 1000]).unwrap();
    assert_eq!(content(&crashed, "f").unwrap(), [1; 1000]);
    crashed.open("f", OpenOptions::WRITE).unwrap().set_len(0).unwrap();
    assert_eq!(content(&device, "f").unwrap(), [9; 1000]);
    drop(lock);
}

#[test]
fn every_call_fails_after_the_stop() {
    let run = |stop: u64| {
        let device = MemoryDevice::new();
        device.stop_after(stop);
        let result = (|| {
            let file = device.open("f", OpenOptions::CREATE)?;
            file.write_at(0, b"a")?;
            file.write_vectored_at(1, &[b"b", b"c"])?;
            file.len()?;
            file.sync()?;
            file.set_len(2)?;
            file.allocate(0, 8192)?;
            file.punch(0, 4096)?;
            device.create_dir("d")?;
            device.rename("f", "d/f")?;
            device.sync_dir("d")?;
            device.remove("d/f")
        })();
        (device, result)
    };
    let (whole, result) = run(u64::MAX);
    result.unwrap();
    assert_eq!(whole.points(), 11);
    for stop in 0..11 {
        let (device, result) = run(stop);
        let error = result.unwrap_err();
        assert_eq!(
            (error.kind(), error.message()),
            (ErrorKind::Io, "the simulated device was stopped")
        );
        assert_eq!(device.points(), stop);
        assert!(device.is_stopped());
        assert!(device.list("").is_err() && device.open("f", OpenOptions::READ).is_err());
        device.crash(CrashMode::KeepAll).list("").unwrap();
    }
    assert!(!run(11).0.is_stopped(), "the history ends before the stop");
}

#[test]
fn a_full_device_refuses_and_recovers() {
    let device = MemoryDevice::new();
    device.set_capacity(16 * 4096);
    let file = device.open("f", OpenOptions::CREATE).unwrap();
    file.allocate(0, 8 * 4096).unwrap();
    file.write_at(0, &[1; 8 * 4096]).unwrap();
    file.write_at(8 * 4096, &[1; 8 * 4096]).unwrap();
    assert_eq!(device.free_bytes().unwrap(), 0);
    let full = |file: &SharedFile| file.write_at(20 * 4096, b"x").unwrap_err().kind();
    assert_eq!(full(&file), ErrorKind::NoSpace);
    assert_eq!(file.allocate(0, 17 * 4096).unwrap_err().kind(), ErrorKind::NoSpace);
    assert_eq!(file.len().unwrap(), 16 * 4096, "a refused write changes nothing");
    file.write_at(5, b"in place").unwrap();

    file.punch(0, 4096).unwrap();
    file.write_at(20 * 4096, b"x").unwrap();
    assert_eq!(full(&device.open("g", OpenOptions::CREATE).unwrap()), ErrorKind::NoSpace);
    file.set_len(4 * 4096).unwrap();
    assert_eq!(device.used_bytes(), 3 * 4096);

    // A removed file keeps its space until its last handle is closed.
    device.remove("f").unwrap();
    assert_eq!(device.used_bytes(), 3 * 4096);
    drop(file);
    assert_eq!(device.used_bytes(), 0);
}

#[test]
fn replacing_a_file_frees_its_space() {
    let device = MemoryDevice::new();
    for name in ["a", "b"] {
        device.open(name, OpenOptions::CREATE).unwrap().write_at(0, &[1; 4096]).unwrap();
    }
    device.rename("a", "b").unwrap();
    assert_eq!(device.used_bytes(), 4096);
    device.sync_dir("").unwrap();
    assert_eq!(
        device.crash(CrashMode::LoseUnsynced).used_bytes(),
        0,
        "content that was not synced is lost"
    );
}
