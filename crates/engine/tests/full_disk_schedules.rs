//! A full disk under many schedules (rule 25): one job fails because the disk is full while another
//! finds space. Whichever of the two results is recorded last, a flush succeeds once the disk has
//! space.
//!
//! ```text
//!   large   flush what does not fit     the disk is full: hold back
//!   small   flush what fits             there is space:   release
//! ```
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test -p frondb-engine --test full_disk_schedules`
#![cfg(shuttle)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use frondb_core::ErrorKind;
use frondb_core::clock::SharedClock;
use frondb_core::executor::{SharedExecutor, ThreadExecutor};
use frondb_core::prng::Prng;
use frondb_device::{MemoryDevice, SharedDevice};
use frondb_engine::{Batch, Durability, Engine, EngineOptions, Tree, TreeOptions};
use frondb_testkit::{StillClock, schedules};

const ROWS: u32 = 60;

fn open(device: &MemoryDevice) -> Engine {
    let options = EngineOptions {
        memory_bytes: EngineOptions::MEMORY_BYTES_MIN_WITHOUT_THREADS,
        background_threads: 0,
        reserve_bytes: 0,
        ..EngineOptions::default()
    };
    let device: SharedDevice = Arc::new(device.clone());
    let clock: SharedClock = Arc::new(StillClock);
    let executor: SharedExecutor = Arc::new(ThreadExecutor);
    Engine::open(device, None, options, clock, &executor).unwrap()
}

fn put(engine: &Engine, tree: &Tree, value: &[u8]) {
    let mut batch = Batch::new();
    batch.put(tree, b"key", value);
    engine.write(&batch, Durability::NoSync).unwrap();
}

fn put_many(engine: &Engine, tree: &Tree) {
    let mut prng = Prng::new(1);
    for row in 0..ROWS {
        let mut value = vec![0; 10_000];
        prng.fill(&mut value);
        let mut batch = Batch::new();
        batch.put(tree, &row.to_be_bytes(), &value);
        engine.write(&batch, Durability::NoSync).unwrap();
    }
}

/// A flush that may find no space, and nothing else.
fn try_flush(engine: &Engine) {
    if let Err(error) = engine.flush() {
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    }
}

fn schedule() {
    let device = MemoryDevice::new();
    let engine = Arc::new(open(&device));
    let create = |name| engine.create_tree(name, TreeOptions::default()).unwrap();
    let [large, small] = ["large", "small"].map(create);
    // The file has 1 MiB: the small flush fits into the rest, and the second large one does not.
    put_many(&engine, &large);
    put(&engine, &small, b"before");
    engine.flush().unwrap();
    put_many(&engine, &large);
    put(&engine, &small, b"after");
    device.set_capacity(device.used_bytes());

    let threads = [(), ()].map(|()| {
        let engine = Arc::clone(&engine);
        shuttle::thread::spawn(move || try_flush(&engine))
    });
    for thread in threads {
        thread.join().unwrap();
    }
    device.set_capacity(u64::MAX);
    engine.flush().unwrap();
    engine.wait_settled().unwrap();
    let found = engine.get(&small, b"key", None).unwrap();
    assert_eq!(found, Some(b"after".to_vec()));
}

#[test]
fn shuttle_space_that_comes_back_lets_all_go_on() {
    schedules::check_random(schedule, 1000);
}
