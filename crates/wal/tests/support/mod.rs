//! Shared by the tests of the log: opening it on a device, and records that can be told apart.
#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use frondb_core::checksum::xxh3;
use frondb_core::clock::{ManualClock, SharedClock};
use frondb_core::prng::Prng;
use frondb_core::{Lsn, Result};
use frondb_device::{Device, OpenOptions, SharedDevice};
use frondb_testkit::MemoryDevice;
use frondb_wal::owner::OWNER_FILE;
use frondb_wal::{MARK_FILE, Replay, TornTail, Wal, WalOptions};

pub(crate) const DB: u128 = 0xF00D;

pub(crate) fn clock() -> SharedClock {
    Arc::new(ManualClock::new())
}

/// Small segments, so that a short history has many.
pub(crate) fn small() -> WalOptions {
    WalOptions { segment_bytes: 4096, reserve_bytes: 1024, ..WalOptions::default() }
}

pub(crate) fn open(
    device: &SharedDevice,
    options: &WalOptions,
    start: Lsn,
    durable: Lsn,
) -> Result<Replay> {
    Wal::open(Arc::clone(device), options.clone(), DB, start, durable, clock())
}

/// Reads all records from `start` on, and opens the log after them.
pub(crate) fn recover(
    device: &SharedDevice,
    options: &WalOptions,
    start: Lsn,
    durable: Lsn,
) -> Result<(Vec<Vec<u8>>, Wal, Option<TornTail>)> {
    let mut replay = open(device, options, start, durable)?;
    let mut records = Vec::new();
    while let Some(record) = replay.next_record()? {
        records.push(record.payload.to_vec());
    }
    let (wal, torn) = replay.finish()?;
    Ok((records, wal, torn))
}

/// A log in an empty directory.
pub(crate) fn fresh(device: &SharedDevice, options: &WalOptions) -> Result<Wal> {
    let (records, wal, torn) = recover(device, options, Lsn(0), Lsn(0))?;
    assert!(records.is_empty() && torn.is_none());
    Ok(wal)
}

/// Replaces the mark by one that records nothing, as power loss may leave it.
pub(crate) fn forget_mark(device: &dyn Device) {
    let empty: SharedDevice = Arc::new(MemoryDevice::new());
    drop(fresh(&empty, &small()).unwrap());
    let mut bytes = vec![0; 4160];
    empty.open(MARK_FILE, OpenOptions::READ).unwrap().read_exact_at(0, &mut bytes).unwrap();
    let file = device.open(MARK_FILE, OpenOptions::CREATE).unwrap();
    file.write_at(0, &bytes).unwrap();
}

/// Durably gives `LOG` and the segments the form that a build without marks writes, and removes the
/// mark.
pub(crate) fn unmark(device: &dyn Device) -> Result<()> {
    for name in device.list("")? {
        if name == OWNER_FILE || name.ends_with(".wal") {
            let file = device.open(&name, OpenOptions::WRITE)?;
            let mut header = [0; 56];
            file.read_exact_at(0, &mut header)?;
            header[12] &= !2;
            file.write_at(0, &header)?;
            file.write_at(56, &xxh3(&header).to_le_bytes())?;
            file.sync()?;
        }
    }
    if device.exists(MARK_FILE)? {
        device.remove(MARK_FILE)?;
    }
    device.sync_dir("")
}

/// The record with this number: no two are alike, and no part of one is another.
pub(crate) fn payload(number: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len.max(8)];
    Prng::new(number).fill(&mut bytes);
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// The name of the only (or the last) segment.
pub(crate) fn last_segment(device: &SharedDevice) -> String {
    let names = device.list("").unwrap();
    names.into_iter().rfind(|name| name.ends_with(".wal")).unwrap()
}
