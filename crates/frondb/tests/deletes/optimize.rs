//! `Tree::optimize`: everything that was committed before the call becomes one run in each leaf,
//! without deleted and overwritten rows, whatever runs concurrently. Every reader sees exactly its
//! rows.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use frondb::{
    Batch, Codec, CursorOptions, Db, Durability, ErrorKind, OptimizeOptions, OptimizeReport,
    Options, Tree, TreeOptions,
};
use frondb_core::prng::Prng;
use frondb_testkit::seed::from_env;
use frondb_testkit::{TempDir, functions};

use crate::support::{Rows, rows};

const KEYS: u64 = 20_000;

fn key(n: u64) -> Vec<u8> {
    format!("{n:08}").into_bytes()
}

/// Opens a database whose tree gets many leaves below inner nodes with buffered runs.
fn open(dir: &TempDir, threads: usize) -> (Db, Tree) {
    let options = Options::new().memory_bytes(32 << 20).background_threads(threads);
    let options = options.write_buffer_bytes(64 << 10);
    let db = Db::open(dir.path(), options).unwrap();
    let tree = db.create_tree("t", small_leaves()).unwrap();
    (db, tree)
}

fn small_leaves() -> TreeOptions {
    TreeOptions::new().codec(Codec::None).fanout(4).shape(|shape| {
        (shape.leaf_bytes_min, shape.leaf_bytes_max) = (64 << 10, 64 << 10);
        shape.slice_bytes_min = 4 << 10;
    })
}

/// Makes puts, deletes and range deletes at random keys, in the tree and in the model.
fn write(db: &Db, tree: &Tree, random: &mut Prng, model: &mut Rows, batches: u64) {
    for _ in 0..batches {
        let mut batch = Batch::new();
        for _ in 0..200 {
            let at = random.below(KEYS);
            match random.below(20) {
                0 => {
                    let (lo, hi) = (key(at), key(at + random.below(30)));
                    batch.delete_range(tree, &lo, Some(&hi));
                    model.retain(|key, _| *key < lo || *key >= hi);
                }
                1..=6 => {
                    batch.delete(tree, &key(at));
                    model.remove(&key(at));
                }
                _ => {
                    let value = vec![random.below(256) as u8; 100];
                    batch.put(tree, &key(at), &value);
                    model.insert(key(at), value);
                }
            }
        }
        db.write(&batch, Durability::NoSync).unwrap();
    }
}

fn optimize(tree: &Tree, options: OptimizeOptions) -> OptimizeReport {
    tree.optimize(options, &mut |_, _| true).unwrap()
}

/// Checks that the tree holds its rows and no other messages.
fn assert_consolidated(tree: &Tree, model: &Rows) {
    let stats = tree.stats().unwrap();
    assert_eq!((stats.entries, stats.deletes), (model.len() as u64, 0));
    assert_eq!(stats.raw_bytes, stats.base_raw_bytes, "a leaf has runs above its base");
    assert_eq!(stats.memtable_entries, 0);
    assert_eq!(rows(tree), *model);
}

/// Random histories, with and without background threads. A second call of optimize rewrites only
/// leaves that were joined after the first, and a third call rewrites none.
#[test]
fn only_rows_are_left() {
    let seed = from_env("FRONDB_SEED", 1);
    println!("seed {seed}");
    for threads in [0, 2] {
        let dir = TempDir::new("optimize");
        let (db, tree) = open(&dir, threads);
        let (mut random, mut model) = (Prng::new(seed), Rows::new());
        let mut height = 0;
        for batches in [150, 150, 3, 3] {
            write(&db, &tree, &mut random, &mut model, batches);
            db.wait_settled().unwrap();
            height = height.max(tree.stats().unwrap().height);
            let report = optimize(&tree, OptimizeOptions::new());
            // With threads, the engine itself may have rewritten most leaves before the call.
            assert!(report.rewritten > 5 || threads > 0, "{report:?}");
            assert!(report.rewritten <= report.leaves, "{report:?}");
            assert_eq!((report.held, report.failed), (0, 0));
            db.wait_settled().unwrap();
            assert_consolidated(&tree, &model);

            let written = db.stats().merged_entries;
            let again = optimize(&tree, OptimizeOptions::new());
            assert!(again.rewritten <= joined(&report, &tree), "{report:?}, then {again:?}");
            if threads == 0 && again.rewritten == 0 {
                assert_eq!(db.stats().merged_entries, written);
            }
            assert_eq!(optimize(&tree, OptimizeOptions::new()).rewritten, 0);
        }
        assert!(height >= 3, "the tree has {height} levels, so no inner node has buffered");
        assert!(tree.verify(&mut |_, _| true).unwrap().faults.is_empty());
        db.close().unwrap();
    }
}

/// Returns the number of leaves that were joined since an optimize. The base of a joined leaf has
/// two views.
fn joined(report: &OptimizeReport, tree: &Tree) -> u64 {
    report.leaves.saturating_sub(tree.stats().unwrap().leaves)
}

/// After deletes from the left, the base of a leaf begins inside its run.
#[test]
fn a_truncated_leaf_is_rewritten() {
    const ROWS: u64 = 100_000;
    let dir = TempDir::new("optimize-truncated");
    let options = Options::new().memory_bytes(32 << 20).background_threads(0);
    let db = Db::open(dir.path(), options).unwrap();
    let tree = db.create_tree("t", TreeOptions::new().codec(Codec::None)).unwrap();
    let mut model: Rows = (0..ROWS).map(|n| (key(n), vec![7; 40])).collect();
    put_all(&db, &tree, &model);
    // So few deletes that the leaf is not worth a rewrite.
    let mut batch = Batch::new();
    for n in 0..ROWS / 5 {
        batch.delete(&tree, &key(n));
        model.remove(&key(n));
    }
    db.write(&batch, Durability::NoSync).unwrap();
    db.flush().unwrap();
    db.wait_settled().unwrap();
    assert!(db.stats().prefix_truncations > 0);
    let before = tree.stats().unwrap().disk_bytes;
    let report = optimize(&tree, OptimizeOptions::new());
    assert!(report.rewritten > 0, "{report:?}");
    assert_consolidated(&tree, &model);
    assert!(report.disk_bytes.1 < before, "{before} bytes, then {report:?}");
    db.close().unwrap();
}

fn put_all(db: &Db, tree: &Tree, rows: &Rows) {
    for part in rows.iter().collect::<Vec<_>>().chunks(1000) {
        let mut batch = Batch::new();
        part.iter().for_each(|(key, value)| batch.put(tree, key, value));
        db.write(&batch, Durability::NoSync).unwrap();
    }
    db.flush().unwrap();
    db.wait_settled().unwrap();
}

#[test]
fn a_fraction_ends_in_the_middle() {
    let dir = TempDir::new("optimize-fraction");
    let (db, tree) = open(&dir, 0);
    let mut model = Rows::new();
    for n in 0..KEYS {
        model.insert(key(n), vec![7; 100]);
    }
    put_all(&db, &tree, &model);
    let mut batch = Batch::new();
    for n in (0..KEYS).step_by(40) {
        batch.put(&tree, &key(n), b"new");
        model.insert(key(n), b"new".to_vec());
    }
    db.write(&batch, Durability::NoSync).unwrap();
    let leaves = tree.stats().unwrap().leaves;
    for (fraction, percent) in [(0.25, 25), (0.5, 50)] {
        let report = optimize(&tree, OptimizeOptions::new().fraction(fraction));
        let done = report.leaves * 100 / leaves;
        assert!(done.abs_diff(percent) <= 10, "{done} % of the leaves for {fraction}");
        // The second call rewrites only a quarter too: the first call has rewritten the other.
        assert!((report.rewritten * 100 / leaves).abs_diff(25) <= 10, "{report:?}");
    }
    assert_eq!(rows(&tree), model);
    for wrong in [0.0, -1.0, 1.5, f64::NAN, f64::INFINITY] {
        let options = OptimizeOptions::new().fraction(wrong);
        let error = tree.optimize(options, &mut |_, _| true).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{wrong}");
    }
    db.close().unwrap();
}

#[test]
fn a_snapshot_keeps_its_rows() {
    for threads in [0, 2] {
        snapshot_keeps_its_rows(threads);
    }
}

/// A rewrite keeps updates that it cannot apply, also the only message of a key. The leaf is
/// neither damaged nor blocked, so the report counts it as held.
#[test]
fn updates_whose_function_fails_are_reported_as_held() {
    for has_value in [false, true] {
        let dir = TempDir::new("optimize-updates");
        let options = Options::new().memory_bytes(32 << 20).update_fn(functions::Add);
        let db = Db::open(dir.path(), options).unwrap();
        let tree = db.create_tree("t", TreeOptions::new().update_fn("add", 1)).unwrap();
        if has_value {
            tree.put(b"a", &[0; 8]).unwrap();
        }
        tree.update(b"a", b"no number").unwrap();
        tree.put(b"b", b"2").unwrap();
        for _ in 0..2 {
            let report = optimize(&tree, OptimizeOptions::new());
            assert_eq!((report.rewritten, report.held, report.failed), (1, 1, 0), "{report:?}");
            assert_eq!(tree.get(b"a").unwrap_err().kind(), ErrorKind::Invalid);
        }
        tree.put(b"a", b"3").unwrap();
        let report = optimize(&tree, OptimizeOptions::new());
        assert_eq!((report.rewritten, report.held, report.failed), (1, 0, 0), "{report:?}");
        db.close().unwrap();
    }
}

fn snapshot_keeps_its_rows(threads: usize) {
    let dir = TempDir::new("optimize-snapshot");
    let (db, tree) = open(&dir, threads);
    let (mut random, mut model) = (Prng::new(2), Rows::new());
    write(&db, &tree, &mut random, &mut model, 100);
    let (snapshot, old) = (db.snapshot().unwrap(), model.clone());
    write(&db, &tree, &mut random, &mut model, 100);

    let report = optimize(&tree, OptimizeOptions::new());
    assert!(report.held > 0 && report.failed == 0, "{report:?}");
    assert_eq!(rows(&tree), model);
    let mut cursor = tree.cursor_with(CursorOptions::new().at(&snapshot)).unwrap();
    let mut seen = BTreeMap::new();
    while cursor.next().unwrap() {
        seen.insert(cursor.key().to_vec(), cursor.value().unwrap().to_vec());
    }
    assert_eq!(seen, old);
    drop((cursor, snapshot));

    let report = optimize(&tree, OptimizeOptions::new());
    assert!(report.rewritten > 0 && report.held == 0, "{report:?}");
    db.wait_settled().unwrap();
    assert_consolidated(&tree, &model);
    db.close().unwrap();
}

#[test]
fn a_cancelled_optimize_keeps_what_it_has_done() {
    let dir = TempDir::new("optimize-cancelled");
    let (db, tree) = open(&dir, 0);
    let (mut random, mut model) = (Prng::new(3), Rows::new());
    write(&db, &tree, &mut random, &mut model, 150);
    db.wait_settled().unwrap();
    let cancelled = tree.optimize(OptimizeOptions::new(), &mut |done, _| done < 10).unwrap_err();
    assert_eq!(cancelled.kind(), ErrorKind::Cancelled);
    assert_eq!(rows(&tree), model);
    // The cancelled call has left no job in the queue, so no leaf is rewritten now.
    db.wait_settled().unwrap();
    let written = db.stats().merged_entries;
    while db.run_one(false) {}
    assert_eq!(db.stats().merged_entries, written);
    let report = optimize(&tree, OptimizeOptions::new());
    assert!(report.rewritten + 10 <= report.leaves, "{report:?}");
    assert_consolidated(&tree, &model);
    db.close().unwrap();
}

#[test]
fn an_optimize_ends_with_its_tree_and_its_database() {
    let dir = TempDir::new("optimize-dropped");
    let (db, tree) = open(&dir, 0);
    let other = db.create_tree("other", small_leaves()).unwrap();
    let (mut random, mut model) = (Prng::new(4), Rows::new());
    write(&db, &tree, &mut random, &mut model, 100);
    write(&db, &other, &mut random, &mut Rows::new(), 100);
    let mut is_dropped = false;
    let error = tree.optimize(OptimizeOptions::new(), &mut |_, _| {
        if !std::mem::replace(&mut is_dropped, true) {
            db.drop_tree("t").unwrap();
        }
        true
    });
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);
    db.close().unwrap();
    let error = other.optimize(OptimizeOptions::new(), &mut |_, _| true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
}

/// Stops the writers when dropped: after the last optimize of a thread, or in a panic.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Two optimizes and two writers, each with its own keys. The optimizes end although the writers
/// continue.
#[test]
fn optimize_ends_beside_writers() {
    let seed = from_env("FRONDB_SEED", 5);
    println!("seed {seed}");
    let dir = TempDir::new("optimize-writers");
    let db = Db::open(dir.path(), Options::new().memory_bytes(32 << 20)).unwrap();
    let tree = db.create_tree("t", small_leaves()).unwrap();
    let (mut random, mut model) = (Prng::new(seed), Rows::new());
    write(&db, &tree, &mut random, &mut model, 100);
    let is_over = AtomicBool::new(false);
    let counts: Vec<u64> = std::thread::scope(|scope| {
        let writer = |id: u64| {
            let (db, tree, is_over) = (&db, &tree, &is_over);
            scope.spawn(move || {
                let mut round = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let mut batch = Batch::new();
                    for n in (id..KEYS).step_by(20) {
                        batch.put(tree, &key(n), &key(round));
                    }
                    db.write(&batch, Durability::NoSync).unwrap();
                    round += 1;
                }
                round
            })
        };
        let writers = [writer(0), writer(1)];
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let _ends_writers = Over(&is_over);
                    for _ in 0..3 {
                        let report = optimize(&tree, OptimizeOptions::new());
                        assert_eq!((report.held, report.failed), (0, 0));
                    }
                });
            }
        });
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    for (id, rounds) in (0..2).zip(counts) {
        for n in (id..KEYS).step_by(20).filter(|_| rounds > 0) {
            model.insert(key(n), key(rounds - 1));
        }
    }
    assert_eq!(rows(&tree), model);
    optimize(&tree, OptimizeOptions::new());
    assert_consolidated(&tree, &model);
    assert!(tree.verify(&mut |_, _| true).unwrap().faults.is_empty());
    db.close().unwrap();
}
