//! A database under many schedules: what its threads do in turn is chosen by shuttle, and a failure is replayed by its
//! schedule.
//!
//! `cargo xtask shuttle`
#![cfg(shuttle)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod full_disk;
mod manifest;
mod pins;
mod snapshots;
mod versions;

use std::sync::Arc;

use frondb::{Db, Options};
use frondb_core::clock::SharedClock;
use frondb_core::executor::{SharedExecutor, ThreadExecutor};
use frondb_device::SharedDevice;
use frondb_testkit::MemoryDevice;
use frondb_testkit::StillClock;
use frondb_testkit::functions::Add;

/// Opens a database without threads of its own, with the update function `add`.
fn open(device: &MemoryDevice) -> Db {
    let options =
        Options::new().memory_bytes(4 << 20).background_threads(0).reserve_bytes(0).update_fn(Add);
    let device: SharedDevice = Arc::new(device.clone());
    let clock: SharedClock = Arc::new(StillClock);
    let executor: SharedExecutor = Arc::new(ThreadExecutor);
    Db::open_on(device, None, options, clock, &executor).unwrap()
}
