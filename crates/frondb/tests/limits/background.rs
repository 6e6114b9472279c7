//! Limits of background work that change while a database is open: bytes per second, the checkpoint
//! period, and the files that the database keeps.

use std::time::Duration;

use frondb::testing::TestDb;
use frondb::{Batch, Db, Durability, ErrorKind, FileKind, Options, TreeOptions};
use frondb_core::clock::{Clock, ManualClock, Nanos, SharedClock};
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_device::SharedDevice;
use frondb_testkit::MemoryDevice;
use frondb_testkit::TempDir;

const LIMIT: u64 = 1 << 20;

/// Memory of a database with threads: just enough that the rows of [`fill`] fit into the write
/// buffer and no write waits.
const MEMORY: u64 = 24 << 20;

/// Writes about 4 MiB that do not compress.
fn fill(db: &Db, seed: u64) {
    println!("seed {seed}");
    let tree = db.create_tree(&format!("t{seed}"), TreeOptions::new()).unwrap();
    let mut prng = Prng::new(seed);
    let mut batch = Batch::new();
    for key in 0..4096_u64 {
        let value: Vec<u8> = (0..128).flat_map(|_| prng.next_u64().to_le_bytes()).collect();
        batch.put(&tree, &key.to_be_bytes(), &value);
        if batch.len() == 256 {
            db.write(&batch, Durability::NoSync).unwrap();
            batch.clear();
        }
    }
}

#[test]
fn flushes_and_merges_keep_to_the_limit() {
    let clock = Arc::new(ManualClock::stepping());
    let (shared_clock, device): (SharedClock, SharedDevice) =
        (clock.clone(), Arc::new(MemoryDevice::new()));
    let options = Options::new().memory_bytes(16 << 20).background_threads(0);
    let options = options.background_bytes_per_second(LIMIT);
    let db = TestDb::on(device).options(options).clock(shared_clock).open().unwrap();
    let run = |seed| {
        let (begun, before) = (clock.now(), db.stats());
        fill(&db, seed);
        db.flush().unwrap();
        while db.run_one(true) {}
        let after = db.stats();
        let bytes = |stats: &frondb::Stats| stats.flush_bytes + stats.merge_bytes;
        (bytes(&after) - bytes(&before), clock.now().since(begun))
    };
    let (written, took) = run(1);
    assert!(written > 4 << 20, "{written}");
    // Neither the bytes of the first quarter of a second nor the last step, after which no job
    // waits, are delayed.
    let least = Duration::from_secs_f64((written - (1 << 20)) as f64 / LIMIT as f64);
    assert!(took >= least, "{written} bytes in {took:?}");
    assert!(db.stats().rate_limit_nanos > 0);

    db.set_background_bytes_per_second(0).unwrap();
    let (written, took) = run(2);
    assert!(written > 4 << 20 && took < least / 2, "{written} bytes in {took:?}");
    assert!(clock.now() > Nanos::ZERO);
    db.close().unwrap();
}

/// At one byte a second the flush would take weeks; the close must not wait for it.
#[test]
fn a_limit_does_not_hold_up_the_close() {
    let dir = TempDir::new("limit-close");
    let options = || Options::new().memory_bytes(MEMORY).background_threads(2);
    let db = Db::open(dir.path(), options().background_bytes_per_second(1)).unwrap();
    fill(&db, 3);
    db.close().unwrap();
    let error = db.set_background_bytes_per_second(5).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);

    let db = Db::open(dir.path(), options()).unwrap();
    assert_eq!(db.recovery().records, 0, "the close has flushed all of it");
    let tree = db.open_tree("t3").unwrap();
    assert_eq!(tree.get(&4095_u64.to_be_bytes()).unwrap().unwrap().len(), 1024);
    db.close().unwrap();
}

/// Lifts the limit while a flush waits for it.
#[test]
fn lifting_a_limit_wakes_the_work_that_waits() {
    let dir = TempDir::new("limit-lifted");
    let options = Options::new().memory_bytes(MEMORY).background_threads(1);
    let db = Db::open(dir.path(), options.background_bytes_per_second(1)).unwrap();
    fill(&db, 4);
    std::thread::scope(|scope| {
        let flush = scope.spawn(|| db.flush());
        while db.stats().running_jobs == 0 {
            std::thread::yield_now();
        }
        assert!(!flush.is_finished(), "the limit holds up the flush");
        db.set_background_bytes_per_second(0).unwrap();
        flush.join().unwrap().unwrap();
    });
    assert!(db.stats().data_used_bytes >= 4 << 20, "the flush has written the rows");
    db.close().unwrap();
}

#[test]
fn the_files_of_a_database_are_listed() {
    let (dir, log) = (TempDir::new("files"), TempDir::new("files-log"));
    std::fs::remove_dir(log.path()).unwrap();
    // Without threads nothing changes between the two calls.
    let options = Options::new().memory_bytes(16 << 20).background_threads(0);
    let options = options.log_dir(log.path());
    let db = Db::open(dir.path(), options).unwrap();
    fill(&db, 5);
    db.flush().unwrap();
    let files = db.files().unwrap();
    let mut on_disk = Vec::new();
    for folder in [dir.path(), log.path()] {
        for entry in std::fs::read_dir(folder).unwrap() {
            on_disk.push(entry.unwrap().path().display().to_string());
        }
    }
    on_disk.sort();
    let mut listed: Vec<String> = files.iter().map(|file| file.path.clone()).collect();
    listed.sort();
    assert_eq!(listed, on_disk);
    let sum =
        |kind| files.iter().filter(|file| file.kind == kind).map(|file| file.bytes).sum::<u64>();
    assert!(sum(FileKind::Data) >= 4 << 20);
    assert!(sum(FileKind::Log) > 0 && sum(FileKind::Manifest) > 0);
    let data = files.iter().find(|file| file.kind == FileKind::Data).unwrap();
    assert!(data.allocated_bytes > 0);
    db.close().unwrap();
    assert_eq!(db.files().unwrap_err().kind(), ErrorKind::Closed);
}
