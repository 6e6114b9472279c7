//! Known-empty ranges: cursors skip them, because all their rows were deleted. Right after deletes
//! in key order, the first and the last key are one seek away. Every reader sees exactly its rows,
//! whichever rows are written again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use frondb::{
    Batch, BulkOptions, Cursor, CursorOptions, Db, Durability, Options, Snapshot, Transaction,
    TransactionOptions, Tree, TreeOptions,
};
use frondb_core::prng::Prng;
use frondb_testkit::TempDir;
use frondb_testkit::seed::from_env;

type Rows = BTreeMap<u64, u64>;

fn key(id: u64) -> [u8; 8] {
    id.to_be_bytes()
}

fn id(key: &[u8]) -> u64 {
    u64::from_be_bytes(key.try_into().unwrap())
}

fn open(dir: &TempDir, threads: usize) -> Db {
    let options = Options::new().memory_bytes(32 << 20).background_threads(threads);
    Db::open(dir.path(), options).unwrap()
}

fn fill(db: &Db, tree: &Tree, rows: u64) {
    let mut batch = Batch::new();
    for n in 0..rows {
        batch.put(tree, &key(n), &key(n));
        if batch.len() == 1000 || n + 1 == rows {
            db.write(&batch, Durability::NoSync).unwrap();
            batch.clear();
        }
    }
}

fn delete(db: &Db, tree: &Tree, ids: impl Iterator<Item = u64>, batch_rows: usize) {
    let mut batch = Batch::new();
    let mut ids = ids.peekable();
    while let Some(n) = ids.next() {
        batch.delete(tree, &key(n));
        if batch.len() == batch_rows || ids.peek().is_none() {
            db.write(&batch, Durability::NoSync).unwrap();
            batch.clear();
        }
    }
}

/// Finds the first key and the last key, which must be `first` and `last`; returns the number of
/// deletes that the cursor stepped over. First waits until the workers have probed.
fn stepped(db: &Db, tree: &Tree, first: u64, last: u64) -> u64 {
    db.wait_settled().unwrap();
    let before = db.stats().tombstones_skipped;
    let mut cursor = tree.cursor().unwrap();
    assert!(cursor.first().unwrap());
    assert_eq!(id(cursor.key()), first);
    assert!(cursor.last().unwrap());
    assert_eq!(id(cursor.key()), last);
    drop(cursor);
    db.stats().tombstones_skipped - before
}

/// Deletes from either end, in large and in small commits, without background threads and with
/// threads that flush during the deletes.
#[test]
fn the_ends_are_near_right_after_deletes() {
    const ROWS: u64 = 120_000;
    for (batch_rows, threads) in [(5_000, 0), (10, 2)] {
        let dir = TempDir::new("empty-ranges");
        let db = open(&dir, threads);
        let tree = db.create_tree("rows", TreeOptions::new()).unwrap();
        fill(&db, &tree, ROWS);
        db.flush().unwrap();
        let (mut first, mut last) = (0, ROWS - 1);
        for _ in 0..4 {
            delete(&db, &tree, first..first + 10_000, batch_rows);
            first += 10_000;
            let left = stepped(&db, &tree, first, last);
            assert!(left <= 3000, "{left} deletes before the first key");
            delete(&db, &tree, (last - 9_999..=last).rev(), batch_rows);
            last -= 10_000;
            // Change ends only every 10,000 deletes: a delete at the other end ends the tombstone
            // run that the database counts to decide when to probe.
            let right = stepped(&db, &tree, first, last);
            assert!(right <= 3000, "{right} deletes after the last key");
        }
        assert_eq!(scan(&tree, None, 0, u64::MAX).len() as u64, last - first + 1);
        // Delete up to the last row, and check the empty tree.
        delete(&db, &tree, first..=last, batch_rows);
        assert!(!tree.cursor().unwrap().first().unwrap());
        assert!(!tree.cursor().unwrap().last().unwrap());
        tree.put(&key(5), b"").unwrap();
        stepped(&db, &tree, 5, 5);
        drop(tree);
        db.close().unwrap();
        let db = open(&dir, threads);
        stepped(&db, &db.open_tree("rows").unwrap(), 5, 5);
    }
}

/// A transaction sees its own writes in a known-empty range until it rolls them back. A snapshot
/// and a transaction from before the deletes still see the deleted rows.
#[test]
fn own_writes_and_old_readers_see_theirs() {
    let dir = TempDir::new("empty-ranges");
    let db = open(&dir, 0);
    let tree = db.create_tree("rows", TreeOptions::new()).unwrap();
    fill(&db, &tree, 20_000);
    let snapshot = db.snapshot().unwrap();
    let old = db.begin(TransactionOptions::new()).unwrap();
    assert_eq!(ends(&old, &tree), (0, 19_999));

    // After the rollback no row is deleted.
    let undone = db.begin(TransactionOptions::new()).unwrap();
    for n in 0..9_000 {
        undone.delete(&tree, &key(n)).unwrap();
    }
    assert_eq!(ends(&undone, &tree), (9_000, 19_999));
    undone.rollback().unwrap();
    assert_eq!(stepped(&db, &tree, 0, 19_999), 0);

    delete(&db, &tree, 0..9_000, 3_000);
    assert!(stepped(&db, &tree, 9_000, 19_999) < 300);
    let at = scan(&tree, Some(&snapshot), 0, u64::MAX);
    assert_eq!(at.len(), 20_000);
    assert_eq!(ends(&old, &tree), (0, 19_999));
    old.rollback().unwrap();

    let own = db.begin(TransactionOptions::new()).unwrap();
    assert_eq!(ends(&own, &tree).0, 9_000);
    own.put(&tree, &key(4_000), b"mine").unwrap();
    assert_eq!(ends(&own, &tree).0, 4_000);
    assert!(stepped(&db, &tree, 9_000, 19_999) < 300, "no other reader sees it");
    let mut cursor = own.cursor(&tree).unwrap();
    assert!(cursor.seek(&key(4_001)).unwrap());
    assert_eq!(id(cursor.key()), 9_000);
    assert!(cursor.prev().unwrap());
    assert_eq!(id(cursor.key()), 4_000);
    drop(cursor);
    own.rollback().unwrap();
    assert_eq!(ends(&db.begin(TransactionOptions::new()).unwrap(), &tree).0, 9_000);

    let own = db.begin(TransactionOptions::new()).unwrap();
    own.put(&tree, &key(4_000), b"mine").unwrap();
    own.commit().unwrap();
    stepped(&db, &tree, 4_000, 19_999);
}

fn ends(transaction: &Transaction, tree: &Tree) -> (u64, u64) {
    let mut cursor = transaction.cursor(tree).unwrap();
    assert!(cursor.first().unwrap());
    let first = id(cursor.key());
    assert!(cursor.last().unwrap());
    (first, id(cursor.key()))
}

fn scan(tree: &Tree, at: Option<&Snapshot>, lo: u64, hi: u64) -> Vec<u64> {
    let (lo, hi) = (key(lo), key(hi));
    let mut options = CursorOptions::new().range(&lo[..]..&hi[..]);
    if let Some(at) = at {
        options = options.at(at);
    }
    let mut cursor = tree.cursor_with(options).unwrap();
    let forward = all(&mut cursor, Cursor::first, Cursor::next);
    let mut backward = all(&mut cursor, Cursor::last, Cursor::prev);
    backward.reverse();
    assert_eq!(forward, backward);
    forward
}

fn all(
    cursor: &mut Cursor,
    begin: fn(&mut Cursor) -> frondb::Result<bool>,
    step: fn(&mut Cursor) -> frondb::Result<bool>,
) -> Vec<u64> {
    let (mut ids, mut there) = (Vec::new(), begin(cursor).unwrap());
    while there {
        ids.push(id(cursor.key()));
        there = step(cursor).unwrap();
    }
    ids
}

/// Ranges of rows are deleted and rows are written again in every possible way, compared with a
/// model of each state.
#[test]
fn whatever_comes_back_is_seen() {
    const IDS: u64 = 8_000;
    let seeds = from_env("FRONDB_SEEDS", 3_u64);
    let first_seed = from_env("FRONDB_SEED", 1_u64);
    for seed in first_seed..first_seed + seeds {
        println!("FRONDB_SEED={seed}");
        let mut prng = Prng::new(seed);
        let dir = TempDir::new("empty-ranges");
        let db = open(&dir, if seed % 2 == 0 { 0 } else { 2 });
        let tree = db.create_tree("rows", TreeOptions::new()).unwrap();
        fill(&db, &tree, IDS);
        let mut rows: Rows = (0..IDS).map(|n| (n, n)).collect();
        let mut kept: Vec<(Snapshot, Rows)> = Vec::new();
        for _ in 0..60 {
            change(&db, &tree, &mut rows, &mut prng);
            if prng.below(4) == 0 {
                kept.push((db.snapshot().unwrap(), rows.clone()));
                if kept.len() > 4 {
                    kept.remove(prng.below(4) as usize);
                }
            }
            let (a, b) = (prng.below(IDS), prng.below(IDS + 10));
            check(&tree, None, &rows, a.min(b), b.max(a));
            if let Some((snapshot, rows)) = kept.get(prng.below(5) as usize) {
                check(&tree, Some(snapshot), rows, a.min(b), u64::MAX);
            }
        }
    }
}

fn check(tree: &Tree, at: Option<&Snapshot>, rows: &Rows, lo: u64, hi: u64) {
    let expected: Vec<u64> = rows.range(lo..hi).map(|(&id, _)| id).collect();
    assert_eq!(scan(tree, at, lo, hi), expected, "[{lo}, {hi})");
    let mut options = CursorOptions::new();
    if let Some(at) = at {
        options = options.at(at);
    }
    let mut cursor = tree.cursor_with(options).unwrap();
    let found = cursor.seek(&key(lo)).unwrap().then(|| id(cursor.key()));
    assert_eq!(found, rows.range(lo..).next().map(|(&id, _)| id));
    let found = cursor.seek_for_prev(&key(lo)).unwrap().then(|| id(cursor.key()));
    assert_eq!(found, rows.range(..=lo).next_back().map(|(&id, _)| id));
}

/// Makes one commit, several commits that delete the rows of a range, or a flush.
fn change(db: &Db, tree: &Tree, rows: &mut Rows, prng: &mut Prng) {
    const IDS: u64 = 8_000;
    let at = prng.below(IDS);
    match prng.below(10) {
        0..=3 => {
            let gone: Vec<u64> = (at..IDS.min(at + 500 + prng.below(3_000))).collect();
            gone.iter().for_each(|id| {
                let _gone = rows.remove(id);
            });
            let ids: Box<dyn Iterator<Item = u64>> = if prng.below(2) == 0 {
                Box::new(gone.into_iter())
            } else {
                Box::new(gone.into_iter().rev())
            };
            delete(db, tree, ids, [7, 600, 2_000][prng.below(3) as usize]);
        }
        4 | 5 => {
            tree.put(&key(at), b"again").unwrap();
            rows.insert(at, 0);
        }
        6 => {
            let transaction = db.begin(TransactionOptions::new()).unwrap();
            for n in (at..IDS).step_by(97).take(40) {
                transaction.put(tree, &key(n), b"t").unwrap();
                rows.insert(n, 1);
            }
            transaction.commit().unwrap();
        }
        7 => {
            // Attach runs that are on disk.
            let load =
                db.bulk_load(BulkOptions { memory_bytes: 1, ..BulkOptions::default() }).unwrap();
            let ids: Vec<u64> =
                (at..IDS).step_by(53).take(100).filter(|n| !rows.contains_key(n)).collect();
            let mut writer = load.writer();
            for n in ids {
                writer.put(tree, &key(n), b"b").unwrap();
                rows.insert(n, 2);
            }
            writer.finish().unwrap();
            load.finish(&mut |_| true).unwrap();
        }
        8 => {
            tree.delete_range(&key(at), Some(&key(at + 100))).unwrap();
            (at..at + 100).for_each(|id| {
                let _gone = rows.remove(&id);
            });
        }
        _ => db.flush().unwrap(),
    }
}

/// Two threads, one with even and one with odd ids, delete rows from the left and write rows again.
/// Both record their first row with each commit, and readers must find the smaller of these two
/// rows at any moment.
#[test]
fn readers_beside_two_writers_find_the_first_row() {
    const IDS: u64 = 40_000;
    let dir = TempDir::new("empty-ranges");
    let db = open(&dir, 2);
    let tree = db.create_tree("rows", TreeOptions::new()).unwrap();
    let said = db.create_tree("said", TreeOptions::new()).unwrap();
    fill(&db, &tree, IDS);
    for parity in 0..2 {
        said.put(&[parity], &key(u64::from(parity))).unwrap();
    }
    let seed = from_env("FRONDB_SEED", 1_u64);
    println!("FRONDB_SEED={seed}");
    let done = AtomicBool::new(false);
    let looks = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut looks = 0_u64;
            while !done.load(Ordering::Relaxed) || looks < 10 {
                let snapshot = db.snapshot().unwrap();
                let first = |parity: u8| id(&said.get_at(&[parity], &snapshot).unwrap().unwrap());
                let expected = first(0).min(first(1));
                let mut cursor = tree.cursor_with(CursorOptions::new().at(&snapshot)).unwrap();
                assert!(cursor.first().unwrap());
                assert_eq!(id(cursor.key()), expected, "at {snapshot:?}");
                looks += 1;
            }
            looks
        });
        let writers: Vec<_> = (0..2_u8)
            .map(|parity| {
                let (db, tree, said) = (&db, &tree, &said);
                scope.spawn(move || write_from_the_left(db, tree, said, parity, seed, IDS))
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap()
    });
    println!("{looks} looks");
}

fn write_from_the_left(db: &Db, tree: &Tree, said: &Tree, parity: u8, seed: u64, ids: u64) {
    let mut prng = Prng::new(seed * 2 + u64::from(parity));
    let mut live: Rows = (0..ids).filter(|n| n % 2 == u64::from(parity)).map(|n| (n, n)).collect();
    while live.len() > 1_000 {
        let mut batch = Batch::new();
        if prng.below(20) == 0 {
            let n = prng.below(ids / 2) * 2 + u64::from(parity);
            batch.put(tree, &key(n), b"back");
            live.insert(n, n);
        } else {
            for _ in 0..150 {
                let Some((n, _)) = live.pop_first() else { break };
                batch.delete(tree, &key(n));
            }
        }
        let first = *live.keys().next().unwrap();
        batch.put(said, &[parity], &key(first));
        db.write(&batch, Durability::NoSync).unwrap();
    }
}
