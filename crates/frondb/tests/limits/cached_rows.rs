//! Data larger than the memory: rows that are often looked up are found without a read of the
//! device, and a change of such a row is visible immediately.

use frondb::{Batch, Db, Durability, Options, Tree, TreeOptions};
use frondb_core::prng::Prng;
use frondb_testkit::TempDir;

const ROWS: u64 = 300_000;
/// One row in this many is looked up often, so these rows are in different blocks.
const HOT_STEP: u64 = 600;

fn value(seed: u64, row: u64) -> Vec<u8> {
    let mut prng = Prng::new(seed ^ row << 32);
    (0..12).flat_map(|_| prng.next_u64().to_le_bytes()).collect()
}

fn put_all(db: &Db, tree: &Tree, seed: u64, rows: impl Iterator<Item = u64>) {
    let mut batch = Batch::new();
    for row in rows {
        batch.put(tree, &row.to_be_bytes(), &value(seed, row));
        if batch.len() == 500 {
            db.write(&batch, Durability::NoSync).unwrap();
            batch.clear();
        }
    }
    db.write(&batch, Durability::NoSync).unwrap();
}

fn get(tree: &Tree, row: u64) -> Option<Vec<u8>> {
    tree.get(&row.to_be_bytes()).unwrap()
}

#[test]
fn rows_that_are_looked_up_often_need_no_reads_and_no_answer_is_old() {
    let dir = TempDir::new("cached-rows");
    let options = Options::new().memory_bytes(16 << 20).background_threads(0);
    let db = Db::open(dir.path(), options).unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    put_all(&db, &tree, 1, 0..ROWS);
    db.flush().unwrap();
    let hot = || (0..ROWS).step_by(HOT_STEP as usize);
    // Fill the cache, and then read blocks for which it has no space.
    for row in (0..ROWS).step_by(50).chain(hot()) {
        assert_eq!(get(&tree, row).unwrap(), value(1, row));
    }
    let before = db.stats();
    assert!(before.row_cache_bytes > 0, "{before:?}");
    let rounds = 20;
    for round in 0..rounds {
        // Read other rows, so that the blocks of the hot rows leave the cache.
        for row in (round..ROWS).step_by(400) {
            assert_eq!(get(&tree, row).unwrap(), value(1, row));
        }
        hot().for_each(|row| assert_eq!(get(&tree, row).unwrap(), value(1, row)));
    }
    let after = db.stats();
    let hits = after.row_cache_hits - before.row_cache_hits;
    assert!(hits > rounds * (ROWS / HOT_STEP) / 2, "{hits} hits: {after:?}");

    put_all(&db, &tree, 2, hot());
    hot().for_each(|row| assert_eq!(get(&tree, row).unwrap(), value(2, row)));
    db.flush().unwrap();
    hot().for_each(|row| assert_eq!(get(&tree, row).unwrap(), value(2, row)));
    let snapshot = db.snapshot().unwrap();
    for row in hot() {
        tree.delete(&row.to_be_bytes()).unwrap();
    }
    for row in hot() {
        assert_eq!(get(&tree, row), None);
        let old = tree.get_at(&row.to_be_bytes(), &snapshot).unwrap();
        assert_eq!(old.unwrap(), value(2, row));
    }
    drop((snapshot, tree));
    db.close().unwrap();
}
