//! Replacing the manifest under many schedules. Rule 6: the edit that makes a flush count is
//! durable before its log is freed. While memtables are flushed and merged, and trees are created
//! and dropped, checkpoints rewrite the manifest. An edit during a rewrite must be in the new file,
//! either in its snapshot or after it: a reopened database has all edits.
//!
//! ```text
//!   writer      put, flush, merge, make and drop a tree    edits of the old file
//!   checkpoints capture the state | begin the new file     an edit between the two would be lost
//! ```
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test -p frondb-engine --test manifest_schedules`
#![cfg(shuttle)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use frondb_core::clock::SharedClock;
use frondb_core::executor::{SharedExecutor, ThreadExecutor};
use frondb_device::{MemoryDevice, SharedDevice};
use frondb_engine::{Batch, Durability, Engine, EngineOptions, Tree, TreeOptions};
use frondb_testkit::{StillClock, schedules};

const ROUNDS: u64 = 4;
const CHECKPOINTS: u64 = 3;

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

fn put(engine: &Engine, tree: &Tree, row: u64) {
    let mut batch = Batch::new();
    batch.put(tree, &row.to_be_bytes(), &row.to_le_bytes());
    engine.write(&batch, Durability::NoSync).unwrap();
}

fn write(engine: &Engine, tree: &Tree) {
    for row in 0..ROUNDS {
        put(engine, tree, row);
        engine.flush().unwrap();
        while engine.run_one(true) {}
        let name = format!("tree {row}");
        put(engine, &engine.create_tree(&name, TreeOptions::default()).unwrap(), row);
        if row % 2 == 1 {
            engine.drop_tree(&name).unwrap();
        }
    }
}

fn schedule() {
    let device = MemoryDevice::new();
    let engine = Arc::new(open(&device));
    let tree = engine.create_tree("t", TreeOptions::default()).unwrap();
    let writer = {
        let (engine, tree) = (Arc::clone(&engine), tree.clone());
        shuttle::thread::spawn(move || write(&engine, &tree))
    };
    let checkpoints = {
        let engine = Arc::clone(&engine);
        shuttle::thread::spawn(move || {
            for _ in 0..CHECKPOINTS {
                engine.checkpoint().unwrap();
            }
        })
    };
    writer.join().unwrap();
    checkpoints.join().unwrap();
    drop((tree, engine));

    let engine = open(&device);
    assert_eq!(engine.list_trees(), ["t", "tree 0", "tree 2"]);
    let tree = engine.open_tree("t").unwrap();
    for row in 0..ROUNDS {
        let found = engine.get(&tree, &row.to_be_bytes(), None).unwrap();
        assert_eq!(found, Some(row.to_le_bytes().to_vec()), "row {row}");
    }
    for row in [0, 2] {
        let tree = engine.open_tree(&format!("tree {row}")).unwrap();
        let found = engine.get(&tree, &u64::to_be_bytes(row), None).unwrap();
        assert_eq!(found, Some(row.to_le_bytes().to_vec()), "the row of tree {row}");
    }
}

#[test]
fn shuttle_no_edit_falls_between_two_manifests() {
    schedules::check_random(schedule, 400);
}
