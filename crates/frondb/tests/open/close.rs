//! A closed database can be opened again immediately, even if handles of it still exist. None of
//! these handles can write.

use std::sync::atomic::{AtomicU64, Ordering};

use frondb::testing::TestDb;
use frondb::{Batch, Db, Durability, ErrorKind, Options, TreeOptions};
use frondb_core::sync::Arc;
use frondb_testkit::TempDir;
use frondb_testkit::faults::Script;
use frondb_testkit::{CrashMode, Faults, MemoryDevice};

fn options(threads: usize) -> Options {
    Options::new().memory_bytes(16 << 20).write_buffer_bytes(2 << 20).background_threads(threads)
}

#[test]
fn the_directory_is_free_while_handles_live() {
    for threads in [0, 2] {
        let dir = TempDir::new("close");
        let db = Db::open(dir.path(), options(threads)).unwrap();
        let tree = db.create_tree("t", TreeOptions::new()).unwrap();
        tree.put(b"k", b"v").unwrap();
        let busy = Db::open(dir.path(), options(threads)).unwrap_err();
        assert_eq!(busy.kind(), ErrorKind::Busy);
        db.close().unwrap();
        db.close().unwrap();

        let again = Db::open(dir.path(), options(threads)).unwrap();
        let same = again.open_tree("t").unwrap();
        assert_eq!(same.get(b"k").unwrap(), Some(b"v".to_vec()));
        // The old handles are closed. Closing or dropping them again frees nothing of the new
        // database.
        assert_eq!(tree.put(b"k", b"w").unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(db.sync().unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(db.checkpoint().unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(db.wait_settled().unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(db.drop_tree("t").unwrap_err().kind(), ErrorKind::Closed);
        assert!(!db.run_one(true));
        db.close().unwrap();
        drop((tree, db));
        let busy = Db::open(dir.path(), options(threads)).unwrap_err();
        assert_eq!(busy.kind(), ErrorKind::Busy);
        same.put(b"k", b"w").unwrap();
        again.close().unwrap();
    }
}

/// Other threads commit while the database is being closed. Every acknowledged commit is in the
/// database, and no refused commit is.
#[test]
fn calls_under_way_end_before_the_directory_is_free() {
    const WRITERS: u64 = 3;
    for threads in [0, 2] {
        let dir = TempDir::new("close");
        for round in 0..4_u64 {
            let db = Db::open(dir.path(), options(threads).write_buffer_bytes(64 << 10)).unwrap();
            if round == 0 {
                db.create_tree("t", TreeOptions::new()).unwrap();
            }
            let tree = db.open_tree("t").unwrap();
            let commits = AtomicU64::new(0);
            let committed: Vec<u64> = std::thread::scope(|scope| {
                let write = |writer: u64| {
                    let (db, tree, commits) = (&db, &tree, &commits);
                    move || {
                        let mut batch = Batch::new();
                        for n in 0_u64.. {
                            let key = [round.to_be_bytes(), writer.to_be_bytes(), n.to_be_bytes()];
                            batch.clear();
                            batch.put(tree, &key.concat(), &[7; 300]);
                            if let Err(error) = db.write(&batch, Durability::NoSync) {
                                assert_eq!(error.kind(), ErrorKind::Closed);
                                return n;
                            }
                            commits.fetch_add(1, Ordering::Relaxed);
                        }
                        unreachable!("the database is closed some time")
                    }
                };
                let writers: Vec<_> = (0..WRITERS).map(|w| scope.spawn(write(w))).collect();
                while commits.load(Ordering::Relaxed) < 300 {
                    std::thread::yield_now();
                }
                db.close().unwrap();
                writers.into_iter().map(|writer| writer.join().unwrap()).collect()
            });
            let again = Db::open(dir.path(), options(threads)).unwrap();
            let same = again.open_tree("t").unwrap();
            for (writer, n) in committed.into_iter().enumerate() {
                let key = |n: u64| [round, writer as u64, n].map(u64::to_be_bytes).concat();
                assert!((0..n).all(|n| same.exists(&key(n)).unwrap()), "round {round}");
                assert!(!same.exists(&key(n)).unwrap(), "round {round}");
            }
            assert!(again.verify(&mut |_, _, _| true).unwrap().faults.is_empty());
            again.close().unwrap();
        }
    }
}

#[test]
fn closing_again_returns_the_error_of_the_first_close() {
    let device = Arc::new(Faults::over(Arc::new(MemoryDevice::new()), &Script::default()));
    let shared = Arc::clone(&device) as _;
    let db = TestDb::on(shared).options(options(0)).open().unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let mut batch = Batch::new();
    batch.put(&tree, b"k", b"v");
    db.write(&batch, Durability::NoSync).unwrap();
    device.set_script(&"fail sync data nth=1 count=all".parse().unwrap());
    let first = db.close().unwrap_err();
    let second = db.close().unwrap_err();
    assert_eq!(first.kind(), ErrorKind::Poisoned, "{first}");
    assert_eq!(second.to_string(), first.to_string());
}

/// A close syncs the log, whatever else fails.
#[test]
fn a_close_that_fails_makes_all_commits_durable() {
    let memory = MemoryDevice::new();
    let device = Arc::new(Faults::over(Arc::new(memory.clone()), &Script::default()));
    let shared = Arc::clone(&device) as frondb_device::SharedDevice;
    let db = TestDb::on(shared).options(options(0)).open().unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let mut batch = Batch::new();
    batch.put(&tree, b"k", b"v");
    db.write(&batch, Durability::NoSync).unwrap();
    device.set_script(&"fail write MANIFEST count=all error=EIO".parse().unwrap());
    // Poison the database, so that its close flushes nothing. A flush would sync the log, and the
    // test would not show that the close itself does.
    db.create_tree("u", TreeOptions::new()).unwrap_err();
    assert_eq!(db.close().unwrap_err().kind(), ErrorKind::Poisoned);
    drop((tree, db));

    let lost_power = memory.crash(CrashMode::LoseUnsynced);
    let db = TestDb::on(Arc::new(lost_power)).options(options(0)).open().unwrap();
    assert_eq!(db.open_tree("t").unwrap().get(b"k").unwrap(), Some(b"v".to_vec()));
}
