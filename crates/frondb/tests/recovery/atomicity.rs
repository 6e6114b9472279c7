//! Rule 6: a batch in two trees stays atomic through power loss, although it was not synced and
//! only one of the trees was flushed. The reason: data and log are synced before the edit that
//! records the flush.

use frondb::testing::TestDb;
use frondb::{Batch, Db, Durability, Options, Result, SyncMode, TreeOptions};
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_testkit::MemoryDevice;
use frondb_testkit::{CrashTest, crash_while_running};

const BATCHES: u64 = 1500;

fn open(device: Arc<MemoryDevice>) -> Result<Db> {
    let options = Options::new()
        .memory_bytes(4 << 20)
        .write_buffer_bytes(64 << 10)
        .background_threads(0)
        .sync(SyncMode::Never);
    TestDb::on(device).options(options).open()
}

/// The two trees with the sizes of their values. The large one fills the write buffer and is
/// flushed again and again; the small one stays in memory and in the log.
const TREES: [(&str, usize); 2] = [("large", 400), ("small", 1)];

fn history(device: Arc<MemoryDevice>, synced: &AtomicU64) {
    let db = open(device).unwrap();
    let trees = TREES.map(|(name, bytes)| {
        (db.create_tree(name, TreeOptions::default()).unwrap(), vec![0x5a; bytes])
    });
    for i in 0..BATCHES {
        let mut batch = Batch::new();
        for (tree, value) in &trees {
            batch.put(tree, &i.to_be_bytes(), value);
        }
        db.write(&batch, Durability::NoSync).unwrap();
        if i % 400 == 399 {
            db.sync().unwrap();
            synced.store(i + 1, Ordering::Relaxed);
        }
    }
    assert!(db.stats().flushes >= 5, "the large tree is flushed: {}", db.stats());
}

/// Returns the numbers of the batches whose row is in this tree; none if the tree does not exist
/// yet.
fn found(db: &Db, tree: &str) -> Vec<u64> {
    let Ok(tree) = db.open_tree(tree) else { return Vec::new() };
    let mut cursor = tree.cursor().unwrap();
    let mut numbers = Vec::new();
    while cursor.next().unwrap() {
        numbers.push(u64::from_be_bytes(cursor.key().try_into().unwrap()));
    }
    numbers
}

#[test]
fn unsynced_batches_over_two_trees_are_lost_from_the_end_and_atomically() {
    let report = crash_while_running(
        CrashTest::new(150, 6),
        || AtomicU64::new(0),
        history,
        |crash, synced| {
            let db = open(crash.device).unwrap();
            let [large, small] = TREES.map(|(name, _)| found(&db, name));
            assert!(large == small, "{} batches of one, {} of the other", large.len(), small.len());
            assert!(large.iter().copied().eq(0..large.len() as u64), "a batch in between is lost");
            let synced = synced.load(Ordering::Relaxed);
            assert!(large.len() as u64 >= synced, "{} of {synced} synced ones", large.len());
        },
    );
    println!("{report}");
}
