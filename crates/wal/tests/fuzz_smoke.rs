//! Random and mutated bytes for the decoders of the log.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use frondb_device::{Device, OpenOptions, SharedDevice};
use frondb_testkit::MemoryDevice;
use frondb_testkit::fuzz::smoke;
use frondb_wal::fuzz;
use support::{fresh, payload, small};

/// The files of a small log.
fn segments() -> Vec<Vec<u8>> {
    let memory = MemoryDevice::new();
    let device: SharedDevice = Arc::new(memory.clone());
    let wal = fresh(&device, &small()).unwrap();
    for number in 0..20 {
        let end = wal.append(&[&payload(number, 300)]).unwrap().end;
        wal.sync_to(end).unwrap();
    }
    let names = memory.list("").unwrap();
    let read = |name: &String| {
        let file = memory.open(name, OpenOptions::READ).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_exact_at(0, &mut bytes).unwrap();
        bytes
    };
    names.iter().map(read).collect()
}

#[test]
fn decoders_never_panic() {
    let segments = segments();
    let headers: Vec<_> = segments.iter().map(|bytes| bytes[..64].to_vec()).collect();
    let has_records = |bytes: &&Vec<u8>| bytes.len() > 400;
    let records: Vec<_> =
        segments.iter().filter(has_records).map(|bytes| bytes[64..400].to_vec()).collect();
    smoke(1, 20_000, &headers, fuzz::segment_header);
    smoke(4, 20_000, &headers, fuzz::mark);
    let short: Vec<_> = records.iter().map(|bytes| bytes[..100].to_vec()).collect();
    smoke(5, 300, &short, fuzz::repair);
    smoke(2, 20_000, &records, fuzz::record);
    smoke(3, 3_000, &segments, fuzz::segment);
}
