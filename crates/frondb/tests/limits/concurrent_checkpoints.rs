//! Any thread may request a checkpoint at any time, even while a worker replaces the manifest. Only
//! one snapshot of the manifest is written at a time, and no caller gets an error.

use frondb::testing::TestDb;
use frondb::{Options, TreeOptions};
use frondb_core::sync::Arc;
use frondb_testkit::MemoryDevice;

#[test]
fn checkpoints_of_many_threads_do_not_meet() {
    let device = Arc::new(MemoryDevice::new());
    let open = || {
        let options = Options::new().memory_bytes(16 << 20).background_threads(1).reserve_bytes(0);
        TestDb::on(Arc::clone(&device) as _).options(options).open()
    };
    let db = open().unwrap();
    // So many trees that a snapshot takes a while.
    for i in 0..100 {
        db.create_tree(&format!("tree {i}"), TreeOptions::new()).unwrap();
    }
    let before = db.stats().manifest_rotations;
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let db = &db;
            scope.spawn(move || {
                let tree = db.open_tree(&format!("tree {thread}")).unwrap();
                for i in 0..25_u8 {
                    tree.put(&[i], &[thread]).unwrap();
                    db.checkpoint().unwrap();
                }
            });
        }
    });
    assert_eq!(db.stats().manifest_rotations - before, 100);
    drop(db);
    let db = open().unwrap();
    for thread in 0..4_u8 {
        let tree = db.open_tree(&format!("tree {thread}")).unwrap();
        assert!((0..25).all(|i| tree.get(&[i]).unwrap() == Some(vec![thread])));
    }
}
