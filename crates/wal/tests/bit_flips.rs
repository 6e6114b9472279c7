//! Rule 9: flips every bit of a small log. The damage is reported as Corruption with file and
//! offset or, where nothing proves that the record had been durable, as a torn tail that was cut
//! off. Damage is never silent, and every replayed record is one that was appended.

#![allow(clippy::print_stdout, reason = "a failed test shows what it printed")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use frondb_core::{ErrorKind, Lsn};
use frondb_device::{Device, OpenOptions, SharedDevice};
use frondb_testkit::{CrashMode, MemoryDevice};
use frondb_wal::format::HEADER_BYTES;
use frondb_wal::owner::OWNER_FILE;
use frondb_wal::{MARK_FILE, WalOptions};
use support::{forget_mark, fresh, payload, recover};

fn options(compression: bool) -> WalOptions {
    WalOptions { segment_bytes: 4096, reserve_bytes: 256, compression, ..WalOptions::default() }
}

/// A log of two segments; the records after the last sync are only written.
struct Log {
    memory: MemoryDevice,
    records: Vec<Vec<u8>>,
    /// The end of the log. A test passes it to recovery as the Lsn up to which the manifest says
    /// that the log is durable, or passes 0.
    end: Lsn,
    /// The offset in the first segment's file at which its records end; bytes after it are not part
    /// of the log.
    first_end: u64,
}

fn log(compression: bool) -> Log {
    let memory = MemoryDevice::new();
    let device: SharedDevice = Arc::new(memory.clone());
    let wal = fresh(&device, &options(compression)).unwrap();
    let (mut records, mut first_end) = (Vec::new(), 0);
    let sizes = [3700, 20, 300, 10, 10, 200, 10, 10];
    for (number, len) in sizes.into_iter().enumerate() {
        let bytes = if number % 3 == 2 { vec![9; len] } else { payload(number as u64, len) };
        let end = wal.append(&[&bytes]).unwrap().end;
        // The first records are durable before the later ones are written.
        if number < 5 { wal.sync_to(end) } else { wal.write_to(end) }.unwrap();
        records.push(bytes);
        if wal.stats().segments == 1 {
            first_end = HEADER_BYTES + end.get();
        }
    }
    let end = wal.end_lsn();
    drop(wal);
    assert_eq!(device.list("").unwrap().len(), 4);
    Log { memory, records, end, first_end }
}

fn flipped(log: &Log, name: &str, bit: u64) -> SharedDevice {
    let device = log.memory.crash(CrashMode::KeepAll);
    flip(&device, name, bit);
    Arc::new(device)
}

fn flip(device: &dyn Device, name: &str, bit: u64) {
    let file = device.open(name, OpenOptions::WRITE).unwrap();
    let mut byte = [0];
    file.read_exact_at(bit / 8, &mut byte).unwrap();
    byte[0] ^= 1 << (bit % 8);
    file.write_at(bit / 8, &byte).unwrap();
}

/// Flips every bit of every file of the log. `known` is the Lsn up to which the manifest records
/// the log as durable; damage in the first `certain` records must be reported as Corruption and not
/// cut off. One slot of the mark suffices, and segments repeat what `LOG` says, so a flipped bit in
/// a slot or in `LOG` leaves the log intact.
fn sweep(log: &Log, options: &WalOptions, known: Lsn, certain: usize) -> (u64, u64) {
    let (mut corrupt, mut torn_tails) = (0, 0);
    for name in log.memory.list("").unwrap() {
        let len = log.memory.open(&name, OpenOptions::READ).unwrap().len().unwrap();
        let bits = 8 * if name == "000000000001.wal" { log.first_end } else { len };
        // There is nothing between the slots of the mark.
        let is_used = |bit: &u64| name != MARK_FILE || bit / 8 % 4096 < 64;
        for bit in (0..bits).filter(is_used) {
            let device = flipped(log, &name, bit);
            match recover(&device, options, Lsn(0), known) {
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corruption, "{name} bit {bit}: {error}");
                    let place = error.place().expect("a corruption has a place");
                    assert_eq!(place.file, name, "bit {bit}: {error}");
                    corrupt += 1;
                }
                Ok((records, _, torn)) if name == MARK_FILE || name == OWNER_FILE => {
                    assert_eq!((&records, torn), (&log.records, None), "{name} bit {bit}");
                }
                Ok((records, wal, torn)) => {
                    assert!(torn.is_some(), "{name} bit {bit} was not noticed");
                    assert!(records.len() >= certain, "{name} bit {bit}: {torn:?}");
                    assert_eq!(records, log.records[..records.len()], "{name} bit {bit}");
                    assert!(wal.end_lsn() >= known);
                    torn_tails += 1;
                }
            }
        }
    }
    (corrupt, torn_tails)
}

#[test]
fn below_what_the_manifest_knows_every_bit_is_corruption() {
    for compression in [false, true] {
        let log = log(compression);
        let (corrupt, torn) = sweep(&log, &options(compression), log.end, log.records.len());
        println!("known durable: {corrupt} corruptions, {torn} torn tails");
        assert!(corrupt > 30_000 && torn > 100);
    }
}

#[test]
fn the_mark_knows_what_was_synced() {
    let log = log(false);
    let (corrupt, torn) = sweep(&log, &options(false), Lsn(0), 5);
    println!("marked: {corrupt} corruptions, {torn} torn tails");
    assert!(corrupt > 30_000 && torn > 1_000);
}

#[test]
fn without_a_mark_the_log_itself_proves_what_was_durable() {
    let log = log(false);
    forget_mark(&log.memory);
    // Five records were synced; the sixth stores that they are durable.
    let (corrupt, torn) = sweep(&log, &options(false), Lsn(0), 5);
    println!("unknown: {corrupt} corruptions, {torn} torn tails");
    assert!(corrupt > 30_000 && torn > 1_000);
}

/// A flipped bit in each slot makes the mark unreadable: whichever bits are flipped, this is
/// damage, even where `LOG` cannot say that there must be a mark.
#[test]
fn a_mark_without_a_valid_slot_is_corruption() {
    let log = log(false);
    for bit in 0..64 * 8 {
        let device = flipped(&log, MARK_FILE, bit);
        flip(&*device, MARK_FILE, 4096 * 8 + (bit * 7) % 512);
        if bit % 2 == 0 {
            flip(&*device, OWNER_FILE, bit);
        }
        let error = recover(&device, &options(false), Lsn(0), Lsn(0)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "bit {bit}: {error}");
        assert_eq!(error.place().unwrap().file, MARK_FILE, "bit {bit}: {error}");
    }
}
