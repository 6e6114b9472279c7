//! What the tests of the log share: opening it on a device, and records that can be told apart.
#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use frondb_core::clock::{ManualClock, SharedClock};
use frondb_core::prng::Prng;
use frondb_core::{Lsn, Result};
use frondb_device::SharedDevice;
use frondb_wal::{Replay, TornTail, Wal, WalOptions};

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

/// Reads all records from `start` on, and opens the log behind them.
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

/// The record of that number: no two are alike, and no part of one is another.
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
