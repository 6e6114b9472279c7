//! `sync_async`: what was committed before the call is durable once its future returns.

use frondb::testing::TestDb;
use frondb::{Db, Durability, ErrorKind, Options, Tree, TreeOptions};
use frondb_core::executor::SharedExecutor;
use frondb_core::sync::Arc;
use frondb_device::SharedDevice;
use frondb_testkit::faults::Script;
use frondb_testkit::{CrashMode, Faults, MemoryDevice};
use futures::executor::block_on;
use futures::future::join_all;

use crate::support::{HeldThreads, key, poll_once};

fn opening(device: SharedDevice) -> TestDb {
    TestDb::on(device).options(Options::small()).still()
}

fn created(opening: TestDb) -> (Db, Tree) {
    let db = opening.open().unwrap().with_commit_sync(Durability::NoSync);
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    (db, tree)
}

fn keys_after_power_loss(memory: &MemoryDevice) -> usize {
    let lost_power = memory.crash(CrashMode::LoseUnsynced);
    let db = opening(Arc::new(lost_power)).open().unwrap();
    db.open_tree("t").unwrap().range(..).unwrap().count()
}

#[test]
fn commits_of_many_tasks_are_durable() {
    let memory = MemoryDevice::new();
    let (db, tree) = created(opening(Arc::new(memory.clone())));
    db.sync().unwrap();
    let commit = async |n: u32| {
        tree.put(key(n), "v")?;
        db.sync_async().await
    };
    let committed = block_on(join_all((0..500).map(commit)));
    assert!(committed.into_iter().all(|committed| committed.is_ok()));
    assert!(poll_once(&mut db.sync_async()).is_some(), "nothing is left to sync");
    assert_eq!(keys_after_power_loss(&memory), 500);
    tree.put(key(500), "v").unwrap();
    assert_eq!(keys_after_power_loss(&memory), 500, "the puts alone are not durable");
    db.close().unwrap();
}

/// The close has made the commit durable.
#[test]
fn a_close_is_a_sync() {
    let executor = Arc::new(HeldThreads::default()) as SharedExecutor;
    let (db, tree) = created(opening(Arc::new(MemoryDevice::new())).executor(executor));
    tree.put("k", "v").unwrap();
    let mut pending = db.sync_async();
    assert!(poll_once(&mut pending).is_none());
    db.close().unwrap();
    poll_once(&mut pending).unwrap().unwrap();
    let after = poll_once(&mut db.sync_async()).unwrap();
    assert_eq!(after.unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn a_failed_sync_poisons_the_database() {
    let faults = Arc::new(Faults::over(Arc::new(MemoryDevice::new()), &Script::default()));
    let (db, tree) = created(opening(Arc::clone(&faults) as SharedDevice));
    tree.put("k", "v").unwrap();
    faults.set_script(&"fail sync wal count=all".parse().unwrap());
    let pending = [db.sync_async(), db.sync_async()];
    for synced in block_on(join_all(pending)) {
        assert_eq!(synced.unwrap_err().kind(), ErrorKind::Poisoned);
    }
    assert_eq!(tree.put("k", "w").unwrap_err().kind(), ErrorKind::Poisoned);
}
