//! A database that is opened and ended many times: after every kind of end, all commits exist.

use frondb::{Batch, CursorOptions, Db, Durability, Options, TreeOptions};
use frondb_testkit::TempDir;

fn key(i: u64) -> Vec<u8> {
    // Keys are spread over the key space, so that flushes reach every leaf.
    let mut key = i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().to_vec();
    key.extend_from_slice(&i.to_be_bytes());
    key
}

fn fill(db: &Db, tree: &frondb::Tree, from: u64, to: u64) {
    let mut batch = Batch::new();
    for i in from..to {
        batch.put(tree, &key(i), format!("value {i}").as_bytes());
        if batch.len() == 1000 {
            db.write(&batch, Durability::NoSync).unwrap();
            batch.clear();
        }
    }
    db.write(&batch, Durability::NoSync).unwrap();
}

fn check(tree: &frondb::Tree, n: u64) {
    for i in (0..n).step_by(997) {
        assert_eq!(tree.get(&key(i)).unwrap(), Some(format!("value {i}").into_bytes()), "{i}");
    }
    let mut keys: Vec<Vec<u8>> = (0..n).map(key).collect();
    keys.sort_unstable();
    let mut cursor = tree.cursor().unwrap();
    for key in &keys {
        assert!(cursor.next().unwrap());
        assert_eq!(cursor.key(), key);
    }
    assert!(!cursor.next().unwrap());
    let mut cursor = tree.cursor_with(CursorOptions::new()).unwrap();
    for key in keys.iter().rev() {
        assert!(cursor.prev().unwrap());
        assert_eq!(cursor.key(), key);
    }
    assert!(!cursor.prev().unwrap());
}

fn small(tree: TreeOptions) -> TreeOptions {
    tree.shape(|shape| {
        shape.leaf_bytes_min = 128 << 10;
        shape.slice_bytes_min = 4 << 10;
        shape.base_block_bytes = 4 << 10;
        shape.run_block_bytes = 8 << 10;
    })
}

fn run(threads: usize) {
    let dir = TempDir::new("lifecycle");
    let options = || {
        Options::new()
            .memory_bytes(16 << 20)
            .write_buffer_bytes(2 << 20)
            .background_threads(threads)
    };
    let n = 60_000;
    {
        let db = Db::open(dir.path(), options().create_new(true)).unwrap();
        let tree = db.create_tree("t", small(TreeOptions::new())).unwrap();
        fill(&db, &tree, 0, n / 2);
        db.wait_settled().unwrap();
        check(&tree, n / 2);
        db.close().unwrap();
        assert_eq!(tree.get(b"x").unwrap_err().kind(), frondb::ErrorKind::Closed);
    }
    {
        // This block drops the database without a close, so only the log has the rows that were not
        // flushed.
        let db = Db::open(dir.path(), options()).unwrap();
        let tree = db.open_tree("t").unwrap();
        check(&tree, n / 2);
        fill(&db, &tree, n / 2, n);
    }
    let db = Db::open(dir.path(), options()).unwrap();
    let tree = db.open_tree("t").unwrap();
    check(&tree, n);
    let report = db.verify(&mut |_, _, _| true).unwrap();
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    let stats = db.stats();
    assert!(stats.flushes > 0 || stats.entries > 0, "{stats}");
    db.close().unwrap();
}

#[test]
fn commits_are_there_with_threads() {
    run(2);
}

#[test]
fn commits_are_there_without_threads() {
    run(0);
}

#[test]
fn a_verification_leaves_out_a_tree_that_is_dropped_meanwhile() {
    let dir = TempDir::new("lifecycle");
    let db = Db::open(dir.path(), Options::new().memory_bytes(16 << 20)).unwrap();
    for name in ["a", "b", "c"] {
        db.create_tree(name, TreeOptions::new()).unwrap().put(b"k", b"v").unwrap();
    }
    db.flush().unwrap();
    let mut names = Vec::new();
    let report = db.verify(&mut |name, _, _| {
        if names.last().is_none_or(|last| last != name) {
            names.push(name.to_owned());
        }
        if names.len() == 1 {
            let _ = db.drop_tree("b");
        }
        true
    });
    assert_eq!(report.unwrap().runs, 2);
    assert_eq!(names, ["a", "c"]);
}
