//! The same rows are updated again and again. The cost of reads stays bounded, because reads pay
//! for merges of the small runs that such updates leave above a base.

use frondb::testing::TestDb;
use frondb::{Batch, Db, Durability, Options, Tree, TreeOptions};
use frondb_core::sync::Arc;
use frondb_testkit::MemoryDevice;

const ROWS: u64 = 20_000;
/// One row in this many is hot.
const HOT_PART: u64 = 100;
/// Number of flushes of hot rows.
const FLUSHES: u64 = 5;

fn open() -> (Db, Tree) {
    let options = Options::new().memory_bytes(32 << 20).background_threads(0);
    let db = TestDb::on(Arc::new(MemoryDevice::new())).options(options).still().open().unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    put(&db, &tree, 1, 0);
    settle(&db);
    for round in 1..=FLUSHES {
        put(&db, &tree, HOT_PART, round);
        settle(&db);
    }
    assert_eq!(runs(&tree), FLUSHES, "the schedule allows this many runs");
    (db, tree)
}

/// Writes each row whose number is a multiple of `part`.
fn put(db: &Db, tree: &Tree, part: u64, round: u64) {
    let mut batch = Batch::new();
    for row in (0..ROWS).step_by(part as usize) {
        batch.put(tree, &row.to_be_bytes(), &[round as u8; 100]);
    }
    db.write(&batch, Durability::NoSync).unwrap();
}

fn settle(db: &Db) {
    db.flush().unwrap();
    while db.run_one(false) {}
}

/// Returns the number of runs above the base of the only leaf.
fn runs(tree: &Tree) -> u64 {
    let stats = tree.stats().unwrap();
    assert_eq!(stats.leaves, 1);
    stats.views - 1
}

fn check(tree: &Tree) {
    for row in 0..ROWS {
        let round = if row.is_multiple_of(HOT_PART) { FLUSHES } else { 0 };
        assert_eq!(tree.get(&row.to_be_bytes()).unwrap(), Some(vec![round as u8; 100]));
    }
}

#[test]
fn lookups_pay_for_a_merge_of_the_runs() {
    let (db, tree) = open();
    let merges = db.stats().merges;
    // Each lookup of a cold row searches all runs above the base in vain.
    check(&tree);
    while db.run_one(false) {}
    assert_eq!(runs(&tree), 1);
    assert_eq!(db.stats().merges, merges + 1);
    assert_eq!(db.stats().rewrites + db.stats().scan_rewrites, 0, "the base stays");
    check(&tree);
    while db.run_one(false) {}
    assert_eq!(db.stats().merges, merges + 1, "a single run costs no merge");
}

#[test]
fn several_keys_in_a_call_pay_as_well() {
    let (db, tree) = open();
    let keys: Vec<_> = (0..ROWS).map(u64::to_be_bytes).collect();
    for keys in keys.chunks(100) {
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        assert!(tree.multi_get(&keys).unwrap().iter().all(Option::is_some));
    }
    while db.run_one(false) {}
    assert_eq!(runs(&tree), 1);
}

#[test]
fn short_scans_pay_for_a_merge_of_the_runs_before_a_rewrite() {
    let (db, tree) = open();
    let mut scans = 0;
    while runs(&tree) > 1 {
        let mut cursor = tree.cursor().unwrap();
        assert!(cursor.seek(&(scans * 7 % ROWS).to_be_bytes()).unwrap());
        drop(cursor);
        while db.run_one(false) {}
        scans += 1;
        assert!(scans < 100, "{} runs after {scans} scans", runs(&tree));
    }
    assert_eq!(db.stats().rewrites + db.stats().scan_rewrites, 0, "the base stays");
    check(&tree);
}
