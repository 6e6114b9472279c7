//! Rule 15: deletes from the left leave no long tombstone run before the first or the last key,
//! without any command. The engine achieves this without repeated rewrites of other trees, in which
//! the deletes of the same rows are spread out.

use frondb::{Batch, Codec, Cursor, CursorOptions, Db, Durability, Options, Tree, TreeOptions};
use frondb_testkit::TempDir;

const ROWS: u64 = 400_000;
const BATCH_ROWS: u64 = 1_000;
const LOOK_EVERY: u64 = 100_000;
/// Deletes that a reader may step over if each hides a put: 128 Ki messages in all.
const DELETES_MAX: u64 = 64 << 10;
/// Deletes that a reader may step over at the beginning of a tree: two tombstone runs that are each
/// worth a truncation, and one batch.
const BEGINNING_MAX: u64 = (16 << 10) + BATCH_ROWS;

fn row(id: u64) -> [u8; 8] {
    id.to_be_bytes()
}

/// Returns the key of the row's index entry, at a random place.
fn entry(id: u64) -> [u8; 16] {
    let scattered = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (u128::from(scattered) << 64 | u128::from(id)).to_be_bytes()
}

/// Finds the first key and the last key, which must be `first` and `last`; returns the number of
/// deletes that the cursor stepped over.
fn stepped(db: &Db, tree: &Tree, first: u64, last: u64) -> u64 {
    let before = db.stats().tombstones_skipped;
    let mut cursor = tree.cursor().unwrap();
    assert!(cursor.first().unwrap());
    assert_eq!(cursor.key(), row(first));
    assert!(cursor.last().unwrap());
    assert_eq!(cursor.key(), row(last));
    drop(cursor);
    db.stats().tombstones_skipped - before
}

fn delete_left(mut options: TreeOptions, threads: usize, merged_max: u64) {
    let dir = TempDir::new("tombstone-runs");
    options = options.codec(Codec::None);
    // The same write buffer with and without threads.
    let memory = Options::new().memory_bytes(32 << 20).write_buffer_bytes(8 << 20);
    let db = Db::open(dir.path(), memory.background_threads(threads)).unwrap();
    let rows = db.create_tree("rows", options.clone()).unwrap();
    let index = db.create_tree("index", options).unwrap();
    let mut batch = Batch::new();
    for id in 0..ROWS {
        batch.put(&rows, &row(id), &[7; 40]);
        batch.put(&index, &entry(id), b"");
        if (id + 1) % BATCH_ROWS == 0 {
            db.write(&batch, Durability::NoSync).unwrap();
            batch.clear();
        }
    }
    db.wait_settled().unwrap();
    let merged_before = db.stats().merged_entries;
    let mut worst = 0;
    for id in 0..ROWS / 2 {
        batch.delete(&rows, &row(id));
        batch.delete(&index, &entry(id));
        if (id + 1) % BATCH_ROWS == 0 {
            db.write(&batch, Durability::NoSync).unwrap();
            batch.clear();
        }
        // Check seldom, because a reader that finds a long tombstone run also requests its
        // compaction.
        if (id + 1) % LOOK_EVERY == 0 {
            worst = worst.max(stepped(&db, &rows, id + 1, ROWS - 1));
        }
    }
    // Threads may compact every tombstone run before the next check.
    assert!(worst > 0 || threads > 0, "no delete was stepped over: the test tests nothing");
    // A worker may be busy with other work on the first leaf, and compact the tombstone run late.
    let allowed = if threads == 0 { BEGINNING_MAX } else { 2 * BEGINNING_MAX };
    assert!(worst <= allowed, "{worst} deletes stepped over");
    let merged = db.stats().merged_entries - merged_before;
    assert!(merged <= merged_max, "{merged} messages were merged to delete {} rows", ROWS / 2);
    assert!(db.stats().prefix_truncations > 0);
    db.close().unwrap();

    let db = Db::open(dir.path(), Options::new()).unwrap();
    let report = db.verify(&mut |_, _, _| true).unwrap();
    assert!(report.faults.is_empty(), "{report:?}");
    for name in ["rows", "index"] {
        assert_eq!(count(&mut db.open_tree(name).unwrap().cursor().unwrap()), ROWS / 2, "{name}");
    }
}

fn count(cursor: &mut Cursor) -> u64 {
    let (mut rows, mut there) = (0, cursor.first().unwrap());
    while there {
        rows += 1;
        there = cursor.next().unwrap();
    }
    rows
}

/// Leaves so small that a tombstone run spans several of them, below inner nodes.
fn many_leaves() -> TreeOptions {
    TreeOptions::new().fanout(4).shape(|shape| {
        (shape.leaf_bytes_min, shape.leaf_bytes_max) = (256 << 10, 256 << 10);
        shape.slice_bytes_min = 256 << 10;
    })
}

#[test]
fn the_first_key_stays_near_in_a_tree_of_one_level() {
    // Each tree is one leaf, which is rewritten for each tombstone run and gets smaller.
    delete_left(TreeOptions::new(), 0, 8 * ROWS);
}

#[test]
fn the_first_key_stays_near_below_inner_nodes() {
    // The bound allows many rewrites of the leaves of `rows`, and few of the leaves of `index`.
    delete_left(many_leaves(), 0, 7 * ROWS / 2);
}

#[test]
fn the_first_key_stays_near_with_threads_that_clean() {
    delete_left(many_leaves(), 2, 8 * ROWS);
}

/// The truncated prefix of a leaf stays for snapshots that see it, and for cursors that began
/// before the truncation. Its space is freed after their end.
#[test]
fn a_snapshot_sees_rows_deleted_from_the_left() {
    const ROWS: u64 = 60_000;
    let dir = TempDir::new("tombstone-runs");
    let options = Options::new().memory_bytes(32 << 20).background_threads(0);
    let db = Db::open(dir.path(), options).unwrap();
    let tree = db.create_tree("rows", TreeOptions::new()).unwrap();
    let mut batch = Batch::new();
    for id in 0..ROWS {
        batch.put(&tree, &row(id), &[7; 40]);
    }
    db.write(&batch, Durability::NoSync).unwrap();
    db.flush().unwrap();
    db.wait_settled().unwrap();

    let delete = |from: u64, to: u64| {
        for id in (from..to).step_by(BATCH_ROWS as usize) {
            let mut batch = Batch::new();
            (id..to.min(id + BATCH_ROWS)).for_each(|id| batch.delete(&tree, &row(id)));
            db.write(&batch, Durability::NoSync).unwrap();
        }
    };
    delete(0, 10_000);
    let snapshot = db.snapshot().unwrap();
    let mut begun = tree.cursor().unwrap();
    assert!(begun.first().unwrap());
    delete(10_000, 40_000);
    assert!(db.stats().prefix_truncations > 0, "{}", db.stats());
    let mut old = tree.cursor_with(CursorOptions::new().at(&snapshot)).unwrap();
    assert_eq!(count(&mut old), ROWS - 10_000);
    assert_eq!(tree.get_at(&row(10_000), &snapshot).unwrap().unwrap(), [7; 40]);
    assert_eq!(count(&mut tree.cursor().unwrap()), ROWS - 40_000);
    let mut rows = 1;
    while begun.next().unwrap() {
        rows += 1;
    }
    assert_eq!(rows, ROWS - 10_000);
    drop((old, begun, snapshot));
    delete(40_000, 59_999);
    assert!(stepped(&db, &tree, ROWS - 1, ROWS - 1) <= DELETES_MAX);
    assert_eq!(count(&mut tree.cursor().unwrap()), 1);
    while db.run_one(true) {}
    assert!(db.stats().data_used_bytes < 1 << 20, "{}", db.stats());
}

/// Deletes from the right are not a prefix of the leaf, so the leaf is rewritten, and the last key
/// stays near.
#[test]
fn the_last_key_stays_near_where_rows_go_from_the_right() {
    const ROWS: u64 = 100_000;
    let dir = TempDir::new("tombstone-runs");
    let options = Options::new().memory_bytes(32 << 20).background_threads(0);
    let db = Db::open(dir.path(), options).unwrap();
    let tree = db.create_tree("rows", many_leaves()).unwrap();
    let mut batch = Batch::new();
    for id in 0..ROWS {
        batch.put(&tree, &row(id), &[7; 40]);
    }
    db.write(&batch, Durability::NoSync).unwrap();
    db.wait_settled().unwrap();
    let mut worst = 0;
    for n in 1..=90 {
        let mut batch = Batch::new();
        (ROWS - n * 1_000..ROWS - (n - 1) * 1_000).for_each(|id| batch.delete(&tree, &row(id)));
        db.write(&batch, Durability::NoSync).unwrap();
        if n % 30 == 0 {
            worst = worst.max(stepped(&db, &tree, 0, ROWS - n * 1_000 - 1));
        }
    }
    assert!(worst > 0, "no delete was stepped over: the test tests nothing");
    assert!(worst <= DELETES_MAX, "{worst} deletes stepped over");
}

/// Rows are added at one end and deleted at the other. The deletes must not cause flushes of a few
/// new rows at a time.
#[test]
fn inserts_at_the_right_are_flushed_in_large_runs_while_rows_go_from_the_left() {
    const KEPT: u64 = 50_000;
    const STEPS: u64 = 300;
    let dir = TempDir::new("tombstone-runs");
    let options = Options::new().memory_bytes(32 << 20).background_threads(0);
    let db = Db::open(dir.path(), options).unwrap();
    let tree = db.create_tree("rows", TreeOptions::new().codec(Codec::None)).unwrap();
    let mut batch = Batch::new();
    (0..KEPT).for_each(|id| batch.put(&tree, &row(id), b"row"));
    db.write(&batch, Durability::NoSync).unwrap();
    db.flush().unwrap();
    let before = db.stats().flushes;
    for step in 0..STEPS {
        let mut batch = Batch::new();
        let from = step * BATCH_ROWS;
        (from..from + BATCH_ROWS).for_each(|id| {
            batch.put(&tree, &row(KEPT + id), b"row");
            batch.delete(&tree, &row(id));
        });
        db.write(&batch, Durability::NoSync).unwrap();
    }
    let flushes = db.stats().flushes - before;
    assert!(flushes <= STEPS * BATCH_ROWS / (32 << 10) + 1, "{flushes} flushes");
    let gone = STEPS * BATCH_ROWS;
    assert!(stepped(&db, &tree, gone, gone + KEPT - 1) <= DELETES_MAX);
    assert_eq!(count(&mut tree.cursor().unwrap()), KEPT);
}

/// A tombstone run continues into a leaf whose base consists of several small appends.
#[test]
fn a_tombstone_run_ends_in_a_leaf_of_several_appends() {
    let dir = TempDir::new("tombstone-runs");
    let options = Options::new().memory_bytes(32 << 20).background_threads(0);
    let db = Db::open(dir.path(), options).unwrap();
    let tree = db.create_tree("rows", many_leaves().codec(Codec::None)).unwrap();
    // One leaf of 8,000 rows, and one whose base has appends of 300 and 4,000 rows.
    for (from, to) in [(0, 8_000), (8_000, 8_300), (8_300, 12_300)] {
        let mut batch = Batch::new();
        (from..to).for_each(|id| batch.put(&tree, &row(id), &[7; 24]));
        db.write(&batch, Durability::NoSync).unwrap();
        db.flush().unwrap();
    }
    let mut batch = Batch::new();
    (0..8_290).for_each(|id| batch.delete(&tree, &row(id)));
    db.write(&batch, Durability::NoSync).unwrap();
    assert!(stepped(&db, &tree, 8_290, 12_299) < 1_000);
}

/// The prefix of a leaf is truncated, and no long tombstone run stays at the leaf's end.
#[test]
fn the_last_key_stays_near_where_rows_go_from_both_ends_at_once() {
    let dir = TempDir::new("tombstone-runs");
    let options = Options::new().memory_bytes(256 << 20).background_threads(0);
    let db = Db::open(dir.path(), options).unwrap();
    let tree = db.create_tree("rows", TreeOptions::new().codec(Codec::None)).unwrap();
    let mut batch = Batch::new();
    // One leaf, of which at most a tenth is deleted.
    (0..ROWS * 2).for_each(|id| batch.put(&tree, &row(id), b""));
    db.write(&batch, Durability::NoSync).unwrap();
    db.flush().unwrap();
    db.wait_settled().unwrap();
    batch.clear();
    let kept = 10_000..ROWS * 2 - 70_000;
    (0..kept.start).chain(kept.end..ROWS * 2).for_each(|id| batch.delete(&tree, &row(id)));
    db.write(&batch, Durability::NoSync).unwrap();
    let worst = stepped(&db, &tree, kept.start, kept.end - 1);
    assert!(worst <= DELETES_MAX, "{worst} deletes stepped over");
}

/// Rows that are written again at the beginning of a leaf form no tombstone run, whatever is
/// deleted elsewhere.
#[test]
fn puts_that_begin_a_leaf_do_not_freeze_a_memtable() {
    let dir = TempDir::new("tombstone-runs");
    let options = Options::new().memory_bytes(64 << 20).background_threads(0);
    let db = Db::open(dir.path(), options).unwrap();
    let tree = db.create_tree("rows", TreeOptions::new().codec(Codec::None)).unwrap();
    let mut batch = Batch::new();
    (0..ROWS).for_each(|id| batch.put(&tree, &row(id), b""));
    db.write(&batch, Durability::NoSync).unwrap();
    db.flush().unwrap();
    let flushes = db.stats().flushes;
    for from in (0..15_000).step_by(BATCH_ROWS as usize) {
        let mut batch = Batch::new();
        for id in from..from + BATCH_ROWS {
            batch.put(&tree, &row(id), b"again");
            batch.delete(&tree, &row(20_000 + id * 17));
        }
        db.write(&batch, Durability::NoSync).unwrap();
    }
    assert_eq!(db.stats().flushes, flushes);
}

/// Truncations at the left flush the deletes at the right a few at a time. Together these deletes
/// form a long tombstone run, which must be found.
#[test]
fn both_ends_stay_near_where_rows_go_from_both_in_turn() {
    // First one leaf so large that the deletes are a small part of it, then many leaves.
    for (rows, options) in [(1_200_000, TreeOptions::new()), (400_000, many_leaves())] {
        let dir = TempDir::new("tombstone-runs");
        let db_options = Options::new().memory_bytes(64 << 20).background_threads(0);
        let db = Db::open(dir.path(), db_options).unwrap();
        let tree = db.create_tree("rows", options.codec(Codec::None)).unwrap();
        for from in (0..rows).step_by(100_000) {
            let mut batch = Batch::new();
            (from..from + 100_000).for_each(|id| batch.put(&tree, &row(id), b"row"));
            db.write(&batch, Durability::NoSync).unwrap();
        }
        db.flush().unwrap();
        db.wait_settled().unwrap();
        let half = BATCH_ROWS / 2;
        for n in 0..200 {
            let mut batch = Batch::new();
            for id in n * half..(n + 1) * half {
                batch.delete(&tree, &row(id));
                batch.delete(&tree, &row(rows - 1 - id));
            }
            db.write(&batch, Durability::NoSync).unwrap();
        }
        let gone = 200 * half;
        let worst = stepped(&db, &tree, gone, rows - 1 - gone);
        assert!(worst <= DELETES_MAX + BEGINNING_MAX, "{worst} deletes stepped over");
    }
}
