//! The memtables of a dropped tree that a cursor still reads take memory that no flush will free.
//! Writers must not wait for a flush of this memory.

use frondb::testing::TestDb;
use frondb::{Batch, Cursor, Db, Durability, Options, Tree, TreeOptions};
use frondb_core::sync::Arc;
use frondb_testkit::MemoryDevice;

const WRITE_BUFFER: u64 = 4 << 20;

fn open(threads: usize) -> Db {
    let options = Options::new()
        .memory_bytes(16 << 20)
        .write_buffer_bytes(WRITE_BUFFER)
        .background_threads(threads)
        .reserve_bytes(0);
    let device = Arc::new(MemoryDevice::new());
    TestDb::on(device).options(options).open().unwrap()
}

/// Writes about `bytes` bytes of rows. The keys descend, because the engine flushes a tree with
/// ascending keys early.
fn fill(db: &Db, tree: &Tree, bytes: u64) {
    for i in (0..bytes / 4096).rev() {
        let mut batch = Batch::new();
        batch.put(tree, &i.to_be_bytes(), &[7; 4000]);
        db.write(&batch, Durability::NoSync).unwrap();
    }
}

/// Creates a tree with half a write buffer of rows in memory, and drops the tree while a cursor
/// reads it. Returns the cursor, which continues to work.
fn drop_under_a_cursor(db: &Db, name: &str) -> Cursor {
    let tree = db.create_tree(name, TreeOptions::new()).unwrap();
    fill(db, &tree, WRITE_BUFFER / 2);
    let mut cursor = tree.cursor().unwrap();
    assert!(cursor.next().unwrap());
    db.drop_tree(name).unwrap();
    cursor
}

#[test]
fn a_dropped_tree_does_not_fill_the_write_buffer() {
    let db = open(0);
    let mut cursor = drop_under_a_cursor(&db, "dropped");
    let tree = db.create_tree("other", TreeOptions::new()).unwrap();
    fill(&db, &tree, WRITE_BUFFER / 2);
    assert_eq!(db.stats().flushes, 0, "the write buffer is not full yet");
    assert!(cursor.next().unwrap(), "the cursor reads what was dropped");
}

#[test]
fn writers_do_not_wait_for_memtables_of_dropped_trees() {
    let db = open(1);
    let cursors: Vec<Cursor> =
        (0..4).map(|i| drop_under_a_cursor(&db, &format!("dropped {i}"))).collect();
    let tree = db.create_tree("other", TreeOptions::new()).unwrap();
    fill(&db, &tree, WRITE_BUFFER * 4);
    assert!(db.stats().flushes > 0, "the tree that is left is flushed");
    drop(cursors);
    db.close().unwrap();
}
