//! Copies of a part of an open log: they are logs of their own, which end where the caller said.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use frondb_core::{ErrorKind, Lsn};
use frondb_device::{OpenOptions, SharedDevice};
use frondb_testkit::MemoryDevice;
use frondb_wal::owner::OWNER_FILE;
use frondb_wal::{KeptSegments, MARK_FILE};
use support::{fresh, payload, recover, small};

fn memory() -> SharedDevice {
    Arc::new(MemoryDevice::new())
}

/// Copies parts of a log of several segments, with many combinations of first and last record,
/// between appends.
#[test]
fn a_copy_has_the_records_of_its_part() {
    let device = memory();
    let wal = fresh(&device, &small()).unwrap();
    let mut bounds = vec![wal.end_lsn()];
    for number in 0..60 {
        bounds.push(wal.append(&[&payload(number, 300)]).unwrap().end);
    }
    wal.sync().unwrap();
    let kept = KeptSegments::new(&wal);
    for from in (0..=60).step_by(7) {
        for to in (from..=60).step_by(5) {
            let (copy, mut bytes) = (memory(), 0);
            let mut count = |n| {
                bytes += n;
                Ok(())
            };
            kept.copy(&copy, bounds[from], bounds[to], &mut count).unwrap();
            assert!(bytes > 0 || from == to);
            wal.append(&[&payload(1000, 300)]).unwrap();
            let (records, log, torn) = recover(&copy, &small(), bounds[from], bounds[to]).unwrap();
            let expected: Vec<_> = (from..to).map(|number| payload(number as u64, 300)).collect();
            assert_eq!(records, expected, "{from} to {to}");
            assert_eq!((log.end_lsn(), torn), (bounds[to], None));
            log.append(&[b"it goes on"]).unwrap();
            log.close().unwrap();
            let (records, ..) = recover(&copy, &small(), bounds[from], bounds[to]).unwrap();
            assert_eq!(records.len(), expected.len() + 1);
        }
    }
}

/// A copy says where it ends, so a lost end is no torn tail.
#[test]
fn a_copy_that_is_cut_is_damaged() {
    let device = memory();
    let wal = fresh(&device, &small()).unwrap();
    let first = wal.append(&[&payload(1, 300)]).unwrap();
    let second = wal.append(&[&payload(2, 300)]).unwrap();
    wal.sync().unwrap();
    let copy = memory();
    KeptSegments::new(&wal).copy(&copy, first.start, second.end, &mut |_| Ok(())).unwrap();
    let mut names = copy.list("").unwrap();
    names.retain(|name| name != OWNER_FILE);
    assert_eq!(names.len(), 2, "{names:?}");
    for name in names {
        let file = copy.open(&name, OpenOptions::WRITE).unwrap();
        let length = file.len().unwrap();
        let mut bytes = vec![0; length as usize];
        file.read_exact_at(0, &mut bytes).unwrap();
        file.set_len(if name == MARK_FILE { 0 } else { length - 1 }).unwrap();
        let error = recover(&copy, &small(), first.start, Lsn(0)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{name}: {error}");
        file.write_at(0, &bytes).unwrap();
    }
    recover(&copy, &small(), first.start, Lsn(0)).unwrap();
}

#[test]
fn kept_segments_are_not_recycled() {
    let device = memory();
    let wal = fresh(&device, &small()).unwrap();
    let start = wal.append(&[&payload(0, 300)]).unwrap().start;
    let kept = KeptSegments::new(&wal);
    for number in 1..100 {
        wal.append(&[&payload(number, 300)]).unwrap();
    }
    wal.sync().unwrap();
    let end = wal.end_lsn();
    wal.recycle(end).unwrap();
    let copy = memory();
    kept.copy(&copy, start, end, &mut |_| Ok(())).unwrap();
    assert_eq!(recover(&copy, &small(), start, end).unwrap().0.len(), 100);
    let long = wal.live_bytes();
    drop(kept);
    wal.recycle(end).unwrap();
    assert!(wal.live_bytes() < long / 4, "{} of {long}", wal.live_bytes());
}

#[test]
fn a_copy_needs_a_durable_log_and_an_empty_directory() {
    let device = memory();
    let wal = fresh(&device, &small()).unwrap();
    let record = wal.append(&[&payload(0, 300)]).unwrap();
    let copy = memory();
    let kept = KeptSegments::new(&wal);
    assert!(kept.copy(&copy, record.start, record.end, &mut |_| Ok(())).is_err());
    wal.sync().unwrap();
    kept.copy(&copy, record.start, record.end, &mut |_| Ok(())).unwrap();
    let error = kept.copy(&copy, record.start, record.end, &mut |_| Ok(())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
}

/// A segment whose records could not be written stays in the chain.
#[test]
fn a_copy_reaches_over_abandoned_records() {
    let memory = MemoryDevice::new();
    let device: SharedDevice = Arc::new(memory.clone());
    let options = frondb_wal::WalOptions { reserve_bytes: 0, ..small() };
    let wal = fresh(&device, &options).unwrap();
    let start = wal.append(&[&payload(0, 300)]).unwrap().start;
    wal.sync().unwrap();
    for round in 0..3 {
        // The page of a new segment's header fits, its first record does not.
        memory.set_capacity(memory.used_bytes() + 4096);
        let failed = wal.append(&[&payload(9, 5000)]).unwrap();
        assert_eq!(wal.sync_to(failed.end).unwrap_err().kind(), ErrorKind::NoSpace);
        memory.set_capacity(u64::MAX);
        wal.append(&[&payload(1 + round, 300)]).unwrap();
        wal.sync().unwrap();
    }
    let (copy, end) = (self::memory(), wal.end_lsn());
    KeptSegments::new(&wal).copy(&copy, start, end, &mut |_| Ok(())).unwrap();
    let segments = copy.list("").unwrap().iter().filter(|name| name.ends_with(".wal")).count();
    assert_eq!(segments, 7, "four with a record, and three whose record failed");
    let (records, ..) = recover(&copy, &options, start, end).unwrap();
    assert_eq!(records, (0..4).map(|number| payload(number, 300)).collect::<Vec<_>>());
}

#[test]
fn a_copy_can_be_given_to_another_database() {
    let device = memory();
    let wal = fresh(&device, &small()).unwrap();
    for number in 0..40 {
        wal.append(&[&payload(number, 300)]).unwrap();
    }
    wal.sync().unwrap();
    let (copy, end) = (memory(), wal.end_lsn());
    KeptSegments::new(&wal).copy(&copy, Lsn(0), end, &mut |_| Ok(())).unwrap();
    frondb_wal::give_to(&copy, support::DB, 7).unwrap();
    let error = recover(&copy, &small(), Lsn(0), end).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    frondb_wal::give_to(&copy, 7, support::DB).unwrap();
    assert_eq!(recover(&copy, &small(), Lsn(0), end).unwrap().0.len(), 40);
}

/// A writer on a full disk has priority over a copy.
#[test]
fn kept_segments_are_given_up() {
    let device = memory();
    let wal = fresh(&device, &small()).unwrap();
    for number in 0..40 {
        wal.append(&[&payload(number, 300)]).unwrap();
    }
    wal.sync().unwrap();
    let end = wal.end_lsn();
    assert!(!wal.give_up_kept());
    let (kept, other) = (KeptSegments::new(&wal), KeptSegments::new(&wal));
    assert!(wal.give_up_kept() && !wal.give_up_kept());
    wal.recycle(end).unwrap();
    for kept in [&kept, &other] {
        let error = kept.copy(&memory(), Lsn(0), end, &mut |_| Ok(())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    }
    let later = KeptSegments::new(&wal);
    drop((kept, other));
    assert!(wal.give_up_kept(), "those that were given up do not count");
    drop(later);
}
