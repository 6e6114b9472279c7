//! `Tree::optimize` on a device with faults. A damaged leaf stays unchanged and is counted;
//! everything else is consolidated. On a full disk the call fails, and it succeeds later.

use frondb::testing::TestDb;
use frondb::{
    Batch, Codec, Db, Durability, ErrorKind, OptimizeOptions, Options, Tree, TreeOptions,
};
use frondb_core::sync::Arc;
use frondb_testkit::MemoryDevice;
use frondb_testkit::TempDir;

use crate::support;

const ROWS: u64 = 5_000;

fn key(n: u64) -> Vec<u8> {
    format!("{n:08}").into_bytes()
}

/// Returns the value of row `n`, which no other row has.
fn value(n: u64) -> Vec<u8> {
    format!("value of {n:08}, ").repeat(5).into_bytes()
}

fn small_leaves() -> TreeOptions {
    TreeOptions::new().codec(Codec::None).shape(|shape| {
        (shape.leaf_bytes_min, shape.leaf_bytes_max) = (64 << 10, 64 << 10);
        shape.slice_bytes_min = 4 << 10;
    })
}

fn put(db: &Db, tree: &Tree, rows: impl Iterator<Item = u64>) {
    let mut batch = Batch::new();
    rows.for_each(|n| batch.put(tree, &key(n), &value(n)));
    db.write(&batch, Durability::NoSync).unwrap();
    db.flush().unwrap();
    db.wait_settled().unwrap();
}

/// Flips a bit in the data file, in the value of this row.
fn damage(dir: &TempDir, row: u64) {
    let path = dir.path().join("data-0000.fdb");
    let mut bytes = std::fs::read(&path).unwrap();
    let value = value(row);
    let at = bytes.windows(value.len()).position(|window| window == value).unwrap();
    bytes[at + 3] ^= 1;
    std::fs::write(&path, bytes).unwrap();
}

#[test]
fn a_damaged_leaf_is_counted_and_the_others_are_done() {
    for threads in [0, 2] {
        let dir = TempDir::new("optimize-damaged");
        let options = || Options::new().memory_bytes(32 << 20).background_threads(threads);
        let db = Db::open(dir.path(), options()).unwrap();
        let tree = db.create_tree("t", small_leaves()).unwrap();
        put(&db, &tree, 0..ROWS);
        db.close().unwrap();
        damage(&dir, ROWS / 2 + 1);

        let db = Db::open(dir.path(), options()).unwrap();
        let tree = db.open_tree("t").unwrap();
        // Give every leaf some work, without writing to the damaged row.
        put(&db, &tree, (0..ROWS).step_by(100));
        for _ in 0..2 {
            let report = tree.optimize(OptimizeOptions::new(), &mut |_, _| true).unwrap();
            assert_eq!(report.failed, 1, "{report:?}");
        }
        assert_eq!(tree.get(&key(7)).unwrap(), Some(value(7)));
        assert_eq!(tree.get(&key(ROWS - 1)).unwrap(), Some(value(ROWS - 1)));
        let error = tree.get(&key(ROWS / 2 + 1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        put(&db, &tree, 0..10);
        db.close().unwrap();
    }
}

#[test]
fn a_full_disk_fails_the_call_and_nothing_else() {
    let device = MemoryDevice::new();
    let db = TestDb::on(Arc::new(device.clone()))
        .options(Options::small().memory_bytes(32 << 20))
        .open()
        .unwrap();
    let tree = db.create_tree("t", small_leaves()).unwrap();
    put(&db, &tree, 0..ROWS);
    put(&db, &tree, (0..ROWS).step_by(100));
    // Fill the disk completely; only released pages may be used again.
    let filler = db.create_tree("filler", TreeOptions::new().codec(Codec::None)).unwrap();
    device.set_capacity(device.used_bytes() + (1 << 20));
    let mut n = ROWS;
    while filler.put(&key(n), &[7; 50_000]).and_then(|()| db.flush()).is_ok() {
        n += 1;
    }
    let before = support::rows(&tree);
    let full = tree.optimize(OptimizeOptions::new(), &mut |_, _| true).unwrap_err();
    assert_eq!(full.kind(), ErrorKind::NoSpace, "{full}");
    assert_eq!(support::rows(&tree), before);

    device.set_capacity(u64::MAX);
    let report = tree.optimize(OptimizeOptions::new(), &mut |_, _| true).unwrap();
    assert!(report.rewritten > 0 && report.failed == 0, "{report:?}");
    assert_eq!(support::rows(&tree), before);
    let stats = tree.stats().unwrap();
    assert_eq!(stats.raw_bytes, stats.base_raw_bytes);
    db.close().unwrap();
}
