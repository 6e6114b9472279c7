//! Random and mutated bytes for the decoders of the manifest.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use frondb_device::{Device, OpenOptions, SharedDevice};
use frondb_manifest::fuzz;
use frondb_testkit::MemoryDevice;
use frondb_testkit::fuzz::smoke;
use support::{create, edit, log, rotate};

#[test]
fn decoders_never_panic() {
    let memory = MemoryDevice::new();
    let device: SharedDevice = Arc::new(memory.clone());
    let manifest = create(&device).unwrap();
    rotate(&manifest, &[1, 2, 3]).unwrap();
    (4..10).for_each(|n| log(&manifest, &edit(n)).unwrap());
    let read = |name: &str| {
        let file = memory.open(name, OpenOptions::READ).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_exact_at(0, &mut bytes).unwrap();
        bytes
    };
    smoke(1, 5_000, &[read("SUPER")[..4096].to_vec()], fuzz::superblock);
    smoke(2, 5_000, &[read("MANIFEST-000002")], fuzz::manifest_file);
}
