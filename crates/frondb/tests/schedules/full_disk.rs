//! A full disk under many schedules (rule 25). One job fails because the disk is full while another
//! job finds space. Whichever of the two results is recorded last, a flush succeeds once the disk
//! has space. A sync of the log, which also writes the records of other threads, may fail because
//! space is short; the database then continues.
//!
//! ```text
//!   large   flush what does not fit     the disk is full: hold back
//!   small   flush what fits             there is space:   release
//! ```

use std::sync::Arc;

use frondb::{Batch, Db, Durability, Tree, TreeOptions};
use frondb_core::ErrorKind;
use frondb_core::prng::Prng;
use frondb_testkit::MemoryDevice;
use frondb_testkit::schedules;

use crate::open;

const ROWS: u32 = 60;

fn put(db: &Db, tree: &Tree, value: &[u8]) {
    let mut batch = Batch::new();
    batch.put(tree, b"key", value);
    db.write(&batch, Durability::NoSync).unwrap();
}

fn put_many(db: &Db, tree: &Tree) {
    let mut prng = Prng::new(1);
    for row in 0..ROWS {
        let mut value = vec![0; 10_000];
        prng.fill(&mut value);
        let mut batch = Batch::new();
        batch.put(tree, &row.to_be_bytes(), &value);
        db.write(&batch, Durability::NoSync).unwrap();
    }
}

/// Flushes; the only allowed error is a full disk.
fn try_flush(db: &Db) {
    if let Err(error) = db.flush() {
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    }
}

fn schedule() {
    let device = MemoryDevice::new();
    let db = Arc::new(open(&device));
    let create = |name| db.create_tree(name, TreeOptions::default()).unwrap();
    let [large, small] = ["large", "small"].map(create);
    // The file has 1 MiB: the small flush fits into its rest, and the second large flush does not.
    put_many(&db, &large);
    put(&db, &small, b"before");
    db.flush().unwrap();
    put_many(&db, &large);
    put(&db, &small, b"after");
    device.set_capacity(device.used_bytes());

    let threads = [(), ()].map(|()| {
        let db = Arc::clone(&db);
        shuttle::thread::spawn(move || try_flush(&db))
    });
    for thread in threads {
        thread.join().unwrap();
    }
    device.set_capacity(u64::MAX);
    db.flush().unwrap();
    db.wait_settled().unwrap();
    let found = small.get(b"key").unwrap();
    assert_eq!(found, Some(b"after".to_vec()));
}

#[test]
fn shuttle_space_that_comes_back_lets_all_go_on() {
    schedules::check_random(schedule, 1000);
}

/// Commits until the log finds no space.
fn fill_log(db: &Db, tree: &Tree) {
    let mut prng = Prng::new(1);
    for row in 0..ROWS {
        let mut value = vec![0; 20_000];
        prng.fill(&mut value);
        let mut batch = Batch::new();
        batch.put(tree, row.to_be_bytes(), &value);
        if let Err(error) = db.write(&batch, Durability::Sync) {
            assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
            return;
        }
    }
    panic!("the disk was never full");
}

fn schedule_of_syncs() {
    let device = MemoryDevice::new();
    let db = Arc::new(open(&device));
    let tree = db.create_tree("t", TreeOptions::default()).unwrap();
    device.set_capacity(device.used_bytes());

    let writer = {
        let (db, tree) = (Arc::clone(&db), tree.clone());
        shuttle::thread::spawn(move || fill_log(&db, &tree))
    };
    for _ in 0..4 {
        if let Err(error) = db.sync() {
            assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
        }
    }
    writer.join().unwrap();
    device.set_capacity(u64::MAX);
    put(&db, &tree, b"after");
    db.sync().unwrap();
    assert_eq!(tree.get(b"key").unwrap(), Some(b"after".to_vec()));
}

#[test]
fn shuttle_a_sync_that_meets_a_full_disk_does_not_end_the_database() {
    schedules::check_random(schedule_of_syncs, 1000);
}
