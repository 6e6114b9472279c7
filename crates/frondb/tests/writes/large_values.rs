//! Rule 17: large values have their own extents, which must outlive every reader that has a
//! reference to them, such as cursors on versions from before a drop or a merge.

use frondb::testing::TestDb;
use frondb::{
    Batch, Cursor, Db, Durability, ErrorKind, Options, TransactionOptions, Tree, TreeOptions,
};
use frondb_core::sync::Arc;
use frondb_testkit::TempDir;
use frondb_testkit::{CrashMode, MemoryDevice};

const VALUES: u64 = 40;

fn value(of: u64, round: u64) -> Vec<u8> {
    vec![(of * 7 + round * 31) as u8; 150_000]
}

fn open(dir: &TempDir) -> (Db, Tree) {
    // Without threads, merges happen inside the calls below, in the same order every time.
    let db = Db::open(dir.path(), Options::new().memory_bytes(16 << 20).background_threads(0));
    let db = db.unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    (db, tree)
}

/// Works as [`open`], but with leaves of 1 MiB.
fn open_with_small_leaves(dir: &TempDir) -> (Db, Tree) {
    let options = Options::new().memory_bytes(16 << 20).background_threads(0);
    let db = Db::open(dir.path(), options).unwrap();
    let of_leaves = TreeOptions::new().shape(|shape| {
        (shape.leaf_bytes_min, shape.leaf_bytes_max) = (1 << 20, 1 << 20);
    });
    let tree = db.create_tree("t", of_leaves).unwrap();
    (db, tree)
}

fn put_all(db: &Db, tree: &Tree, round: u64) {
    for i in 0..VALUES {
        let mut batch = Batch::new();
        batch.put(tree, &i.to_be_bytes(), &value(i, round));
        db.write(&batch, Durability::NoSync).unwrap();
    }
    db.flush().unwrap();
    db.wait_settled().unwrap();
}

/// A caller that flushes deletes of large values and waits until the database is settled gets the
/// space back, even if the database is not idle.
#[test]
fn deleted_values_are_given_back_when_it_has_settled() {
    let dir = TempDir::new("large-deleted");
    let (db, tree) = open(&dir);
    put_all(&db, &tree, 1);
    let before = db.stats().data_used_bytes;
    assert!(before >= VALUES * 150_000, "{before} bytes in use");
    let mut batch = Batch::new();
    (0..VALUES).for_each(|i| batch.delete(&tree, &i.to_be_bytes()));
    db.write(&batch, Durability::NoSync).unwrap();
    db.flush().unwrap();
    db.wait_settled().unwrap();
    let after = db.stats().data_used_bytes;
    assert!(after < before / 10, "{before} bytes in use, then {after}");
}

/// The deleted values lie among many small rows, which the rewrite of a leaf must also read and
/// write.
#[test]
fn deleted_values_among_small_rows_are_given_back_when_it_has_settled() {
    let dir = TempDir::new("large-among-small");
    let (db, tree) = open(&dir);
    let large: Vec<u8> =
        (0..1_u32 << 18).flat_map(|i| i.wrapping_mul(0x9e37_79b9).to_be_bytes()).collect();
    let mut batch = Batch::new();
    for i in 0..10_000_u64 {
        batch.put(&tree, &i.to_be_bytes(), &large[i as usize * 8..][..200]);
        if i % 500 == 0 {
            batch.put(&tree, &[&i.to_be_bytes()[..], b"large"].concat(), &large);
        }
    }
    db.write(&batch, Durability::NoSync).unwrap();
    db.flush().unwrap();
    db.wait_settled().unwrap();
    let before = db.stats().data_used_bytes;
    assert!(before > 20 << 20, "{before} bytes in use");
    batch.clear();
    for i in (0..10_000_u64).step_by(500) {
        batch.delete(&tree, &[&i.to_be_bytes()[..], b"large"].concat());
    }
    db.write(&batch, Durability::NoSync).unwrap();
    db.flush().unwrap();
    db.wait_settled().unwrap();
    let after = db.stats().data_used_bytes;
    assert!(after < before / 2, "{before} bytes in use, then {after}");
}

/// Bytes that no codec compresses.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut prng = frondb_core::prng::Prng::new(seed);
    (0..len.div_ceil(8)).flat_map(|_| prng.next_u64().to_le_bytes()).take(len).collect()
}

/// The deleted values lie between the small rows of a tree with several leaves. The deletes are so
/// few and small that no other reason would move them down to the leaves.
#[test]
fn deleted_values_between_the_rows_of_many_leaves_are_given_back() {
    const ROWS: u64 = 400;
    for size in [70_000, 150_000] {
        let dir = TempDir::new("large-many-leaves");
        let (db, tree) = open_with_small_leaves(&dir);
        let values = 20_000_000 / size as u64;
        let mut batch = Batch::new();
        for i in 0..values {
            batch.clear();
            batch.put(&tree, &(i * ROWS).to_be_bytes(), &noise(i, size));
            for j in 1..ROWS {
                batch.put(&tree, &(i * ROWS + j).to_be_bytes(), &noise(i * ROWS + j, 60));
            }
            db.write(&batch, Durability::NoSync).unwrap();
        }
        db.flush().unwrap();
        db.wait_settled().unwrap();
        let leaves = tree.stats().unwrap().leaves;
        assert!(leaves > 1, "{leaves}");
        let before = db.stats().data_used_bytes;
        for i in 0..values {
            batch.clear();
            batch.delete(&tree, &(i * ROWS).to_be_bytes());
            db.write(&batch, Durability::NoSync).unwrap();
        }
        db.flush().unwrap();
        db.wait_settled().unwrap();
        let given_back = before.saturating_sub(db.stats().data_used_bytes);
        let deleted = values * size as u64;
        assert!(given_back > deleted * 9 / 10, "{size}: {given_back} bytes of {deleted} came back");
    }
}

/// Deletes of small rows in a tree in which 25 of 20,000 rows are large. The large values that such
/// deletes might hide are not worth rewriting the leaves. No caller waits for them, and an idle
/// engine does not search for them.
#[test]
fn deletes_of_small_rows_rewrite_no_leaves_for_values_that_stay() {
    let dir = TempDir::new("large-few");
    let (db, tree) = open_with_small_leaves(&dir);
    let mut batch = Batch::new();
    for row in 0..20_000_u64 {
        let size = if row % 800 == 0 { 70_000 } else { 1_000 };
        batch.put(&tree, &row.to_be_bytes(), &noise(row, size));
        if row % 500 == 499 {
            db.write(&batch, Durability::NoSync).unwrap();
            batch.clear();
        }
    }
    db.flush().unwrap();
    db.wait_settled().unwrap();
    assert!(tree.stats().unwrap().leaves > 10);
    for burst in 0..3 {
        let before = db.stats();
        for k in 0..26_u64 {
            batch.delete(&tree, &(k * 750 + 100 + burst).to_be_bytes());
        }
        db.write(&batch, Durability::NoSync).unwrap();
        batch.clear();
        db.flush().unwrap();
        db.wait_settled().unwrap();
        let after = db.stats();
        let written = after.merge_bytes - before.merge_bytes;
        assert!(written < 1 << 20, "burst {burst}: {written} bytes for 26 deletes");
    }
}

/// A caller flushes deletes while a snapshot or a cursor is open, and waits after its end. Then the
/// space is free.
#[test]
fn space_of_a_snapshot_is_freed_when_settled_after_its_end() {
    for with_cursor in [false, true] {
        let dir = TempDir::new("large-held");
        let (db, tree) = open(&dir);
        put_all(&db, &tree, 1);
        let before = db.stats().data_used_bytes;
        let snapshot = (!with_cursor).then(|| db.snapshot().unwrap());
        let mut cursor = with_cursor.then(|| tree.cursor().unwrap());
        if let Some(cursor) = &mut cursor {
            assert_sees(cursor, 1);
        }
        let mut batch = Batch::new();
        (0..VALUES).for_each(|i| batch.delete(&tree, &i.to_be_bytes()));
        db.write(&batch, Durability::NoSync).unwrap();
        db.flush().unwrap();
        db.wait_settled().unwrap();
        assert!(
            db.stats().data_used_bytes > before / 2,
            "a snapshot or cursor may still read them"
        );
        drop((snapshot, cursor));
        db.wait_settled().unwrap();
        let after = db.stats().data_used_bytes;
        assert!(after < before / 10, "{before} bytes in use, then {after} (cursor: {with_cursor})");
    }
}

/// A put that overwrites a large value hides it like a delete, and its space is freed without a
/// flush.
#[test]
fn overwritten_values_are_given_back_when_it_has_settled() {
    for (what, flushed) in [("put", true), ("put", false), ("delete", false)] {
        let dir = TempDir::new("large-overwritten");
        let (db, tree) = open(&dir);
        put_all(&db, &tree, 1);
        let before = db.stats().data_used_bytes;
        let mut batch = Batch::new();
        for i in 0..VALUES {
            match what {
                "put" => batch.put(&tree, &i.to_be_bytes(), b"small"),
                _ => batch.delete(&tree, &i.to_be_bytes()),
            }
        }
        db.write(&batch, Durability::NoSync).unwrap();
        if flushed {
            db.flush().unwrap();
        }
        db.wait_settled().unwrap();
        let after = db.stats().data_used_bytes;
        assert!(after < before / 10, "{what}, {flushed}: {before} bytes in use, then {after}");
    }
}

/// Reads the next entries of the cursor, which must have the values of `round`.
fn assert_sees(cursor: &mut Cursor, round: u64) {
    for i in 0..VALUES {
        assert!(cursor.next().unwrap(), "entry {i}");
        assert_eq!(cursor.key(), i.to_be_bytes());
        assert_eq!(cursor.value().unwrap(), value(i, round), "value {i}");
    }
}

/// Writes new values into any space that was released.
fn reuse_space(db: &Db) {
    let other = db.create_tree("other", TreeOptions::new()).unwrap();
    put_all(db, &other, 99);
    put_all(db, &other, 98);
}

#[test]
fn a_cursor_reads_on_in_a_tree_that_was_dropped() {
    let dir = TempDir::new("large-dropped");
    let (db, tree) = open(&dir);
    put_all(&db, &tree, 1);
    let mut cursor = tree.cursor().unwrap();
    // Replace the runs that the cursor's version holds before the tree is dropped.
    let mut batch = Batch::new();
    for i in 0..20_000u64 {
        batch.put(&tree, &(VALUES + i).to_be_bytes(), &[1; 100]);
    }
    // Also overwrite a large value before any reader can see it.
    batch.put(&tree, b"z", &value(0, 3));
    batch.put(&tree, b"z", &value(0, 4));
    db.write(&batch, Durability::NoSync).unwrap();
    db.flush().unwrap();
    db.wait_settled().unwrap();
    db.drop_tree("t").unwrap();
    reuse_space(&db);
    assert_sees(&mut cursor, 1);
}

#[test]
fn a_cursor_reads_on_after_two_merges() {
    let dir = TempDir::new("large-merged");
    let (db, tree) = open(&dir);
    put_all(&db, &tree, 1);
    let before = db.stats().data_used_bytes;
    let mut cursor = tree.cursor().unwrap();
    // The first merge moves the references to another run; a later merge drops them.
    let mut batch = Batch::new();
    for i in 0..VALUES {
        batch.put(&tree, &[&i.to_be_bytes()[..], b"x"].concat(), b"small");
    }
    db.write(&batch, Durability::NoSync).unwrap();
    db.flush().unwrap();
    db.wait_settled().unwrap();
    batch.clear();
    for i in 0..VALUES {
        batch.delete(&tree, &[&i.to_be_bytes()[..], b"x"].concat());
    }
    db.write(&batch, Durability::NoSync).unwrap();
    put_all(&db, &tree, 2);
    reuse_space(&db);
    assert_sees(&mut cursor, 1);

    // The values are freed after the cursor's end.
    drop(cursor);
    db.drop_tree("other").unwrap();
    db.drop_tree("t").unwrap();
    db.wait_settled().unwrap();
    let after = db.stats().data_used_bytes;
    assert!(after < before / 10, "{before} bytes with a set of values, {after} with none");
}

/// Rule 17: a value is written before its commit, and is freed if the commit is refused.
#[test]
fn a_refused_commit_gives_its_values_back() {
    let dir = TempDir::new("large-refused");
    let (db, tree) = open(&dir);
    let mut batch = Batch::new();
    batch.put(&tree, b"k", &value(1, 1));
    db.drop_tree("t").unwrap();
    let before = db.stats().data_used_bytes;
    for _ in 0..3 {
        let error = db.write(&batch, Durability::NoSync).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    }
    assert_eq!(db.stats().data_used_bytes, before);
}

/// A cursor of a transaction still shows a large value that it found, even after the transaction
/// has overwritten or undone the value. No other value gets its space meanwhile.
#[test]
fn own_values_stay_for_the_cursors_that_found_them() {
    let dir = TempDir::new("large_values");
    let options = Options::new().memory_bytes(4 << 20).background_threads(0);
    let db = Db::open(dir.path(), options).unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let used = db.stats().data_used_bytes;
    let others = |tree: &Tree| {
        for i in 0..20_u32 {
            tree.put(&[b"z", &i.to_be_bytes()[..]].concat(), &[9; 200_000]).unwrap();
        }
        tree.delete_range(b"z", None).unwrap();
    };
    for way in ["overwritten", "undone", "rolled back"] {
        let transaction = db.begin(TransactionOptions::new()).unwrap();
        let savepoint = transaction.set_savepoint().unwrap();
        transaction.put(&tree, b"k", &[1; 200_000]).unwrap();
        let mut cursor = transaction.cursor(&tree).unwrap();
        assert!(cursor.seek(b"k").unwrap());
        match way {
            "overwritten" => {
                transaction.put(&tree, b"k", b"small").unwrap();
                let before = db.stats().spills;
                for i in 0..20_000_u32 {
                    transaction.put(&tree, &i.to_be_bytes(), &[7; 60]).unwrap();
                }
                assert!(db.stats().spills > before);
            }
            "undone" => transaction.roll_back_to(savepoint).unwrap(),
            _ => transaction.rollback().unwrap(),
        }
        others(&tree);
        assert_eq!(cursor.value().unwrap(), [1; 200_000], "{way}");
        drop((cursor, transaction));
    }
    db.flush().unwrap();
    drop(tree);
    db.drop_tree("t").unwrap();
    assert_eq!(db.stats().data_used_bytes, used);
}

fn open_in_memory(device: &MemoryDevice) -> Db {
    TestDb::on(Arc::new(device.clone()))
        .options(Options::small().memory_bytes(8 << 20))
        .open()
        .unwrap()
}

/// Rules 6 and 17: no durable log record refers to a value that is not durable, whichever kind of
/// writer logged the record.
#[test]
fn a_value_is_durable_before_a_record_names_it() {
    let writes: [fn(&Db, &Tree); 3] = [
        |db, tree| {
            let mut batch = Batch::new();
            batch.put(tree, b"k", &value(1, 1));
            db.write(&batch, Durability::Sync).unwrap();
        },
        |db, tree| {
            let transaction = db.begin(TransactionOptions::new()).unwrap();
            transaction.put(tree, b"k", &value(1, 1)).unwrap();
            transaction.commit().unwrap();
        },
        |db, tree| {
            let transaction = db.begin(TransactionOptions::new()).unwrap();
            transaction.put(tree, b"k", &value(1, 1)).unwrap();
            transaction.prepare(b"x").unwrap();
        },
    ];
    for (i, write) in writes.iter().enumerate() {
        let device = MemoryDevice::new();
        let db = open_in_memory(&device);
        write(&db, &db.create_tree("t", TreeOptions::new()).unwrap());
        let db = open_in_memory(&device.crash(CrashMode::LoseUnsynced));
        if let [xid] = &db.prepared()[..] {
            db.commit_prepared(xid, Durability::NoSync).unwrap();
        }
        let found = db.open_tree("t").unwrap().get(b"k").unwrap();
        assert!(found == Some(value(1, 1)), "write {i}");
    }
}
