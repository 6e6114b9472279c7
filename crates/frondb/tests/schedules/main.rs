//! A database under many schedules. Shuttle chooses which thread runs next, and a schedule replays
//! a failure.
//!
//! `cargo xtask shuttle`
#![cfg(shuttle)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod asynchronous;
mod full_disk;
mod manifest;
mod pins;
mod snapshots;
mod versions;

use std::sync::Arc;

use frondb::testing::TestDb;
use frondb::{Db, Options};
use frondb_testkit::MemoryDevice;
use frondb_testkit::StillClock;
use frondb_testkit::functions::Add;

/// Opens a database without background threads, with the update function `add`.
fn open(device: &MemoryDevice) -> Db {
    let opening = TestDb::on(Arc::new(device.clone())).options(Options::small().update_fn(Add));
    opening.clock(Arc::new(StillClock)).open().unwrap()
}
