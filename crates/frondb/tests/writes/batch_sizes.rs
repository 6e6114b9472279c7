//! A batch may take at most a quarter of the memory, but the longest possible value is always
//! accepted.

use frondb::{Batch, Db, Durability, ErrorKind, Options, TreeOptions};
use frondb_testkit::TempDir;

/// The smallest memory option without background threads.
const MEMORY_BYTES: u64 = 4 << 20;

fn options() -> Options {
    Options::new().memory_bytes(MEMORY_BYTES).background_threads(0)
}

#[test]
fn a_batch_that_is_too_large_changes_nothing() {
    let dir = TempDir::new("batch_sizes");
    let db = Db::open(dir.path(), options()).unwrap();
    assert_eq!(db.batch_bytes_max(), MEMORY_BYTES / 4);
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let mut batch = Batch::new();
    let mut entries = 0u32;
    let mut before = batch.clone();
    while batch.memory_bytes() as u64 <= db.batch_bytes_max() {
        before = batch.clone();
        batch.put(&tree, &entries.to_be_bytes(), &[1; 100]);
        entries += 1;
    }
    let error = db.write(&batch, Durability::NoSync).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("at most 1048576 bytes"), "{error}");
    assert!(!tree.cursor().unwrap().first().unwrap(), "nothing changed");
    // With one entry less the batch fits, and so do any number of such batches one after another.
    for _ in 0..8 {
        db.write(&before, Durability::NoSync).unwrap();
    }
    let mut cursor = tree.cursor().unwrap();
    let mut found = 0;
    while cursor.next().unwrap() {
        found += 1;
    }
    assert_eq!(found, entries - 1);
    drop(cursor);
    db.close().unwrap();
}

#[test]
fn empty_messages_count_too() {
    let dir = TempDir::new("batch_sizes");
    let db = Db::open(dir.path(), options()).unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let mut batch = Batch::new();
    for i in 0..100_000u32 {
        batch.delete(&tree, &i.to_be_bytes());
    }
    assert_eq!(db.write(&batch, Durability::Sync).unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn the_longest_key_and_value_are_always_possible() {
    let dir = TempDir::new("batch_sizes");
    let db = Db::open(dir.path(), options()).unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let (key, value) = (vec![1; 32 << 10], vec![2; 64 << 20]);
    tree.put(&key, &value).unwrap();
    tree.put(b"inline", &value[..64 << 10]).unwrap();
    assert!(tree.get(&key).unwrap().unwrap() == value);
    db.close().unwrap();
    drop((tree, db));
    let db = Db::open(dir.path(), options()).unwrap();
    let tree = db.open_tree("t").unwrap();
    assert!(tree.get(&key).unwrap().unwrap() == value);
    assert_eq!(tree.get(b"inline").unwrap().unwrap().len(), 64 << 10);
}
