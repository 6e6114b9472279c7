//! The crash driver on a small store: a file that is replaced by writing a new one, syncing it,
//! renaming it over the old one and syncing the directory. The driver must find each step that is
//! left out.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use frondb_core::Result;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU8, Ordering};
use frondb_device::{Device, OpenOptions};
use frondb_testkit::{
    Crash, CrashReport, CrashTest, crash_while_running, for_each_crash_point,
    for_each_crash_point_from,
};
use frondb_testkit::{CrashMode, MemoryDevice};

/// The step of the safe replacement that is left out.
#[derive(Clone, Copy, PartialEq)]
enum LeftOut {
    Nothing,
    FileSync,
    DirSync,
    NewFile,
}

fn replace(device: &dyn Device, version: u8, left_out: LeftOut) -> Result<()> {
    let content = [version; 3000];
    let name = if left_out == LeftOut::NewFile { "store" } else { "new" };
    let file = device.open(name, OpenOptions::CREATE)?;
    file.write_at(0, &content)?;
    if left_out != LeftOut::FileSync {
        file.sync()?;
    }
    if left_out != LeftOut::NewFile {
        device.rename("new", "store")?;
    }
    if left_out != LeftOut::DirSync {
        device.sync_dir("")?;
    }
    Ok(())
}

/// Replaces the store until the device stops; returns the last version that was acknowledged.
fn history(device: Arc<MemoryDevice>, left_out: LeftOut) -> u8 {
    (1..=10).take_while(|&version| replace(device.as_ref(), version, left_out).is_ok()).count()
        as u8
}

fn check(crash: Crash, acknowledged: &u8) {
    if !crash.device.exists("store").unwrap() {
        assert_eq!(*acknowledged, 0, "the store is gone");
        return;
    }
    let file = crash.device.open("store", OpenOptions::READ).unwrap();
    let mut content = [0; 3000];
    assert_eq!(file.read_at(0, &mut content).unwrap(), 3000, "the store is short");
    let version = content[0];
    assert!(content.iter().all(|&byte| byte == version), "the store is torn");
    assert!((*acknowledged..=acknowledged + 1).contains(&version), "version {version}");
}

fn run(test: CrashTest, left_out: LeftOut) -> CrashReport {
    for_each_crash_point(test, |device| history(device, left_out), check)
}

#[test]
fn a_correct_store_survives_every_point() {
    let report = run(CrashTest { lotteries: 5, ..CrashTest::new(1000, 1) }, LeftOut::Nothing);
    // Ten versions of five calls each (the first creates the file), and a stop after all calls.
    assert_eq!((report.points, report.tried, report.checks), (50, 51, 51 * 7));
    println!("{report}");
}

#[test]
fn a_sample_covers_the_ends() {
    let report = run(CrashTest::new(10, 1), LeftOut::Nothing);
    assert_eq!((report.points, report.tried), (50, 10));
}

#[test]
#[should_panic(expected = "replay with FRONDB_CRASH_POINT=")]
fn a_file_that_is_not_synced_is_found() {
    run(CrashTest::new(1000, 1), LeftOut::FileSync);
}

#[test]
#[should_panic(expected = "the store is gone")]
fn a_directory_that_is_not_synced_is_found() {
    run(CrashTest::new(1000, 1), LeftOut::DirSync);
}

#[test]
#[should_panic(expected = "crash point")]
fn an_overwrite_in_place_is_found() {
    run(CrashTest::new(1000, 1), LeftOut::NewFile);
}

/// Runs the history with [`crash_while_running`].
fn run_once(test: CrashTest, left_out: LeftOut) -> CrashReport {
    let history = move |device: Arc<MemoryDevice>, acknowledged: &AtomicU8| {
        for version in 1..=10 {
            replace(device.as_ref(), version, left_out).unwrap();
            acknowledged.store(version, Ordering::SeqCst);
        }
    };
    let check = |crash, known: &AtomicU8| check(crash, &known.load(Ordering::SeqCst));
    crash_while_running(test, || AtomicU8::new(0), history, check)
}

#[test]
fn one_run_tries_the_same_points() {
    let test = CrashTest { lotteries: 5, ..CrashTest::new(1000, 1) };
    assert_eq!(run_once(test, LeftOut::Nothing), run(test, LeftOut::Nothing));
}

#[test]
#[should_panic(expected = "replay with FRONDB_CRASH_POINT=")]
fn one_run_finds_a_file_that_is_not_synced() {
    run_once(CrashTest::new(1000, 1), LeftOut::FileSync);
}

#[test]
fn a_history_can_start_on_a_crashed_device() {
    let crashed = MemoryDevice::new();
    replace(&crashed, 1, LeftOut::Nothing).unwrap();
    let continued = |device: Arc<MemoryDevice>| match replace(device.as_ref(), 2, LeftOut::Nothing)
    {
        Ok(()) => 2,
        Err(_) => 1,
    };
    let start = || crashed.crash(CrashMode::KeepAll);
    let report = for_each_crash_point_from(CrashTest::new(100, 1), start, continued, check);
    assert_eq!(report.tried, 6);
}
