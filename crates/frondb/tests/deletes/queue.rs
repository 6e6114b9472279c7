//! Queues: rows are taken from one end or from both, with a new cursor each time. A pop steps over
//! a bounded number of deletes and reads a bounded number of blocks, however many pops came before.

use frondb::{
    Batch, CursorOptions, Db, Durability, Options, Snapshot, Stats, TransactionCursorOptions,
    TransactionOptions, Tree, TreeOptions, TrunkOptions, Wait,
};
use frondb_testkit::TempDir;

pub(crate) fn key(id: u64) -> [u8; 8] {
    id.to_be_bytes()
}

pub(crate) fn id(key: &[u8]) -> u64 {
    u64::from_be_bytes(key.try_into().unwrap())
}

pub(crate) fn open(dir: &TempDir) -> Db {
    let options = Options::new().memory_bytes(32 << 20).background_threads(0);
    Db::open(dir.path(), options).unwrap().with_commit_sync(Durability::NoSync)
}

fn fill(db: &Db, tree: &Tree, rows: u64) {
    let mut batch = Batch::new();
    for n in 0..rows {
        batch.put(tree, &key(n), &key(n));
    }
    db.write(&batch, Durability::NoSync).unwrap();
}

/// How a queue is emptied.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// Pops in each transaction.
    commit_rows: u64,
    from_end: bool,
    /// Whether pops lock what they read.
    locks: bool,
    has_snapshot: bool,
    /// Whether the rows are in runs.
    is_flushed: bool,
}

/// Most deletes that a pop may step over, in addition to the deletes of the previous transaction.
const STEPS_MAX: u64 = 64;

fn popped_in_bounds(way: Way) {
    const ROWS: u64 = 4_000;
    let dir = TempDir::new("queue");
    let db = open(&dir);
    let tree = db.create_tree("rows", TreeOptions::new()).unwrap();
    fill(&db, &tree, ROWS);
    if way.is_flushed {
        db.flush().unwrap();
    }
    let snapshot = way.has_snapshot.then(|| db.snapshot().unwrap());
    let options = TransactionOptions::new().durability(Durability::NoSync);
    let mut transaction = None;
    let (mut all, pops) = (0, ROWS - 100);
    for n in 0..pops {
        let open = transaction.get_or_insert_with(|| db.begin(options.clone()).unwrap());
        let before = db.stats().tombstones_skipped;
        let cursor_options = match way.locks {
            true => TransactionCursorOptions::new().for_update(Wait::Timeout),
            false => TransactionCursorOptions::new(),
        };
        let mut cursor = open.cursor_with(&tree, cursor_options).unwrap();
        let there = if way.from_end { cursor.last() } else { cursor.first() };
        assert!(there.unwrap());
        let expected = if way.from_end { ROWS - 1 - n } else { n };
        assert_eq!(id(cursor.key()), expected, "{way:?}");
        drop(cursor);
        let passed = db.stats().tombstones_skipped - before;
        let batch = if way.commit_rows < ROWS { way.commit_rows } else { 0 };
        assert!(passed <= STEPS_MAX + batch, "pop {n} steps over {passed} deletes, {way:?}");
        all += passed;
        open.delete(&tree, &key(expected)).unwrap();
        if (n + 1) % way.commit_rows == 0 {
            transaction.take().unwrap().commit().unwrap();
        }
    }
    assert!(all <= pops * 12, "{all} deletes for {pops} pops, {way:?}");
    let left = if way.from_end { 0..100 } else { ROWS - 100..ROWS };
    if let Some(transaction) = transaction {
        transaction.commit().unwrap();
    }
    assert_eq!(forward(&tree, None), left.collect::<Vec<_>>());
    if let Some(snapshot) = &snapshot {
        assert_eq!(forward(&tree, Some(snapshot)).len() as u64, ROWS);
    }
    // Seek beyond the deletes, and into them.
    let before = db.stats().tombstones_skipped;
    let mut cursor = tree.cursor().unwrap();
    let (at, hit) = if way.from_end { (ROWS + 5, 99) } else { (0, ROWS - 100) };
    let found = if way.from_end { cursor.seek_for_prev(&key(at)) } else { cursor.seek(&key(at)) };
    assert!(found.unwrap() && id(cursor.key()) == hit);
    drop(cursor);
    let passed = db.stats().tombstones_skipped - before;
    assert!(passed <= STEPS_MAX, "a seek steps over {passed} deletes, {way:?}");
}

fn forward(tree: &Tree, snapshot: Option<&Snapshot>) -> Vec<u64> {
    let mut options = CursorOptions::new();
    if let Some(snapshot) = snapshot {
        options = options.at(snapshot);
    }
    let mut cursor = tree.cursor_with(options).unwrap();
    let (mut ids, mut there) = (Vec::new(), cursor.first().unwrap());
    while there {
        ids.push(id(cursor.key()));
        there = cursor.next().unwrap();
    }
    ids
}

#[test]
fn a_pop_steps_over_few_deletes() {
    for commit_rows in [1, 10, u64::MAX] {
        for from_end in [false, true] {
            for (locks, has_snapshot, is_flushed) in [
                (false, false, true),
                (true, false, false),
                (false, true, false),
                (true, true, true),
            ] {
                popped_in_bounds(Way { commit_rows, from_end, locks, has_snapshot, is_flushed });
            }
        }
    }
}

/// Most blocks, indexes and filters that a pop may request from the cache: it opens at most two
/// leaves.
const BLOCKS_MAX: u64 = 8;

/// Pops from a queue of many leaves. With `pushes`, the transaction of a pop also writes a row at
/// the other end.
fn popped_from_leaves(commit_rows: u64, from_end: bool, pushes: bool) {
    const ROWS: u64 = 8_000;
    let dir = TempDir::new("queue");
    let db = open(&dir);
    let small = |shape: &mut TrunkOptions| {
        (shape.leaf_bytes_min, shape.leaf_bytes_max) = (64 << 10, 64 << 10);
    };
    let tree = db.create_tree("rows", TreeOptions::new().shape(small)).unwrap();
    let mut batch = Batch::new();
    for n in ROWS..2 * ROWS {
        batch.put(&tree, &key(n), &[7; 200]);
    }
    db.write(&batch, Durability::NoSync).unwrap();
    db.flush().unwrap();
    assert!(tree.stats().unwrap().leaves > 16);
    let options = TransactionOptions::new().durability(Durability::NoSync);
    let mut transaction = None;
    let (mut most, mut all) = (0, 0);
    for n in 0..ROWS {
        let open = transaction.get_or_insert_with(|| db.begin(options.clone()).unwrap());
        let (before, expected) = (db.stats(), if from_end { 2 * ROWS - 1 - n } else { ROWS + n });
        let mut cursor = open.cursor(&tree).unwrap();
        assert!(if from_end { cursor.last() } else { cursor.first() }.unwrap());
        assert_eq!(id(cursor.key()), expected);
        drop(cursor);
        let after = db.stats();
        let asked = |stats: &Stats| stats.cache_hits + stats.cache_misses;
        let blocks = asked(&after) - asked(&before);
        (most, all) = (most.max(blocks), all + blocks);
        open.delete(&tree, key(expected)).unwrap();
        if pushes {
            let pushed = if from_end { ROWS - 1 - n } else { 2 * ROWS + n };
            open.put(&tree, key(pushed), [7; 20]).unwrap();
        }
        if (n + 1) % commit_rows == 0 {
            transaction.take().unwrap().commit().unwrap();
        }
    }
    let way = format!("{commit_rows} a transaction, from the end: {from_end}, pushes: {pushes}");
    assert!(most <= BLOCKS_MAX, "a pop asks for {most} blocks, {way}");
    assert!(all <= ROWS * 3, "{all} blocks for {ROWS} pops, {way}");
}

#[test]
fn a_pop_opens_few_leaves() {
    for commit_rows in [1, 10, u64::MAX] {
        for from_end in [false, true] {
            for pushes in [false, true] {
                popped_from_leaves(commit_rows, from_end, pushes);
            }
        }
    }
}

/// A queue is emptied and polled, and then gets new rows.
#[test]
fn an_empty_queue_is_polled_cheaply() {
    let dir = TempDir::new("queue");
    let db = open(&dir);
    let tree = db.create_tree("rows", TreeOptions::new()).unwrap();
    fill(&db, &tree, 1_000);
    for n in 0..1_000 {
        assert!(tree.cursor().unwrap().first().unwrap());
        tree.delete(&key(n)).unwrap();
    }
    assert!(!tree.cursor().unwrap().first().unwrap());
    assert!(!tree.cursor().unwrap().last().unwrap());
    let before = db.stats().tombstones_skipped;
    for n in 1_000..2_000 {
        assert!(!tree.cursor().unwrap().first().unwrap());
        assert!(!tree.cursor().unwrap().last().unwrap());
        tree.put(&key(n), b"").unwrap();
        for is_last in [false, true] {
            let mut cursor = tree.cursor().unwrap();
            assert!(if is_last { cursor.last() } else { cursor.first() }.unwrap());
            assert_eq!(id(cursor.key()), n);
        }
        tree.delete(&key(n)).unwrap();
    }
    let passed = db.stats().tombstones_skipped - before;
    assert!(passed <= 40_000, "{passed} deletes for 4,000 reads");
}

/// A transaction sees its own rows before the tree's first row and after its last row, although the
/// ranges beyond both ends are known to be empty.
#[test]
fn own_rows_beyond_an_empty_end_are_seen() {
    let dir = TempDir::new("queue");
    let db = open(&dir);
    let tree = db.create_tree("rows", TreeOptions::new()).unwrap();
    for n in 1_000..2_000 {
        tree.put(key(n), b"").unwrap();
    }
    for n in 0..400 {
        for is_last in [false, true] {
            let mut cursor = tree.cursor().unwrap();
            assert!(if is_last { cursor.last() } else { cursor.first() }.unwrap());
            let expected = if is_last { 1_999 - n } else { 1_000 + n };
            assert_eq!(id(cursor.key()), expected);
            tree.delete(key(expected)).unwrap();
        }
    }
    for (is_last, own) in [(false, 5), (true, 5_000)] {
        let transaction = db.begin(TransactionOptions::new()).unwrap();
        transaction.put(&tree, key(own), b"").unwrap();
        let mut cursor = transaction.cursor(&tree).unwrap();
        assert!(if is_last { cursor.last() } else { cursor.first() }.unwrap());
        assert_eq!(id(cursor.key()), own);
    }
}

/// After a rollback to a savepoint, a cursor's step is a new search that begins after its current
/// entry. So the search does not prove that no row lies before this entry.
#[test]
fn a_cursor_that_stepped_after_a_rollback_hides_no_rows() {
    for from_end in [false, true] {
        let dir = TempDir::new("queue");
        let db = open(&dir);
        let tree = db.create_tree("rows", TreeOptions::new()).unwrap();
        fill(&db, &tree, 10);
        let transaction = db.begin(TransactionOptions::new()).unwrap();
        transaction.delete(&tree, &key(if from_end { 6 } else { 3 })).unwrap();
        let mut cursor = transaction.cursor(&tree).unwrap();
        assert!(cursor.seek(&key(if from_end { 7 } else { 2 })).unwrap());
        let savepoint = transaction.set_savepoint().unwrap();
        transaction.roll_back_to(savepoint).unwrap();
        assert!(if from_end { cursor.prev() } else { cursor.next() }.unwrap());
        assert_eq!(id(cursor.key()), if from_end { 5 } else { 4 });
        drop(cursor);
        let mut cursor = transaction.cursor(&tree).unwrap();
        assert!(if from_end { cursor.last() } else { cursor.first() }.unwrap());
        assert_eq!(id(cursor.key()), if from_end { 9 } else { 0 });
    }
}
