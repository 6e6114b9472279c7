//! Appended records are replayed in order, across segments, reopenings and recycled files.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use frondb_core::clock::ManualClock;
use frondb_core::{ErrorKind, Lsn};
use frondb_device::{Device, OpenOptions, SharedDevice};
use frondb_testkit::MemoryDevice;
use frondb_wal::MARK_FILE;
use frondb_wal::owner::OWNER_FILE;
use frondb_wal::{SyncMode, Wal, WalOptions};
use support::{DB, fresh, open, payload, recover, small};

fn memory() -> SharedDevice {
    Arc::new(MemoryDevice::new())
}

#[test]
fn records_of_all_sizes_come_back() {
    for compression in [false, true] {
        let device = memory();
        let options = WalOptions { compression, ..small() };
        let wal = fresh(&device, &options).unwrap();
        let sizes = [0, 1, 15, 100, 4096, 5000, 300_000, 1];
        let mut expected = Vec::new();
        for (number, size) in sizes.into_iter().enumerate() {
            // Two parts; half of the records can be compressed.
            let bytes = if number % 2 == 0 { vec![7; size] } else { payload(number as u64, size) };
            let (head, tail) = bytes.split_at(bytes.len() / 3);
            let appended = wal.append(&[head, tail]).unwrap();
            assert!(appended.start < appended.end);
            expected.push(bytes);
        }
        wal.close().unwrap();
        let (records, wal, torn) = recover(&device, &options, Lsn(0), Lsn(0)).unwrap();
        assert_eq!(records, expected);
        assert_eq!(torn, None);
        assert_eq!(wal.durable_lsn(), wal.end_lsn());
    }
}

#[test]
fn a_start_in_the_middle_replays_the_rest() {
    let device = memory();
    let wal = fresh(&device, &small()).unwrap();
    let mut starts = Vec::new();
    for number in 0..100 {
        starts.push(wal.append(&[&payload(number, 300)]).unwrap().start);
    }
    let end = wal.end_lsn();
    wal.close().unwrap();
    for (number, &start) in starts.iter().enumerate() {
        let (records, wal, _) = recover(&device, &small(), start, end).unwrap();
        assert_eq!(records.len(), 100 - number);
        assert_eq!(records[0], payload(number as u64, 300));
        assert_eq!(wal.end_lsn(), end);
    }
    let (records, ..) = recover(&device, &small(), end, end).unwrap();
    assert!(records.is_empty());
}

/// Rule 25.
#[test]
fn recycled_files_are_reused_and_idle_ones_removed() {
    let device = memory();
    let wal = fresh(&device, &small()).unwrap();
    let mut kept = Lsn(0);
    for number in 0..200 {
        let appended = wal.append(&[&payload(number, 300)]).unwrap();
        wal.sync_to(appended.end).unwrap();
        if number % 20 == 10 {
            kept = appended.start;
            wal.recycle(kept).unwrap();
            assert!(wal.live_bytes() < 3 * 4096);
            assert!(device.list("").unwrap().len() <= 6, "at most two spares, the mark and LOG");
        }
    }
    let stats = wal.stats();
    assert!(stats.segments_recycled > 5, "{stats:?}");
    assert_eq!(stats.records, 200);
    assert!(stats.spares > 0);
    wal.keep_spares(false).unwrap();
    assert_eq!(wal.stats().spares, 0);
    let is_kept = |name: &String| name.ends_with(".wal") || name == MARK_FILE || name == OWNER_FILE;
    assert!(device.list("").unwrap().iter().all(is_kept));
    wal.close().unwrap();
    let (records, ..) = recover(&device, &small(), kept, kept).unwrap();
    assert_eq!(records.first(), Some(&payload(190, 300)));
    assert_eq!(records.last(), Some(&payload(199, 300)));
    assert_eq!(records.len(), 10);
}

#[test]
fn a_recycled_file_ends_cleanly_where_its_new_records_end() {
    let device = memory();
    let wal = fresh(&device, &small()).unwrap();
    let mut number = 0;
    let mut start = Lsn(0);
    while wal.stats().segments_recycled == 0 {
        start = wal.append(&[&payload(number, 300)]).unwrap().start;
        wal.write_out().unwrap();
        wal.recycle(start).unwrap();
        number += 1;
    }
    // The process is killed: nothing is closed, and old records follow the new one.
    drop(wal);
    let (records, _, torn) = recover(&device, &small(), start, start).unwrap();
    assert_eq!(records, [payload(number - 1, 300)]);
    assert_eq!(torn, None);
}

#[test]
fn an_lsn_is_never_used_twice_after_reopening() {
    let device = memory();
    let mut last = Lsn(0);
    let mut expected = Vec::new();
    for round in 0..20 {
        let (records, wal, _) = recover(&device, &small(), Lsn(0), last).unwrap();
        assert_eq!(records, expected);
        assert_eq!(wal.end_lsn(), last);
        for number in 0..round {
            let bytes = payload(round * 100 + number, 200);
            last = wal.append(&[&bytes]).unwrap().end;
            expected.push(bytes);
        }
        wal.close().unwrap();
    }
}

#[test]
fn a_periodic_sync_happens_when_it_is_due() {
    let device = memory();
    let clock = Arc::new(ManualClock::new());
    let options = WalOptions { sync: SyncMode::EveryMillis(100), ..small() };
    let shared = Arc::clone(&clock);
    let replay = Wal::open(device, options, DB, Lsn(0), Lsn(0), shared).unwrap();
    let (wal, _) = replay.finish().unwrap();
    let end = wal.append(&[b"x"]).unwrap().end;
    wal.commit_to(end).unwrap();
    assert_eq!((wal.written_lsn(), wal.durable_lsn()), (end, Lsn(0)));
    clock.advance(Duration::from_millis(99));
    wal.tick().unwrap();
    assert_eq!(wal.durable_lsn(), Lsn(0), "synced too early");
    clock.advance(Duration::from_millis(1));
    wal.tick().unwrap();
    assert_eq!(wal.durable_lsn(), end);
    let syncs = wal.stats().syncs;
    clock.advance(Duration::from_secs(10));
    wal.tick().unwrap();
    assert_eq!(wal.stats().syncs, syncs, "an idle log writes nothing");
}

#[test]
fn commits_that_wait_together_share_a_sync() {
    let device = memory();
    let wal = fresh(&device, &small()).unwrap();
    let ends: Vec<_> = (0..10).map(|n| wal.append(&[&payload(n, 100)]).unwrap().end).collect();
    let before = wal.stats().syncs;
    for end in ends {
        wal.commit_to(end).unwrap();
    }
    assert_eq!(wal.stats().syncs - before, 1);
    assert_eq!(wal.stats().writes, 1);
}

/// Rule 25.
#[test]
fn records_use_the_reserve_when_the_disk_is_full() {
    let memory = MemoryDevice::new();
    let device: SharedDevice = Arc::new(memory.clone());
    let options = WalOptions { segment_bytes: 1 << 20, reserve_bytes: 64 << 10, ..small() };
    let wal = fresh(&device, &options).unwrap();
    let commit = |number| {
        let end = wal.append(&[&payload(number, 100)])?.end;
        wal.commit_to(end)
    };
    assert!(wal.has_reserve(), "nothing failed yet");
    commit(0).unwrap();
    assert!(wal.has_reserve());
    memory.set_capacity(0);
    let mut logged = 1;
    let error = loop {
        match commit(logged) {
            Ok(()) => logged += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    assert!(logged > 300, "only {logged} records");
    assert!(!wal.has_reserve());
    // Space is freed and commits succeed again; nothing acknowledged is lost, and nothing that
    // failed comes back.
    memory.set_capacity(1 << 20);
    commit(1000).unwrap();
    assert!(wal.has_reserve());
    wal.close().unwrap();
    let (records, ..) = recover(&device, &options, Lsn(0), Lsn(0)).unwrap();
    let expected: Vec<_> = (0..logged).chain([1000]).map(|n| payload(n, 100)).collect();
    assert_eq!(records, expected);
}

#[test]
fn another_databases_log_and_bad_options_are_refused() {
    let device = memory();
    let wal = fresh(&device, &small()).unwrap();
    wal.append(&[b"x"]).unwrap();
    wal.close().unwrap();
    let other = Wal::open(Arc::clone(&device), small(), 1, Lsn(0), Lsn(0), support::clock());
    assert_eq!(other.unwrap_err().kind(), ErrorKind::Invalid);
    let options = WalOptions { segment_bytes: 1, ..small() };
    let bad = Wal::open(device, options, DB, Lsn(0), Lsn(0), support::clock());
    assert_eq!(bad.unwrap_err().kind(), ErrorKind::Invalid);
}

/// Rule 9: a record that was read once and cannot be read again is no torn tail, which would lose
/// it silently.
#[test]
fn a_second_reading_that_ends_early_is_damage() {
    let memory = MemoryDevice::new();
    let device: SharedDevice = Arc::new(memory.clone());
    let wal = fresh(&device, &small()).unwrap();
    for number in 0..5 {
        let end = wal.append(&[&payload(number, 300)]).unwrap().end;
        wal.write_to(end).unwrap();
    }
    drop(wal);
    let mut replay = open(&device, &small(), Lsn(0), Lsn(0)).unwrap();
    let mut again = replay.second_pass();
    let mut end = Lsn(0);
    while let Some(record) = replay.next_record().unwrap() {
        end = record.end;
    }
    let (wal, torn) = replay.finish().unwrap();
    assert!(torn.is_none());
    drop(wal);
    let names = memory.list("").unwrap();
    let name = names.iter().find(|name| name.ends_with(".wal")).unwrap();
    let file = memory.open(name, OpenOptions::WRITE).unwrap();
    let len = file.len().unwrap();
    let mut bytes = vec![0; len as usize];
    file.read_exact_at(0, &mut bytes).unwrap();
    // Every record from the fourth on loses its bytes.
    let from = bytes.windows(300).position(|window| window == &payload(3, 300)[..]).unwrap();
    file.write_at(from as u64, &vec![0; len as usize - from]).unwrap();
    for number in 0..3 {
        let record = again.next_record(end).unwrap().unwrap();
        assert_eq!(record.payload, payload(number, 300));
    }
    let error = again.next_record(end).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert_eq!(&error.place().unwrap().file, name);
}
