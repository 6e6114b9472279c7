//! Group commit and a change of files under many schedules: once `sync` has returned, a power loss
//! does not lose the edit.
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test -p frondb-manifest --test group_commit_schedules`
#![cfg(shuttle)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use frondb_core::sync::Mutex;
use frondb_device::SharedDevice;
use frondb_manifest::Manifest;
use frondb_testkit::{CrashMode, MemoryDevice};
use support::{create, edit, encode, open, state};

/// The state that a power loss now would leave.
fn durable_state(memory: &MemoryDevice) -> Vec<u64> {
    let device: SharedDevice = Arc::new(memory.crash(CrashMode::LoseUnsynced));
    state(&open(&device).unwrap().1)
}

/// A manifest, and the state of its engine, which changes in the order of the edits.
type Engine = shuttle::sync::Arc<(Manifest, Mutex<Vec<u64>>)>;

/// Loses power at any moment: the manifest opens and contains what was acknowledged before.
fn observe(memory: &MemoryDevice, acknowledged: &Mutex<Vec<u64>>) {
    for _ in 0..4 {
        let before = acknowledged.lock().clone();
        let found = durable_state(memory);
        assert!(before.iter().all(|number| found.contains(number)), "{before:?} {found:?}");
    }
}

/// Changes the state by an edit, and checks whether the edit is durable.
fn change(engine: &Engine, memory: &MemoryDevice, acknowledged: &Mutex<Vec<u64>>, number: u64) {
    let mut state = engine.1.lock();
    let ticket = engine.0.append(&edit(number)).unwrap();
    state.push(number);
    drop(state);
    engine.0.sync(ticket).unwrap();
    acknowledged.lock().push(number);
    assert!(durable_state(memory).contains(&number), "acknowledged, but not on disk");
}

fn rotate(engine: &Engine) {
    let state = engine.1.lock();
    let captured = state.clone();
    let mut writer = engine.0.begin_snapshot().unwrap();
    drop(state);
    writer.write(&encode(&captured)).unwrap();
    writer.finish().unwrap();
}

#[test]
fn shuttle_a_sync_that_returns_has_happened_even_while_files_change() {
    shuttle::check_random(
        || {
            let memory = MemoryDevice::new();
            let device: SharedDevice = Arc::new(memory.clone());
            let manifest = create(&device).unwrap();
            let engine: Engine = shuttle::sync::Arc::new((manifest, Mutex::new(Vec::new())));
            let acknowledged = shuttle::sync::Arc::new(Mutex::new(Vec::new()));
            let mut threads: Vec<_> = (0..2)
                .map(|thread| {
                    let (engine, memory) = (engine.clone(), memory.clone());
                    let acknowledged = acknowledged.clone();
                    shuttle::thread::spawn(move || {
                        for n in 0..3 {
                            change(&engine, &memory, &acknowledged, thread * 10 + n);
                        }
                    })
                })
                .collect();
            let observed = memory.clone();
            threads.push(shuttle::thread::spawn(move || observe(&observed, &acknowledged)));
            let rotating = engine.clone();
            threads.push(shuttle::thread::spawn(move || (0..2).for_each(|_| rotate(&rotating))));
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(durable_state(&memory), *engine.1.lock(), "the order of the edits");
        },
        1000,
    );
}
