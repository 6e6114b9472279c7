//! The memory option of an open database changes. The memory in use falls immediately or grows
//! again, and no write is lost.

use frondb::{Batch, Db, Durability, ErrorKind, Options, Tree, TreeOptions};
use frondb_core::prng::Prng;
use frondb_testkit::TempDir;

const MIB: u64 = 1 << 20;
const KEYS: u64 = 24 << 10;
const VALUE_BYTES: usize = 1024;

/// Writes 24 MiB of values that do not compress.
fn fill(db: &Db, tree: &Tree, seed: u64) {
    println!("seed {seed}");
    let mut batch = Batch::new();
    for key in 0..KEYS {
        batch.put(tree, &key.to_be_bytes(), &value(seed, key));
        if batch.len() == 128 {
            db.write(&batch, Durability::NoSync).unwrap();
            batch.clear();
        }
    }
}

fn value(seed: u64, key: u64) -> Vec<u8> {
    let mut prng = Prng::new(seed ^ key << 32);
    (0..VALUE_BYTES / 8).flat_map(|_| prng.next_u64().to_le_bytes()).collect()
}

fn read_all(tree: &Tree, seed: u64) {
    for key in 0..KEYS {
        assert_eq!(tree.get(&key.to_be_bytes()).unwrap().unwrap(), value(seed, key));
    }
}

#[test]
fn the_cache_falls_at_once_and_rises_again() {
    let dir = TempDir::new("memory-cache");
    let options = Options::new().memory_bytes(64 * MIB).background_threads(0);
    let db = Db::open(dir.path(), options).unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    fill(&db, &tree, 1);
    db.flush().unwrap();
    read_all(&tree, 1);
    let large = db.stats();
    assert!(large.cache_bytes > 20 * MIB, "{large:?}");

    db.set_memory_bytes(8 * MIB).unwrap();
    let small = db.stats();
    assert_eq!((db.memory_bytes(), small.memory_total), (8 * MIB, 8 * MIB));
    assert!(small.memory_used <= 8 * MIB && small.cache_bytes < 8 * MIB, "{small:?}");
    read_all(&tree, 1);
    let small = db.stats();
    assert!(small.memory_used <= 8 * MIB, "{small:?}");

    db.set_memory_bytes(64 * MIB).unwrap();
    read_all(&tree, 1);
    let large = db.stats();
    assert!(large.cache_bytes > 20 * MIB, "{large:?}");
    // Now all data is cached, so nothing more is read from the device.
    read_all(&tree, 1);
    assert_eq!(db.stats().cache_misses, large.cache_misses);
    db.close().unwrap();
}

#[test]
fn writes_that_are_too_many_now_are_flushed() {
    let dir = TempDir::new("memory-writes");
    let options = Options::new().memory_bytes(256 * MIB).background_threads(0);
    let db = Db::open(dir.path(), options).unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    fill(&db, &tree, 2);
    let before = db.stats();
    assert!(before.memtable_bytes > 24 * MIB && before.flushes == 0, "{before:?}");
    assert_eq!(db.batch_bytes_max(), 64 * MIB);
    db.set_memory_bytes(16 * MIB).unwrap();
    let after = db.stats();
    assert!(after.memtable_bytes < 4 * MIB && after.flushes > 0, "{after:?}");
    assert!(after.memory_used <= 16 * MIB, "{after:?}");
    assert_eq!(db.batch_bytes_max(), 4 * MIB);
    // The write buffer keeps its small size.
    fill(&db, &tree, 3);
    assert!(db.stats().memtable_bytes <= 4 * MIB + MIB, "{:?}", db.stats());
    read_all(&tree, 3);
    db.close().unwrap();
}

/// A transaction that began with much memory ends with little: its writes spill to disk.
#[test]
fn a_transaction_under_way_spills_then() {
    let dir = TempDir::new("memory-transaction");
    let options = Options::new().memory_bytes(256 * MIB).background_threads(0);
    let db = Db::open(dir.path(), options).unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let txn = db.begin(frondb::TransactionOptions::default()).unwrap();
    for key in 0..8192_u64 {
        txn.put(&tree, &key.to_be_bytes(), &value(4, key)).unwrap();
    }
    assert_eq!(db.stats().spills, 0);
    db.set_memory_bytes(16 * MIB).unwrap();
    for key in 8192..KEYS {
        txn.put(&tree, &key.to_be_bytes(), &value(4, key)).unwrap();
    }
    let stats = db.stats();
    assert!(stats.spills > 0 && stats.memory_used <= 20 * MIB, "{stats:?}");
    txn.commit().unwrap();
    read_all(&tree, 4);
    db.close().unwrap();
}

/// Writers, readers and background work continue while the memory option changes all the time.
#[test]
fn the_memory_option_changes_beside_readers_and_writers() {
    let dir = TempDir::new("memory-load");
    let options = Options::new().memory_bytes(32 * MIB).background_threads(2);
    let db = Db::open(dir.path(), options).unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            fill(&db, &tree, 5);
            read_all(&tree, 5);
        });
        let mut prng = Prng::new(6);
        while !load.is_finished() {
            db.set_memory_bytes((16 + prng.next_u64() % 48) * MIB).unwrap();
        }
        load.join().unwrap();
    });
    db.set_memory_bytes(16 * MIB).unwrap();
    db.flush().unwrap();
    read_all(&tree, 5);
    let used = db.stats().memory_used;
    assert!(used <= 20 * MIB, "{used} bytes of memory after the last change");
    db.close().unwrap();
}

/// A memory option below what the process needs is refused; the error names the smallest possible
/// value.
#[test]
fn less_than_the_process_takes_is_refused() {
    let dir = TempDir::new("memory-least");
    let error = Db::open(dir.path(), Options::new().memory_bytes(16 * MIB - 1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("must be at least 16777216"), "{error}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "something was made");
    let db = Db::open(dir.path(), Options::new().memory_bytes(16 * MIB)).unwrap();
    assert_eq!(db.set_memory_bytes(8 * MIB).unwrap_err().kind(), ErrorKind::Invalid);
    db.close().unwrap();
}

#[test]
fn a_memory_change_that_does_not_fit_is_refused() {
    let dir = TempDir::new("memory-refused");
    let options = Options::new().memory_bytes(32 * MIB).write_buffer_bytes(8 * MIB);
    let db = Db::open(dir.path(), options.background_threads(0)).unwrap();
    for bytes in [1, 4 * MIB - 1, 15 * MIB] {
        assert_eq!(db.set_memory_bytes(bytes).unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(db.memory_bytes(), 32 * MIB);
    }
    db.set_memory_bytes(16 * MIB).unwrap();
    db.set_memory_bytes(0).unwrap();
    let default = TempDir::new("memory-default");
    let other = Db::open(default.path(), Options::new().background_threads(0)).unwrap();
    assert_eq!(db.memory_bytes(), other.memory_bytes());
    other.close().unwrap();
    db.close().unwrap();
    assert_eq!(db.set_memory_bytes(16 * MIB).unwrap_err().kind(), ErrorKind::Closed);
}
