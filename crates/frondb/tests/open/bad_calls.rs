//! Wrong calls, and calls that only look wrong: keys and values at their limits, empty keys and
//! values, ranges that contain nothing or everything, and every handle after its database was
//! closed or its tree was dropped. Each call works, or returns an error of the right kind that
//! names the reason.

use frondb::testing::TestDb;
use frondb::{
    Batch, Codec, Cursor, CursorOptions, Db, Durability, Error, ErrorKind, Options, Result, Tree,
    TreeOptions,
};
use frondb_core::limits::{KEY_BYTES_MAX, TREE_NAME_BYTES_MAX, VALUE_BYTES_MAX};
use frondb_core::sync::Arc;
use frondb_testkit::MemoryDevice;

const BUFFER: u64 = 256 << 10;

fn database() -> (Db, Tree) {
    let options = Options::new()
        .memory_bytes(256 << 20)
        .write_buffer_bytes(BUFFER)
        .background_threads(0)
        .reserve_bytes(0);
    let device = Arc::new(MemoryDevice::new());
    let db = TestDb::on(device).options(options).open().unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    (db, tree)
}

#[track_caller]
fn fails<T>(result: Result<T>, kind: ErrorKind, words: &str) {
    let error: Error = result.map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(words), "{error}: does not say {words:?}");
}

fn keys(cursor: &mut Cursor) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    while cursor.next().unwrap() {
        keys.push(cursor.key().to_vec());
    }
    keys
}

#[test]
fn keys_and_values_have_limits() {
    let (db, tree) = database();
    let longest = vec![7; KEY_BYTES_MAX];
    tree.put(&longest, b"v").unwrap();
    assert_eq!(tree.get(&longest).unwrap(), Some(b"v".to_vec()));
    let over = vec![7; KEY_BYTES_MAX + 1];
    let reason = format!("{}", KEY_BYTES_MAX + 1);
    fails(tree.put(&over, b"v"), ErrorKind::Invalid, &reason);
    fails(tree.delete(&over), ErrorKind::Invalid, &reason);
    fails(tree.delete_range(&over, None), ErrorKind::Invalid, &reason);
    fails(tree.delete_range(b"", Some(&over)), ErrorKind::Invalid, &reason);
    // No key of this length can exist.
    assert_eq!(tree.get(&over).unwrap(), None);
    assert!(!tree.exists(&over).unwrap());
    assert!(!tree.cursor().unwrap().seek(&over).unwrap());

    let largest = vec![1; VALUE_BYTES_MAX];
    tree.put(b"large", &largest).unwrap();
    assert!(tree.get(b"large").unwrap().unwrap() == largest);
    let over = vec![1; VALUE_BYTES_MAX + 1];
    fails(tree.put(b"large", &over), ErrorKind::Invalid, &format!("{}", VALUE_BYTES_MAX + 1));
    assert!(tree.get(b"large").unwrap().unwrap() == largest, "the old value stays");

    // If one message of a batch is wrong, no message is written.
    let mut batch = Batch::new();
    batch.put(&tree, b"before", b"");
    batch.put(&tree, &vec![7; KEY_BYTES_MAX + 1], b"");
    batch.put(&tree, b"behind", b"");
    fails(db.write(&batch, Durability::Sync), ErrorKind::Invalid, "key");
    assert!(!tree.exists(b"before").unwrap() && !tree.exists(b"behind").unwrap());
}

#[test]
fn the_empty_key_and_the_empty_value_are_like_others() {
    let (db, tree) = database();
    for flushed in [false, true] {
        tree.put(b"", b"nothing").unwrap();
        tree.put(b"a", b"").unwrap();
        if flushed {
            db.flush().unwrap();
        }
        assert_eq!(tree.get(b"").unwrap(), Some(b"nothing".to_vec()));
        assert_eq!(tree.get(b"a").unwrap(), Some(Vec::new()));
        assert!(tree.exists(b"").unwrap() && tree.exists(b"a").unwrap());
        let mut cursor = tree.cursor().unwrap();
        assert!(cursor.first().unwrap() && cursor.key().is_empty());
        assert_eq!(cursor.value().unwrap(), b"nothing");
        assert!(cursor.seek(b"").unwrap() && cursor.key().is_empty());
        assert!(cursor.seek_for_prev(b"").unwrap() && cursor.key().is_empty());
        assert!(cursor.next().unwrap() && cursor.value().unwrap().is_empty());
        tree.delete(b"").unwrap();
        assert_eq!(tree.get(b"").unwrap(), None);
        assert_eq!(keys(&mut tree.cursor().unwrap()), [b"a"]);
    }
}

#[test]
fn a_range_may_hold_everything_or_nothing() {
    let (db, tree) = database();
    let all: Vec<Vec<u8>> =
        [&b""[..], b"a", b"b", b"\xff", b"\xff\xff\xff"].map(Vec::from).to_vec();
    let everything: [CursorOptions; 4] = [
        CursorOptions::new(),
        CursorOptions::new().prefix(b""),
        CursorOptions::new().range(&b""[..]..),
        CursorOptions::new().range(..=&[0xff; 100][..]),
    ];
    let nothing: [CursorOptions; 4] = [
        CursorOptions::new().range(&b"b"[..]..&b"a"[..]),
        CursorOptions::new().range(&b"a"[..]..&b"a"[..]),
        CursorOptions::new().range(&b""[..]..&b""[..]),
        CursorOptions::new().prefix(b"no such"),
    ];
    for flushed in [false, true] {
        all.iter().for_each(|key| tree.put(key, b"v").unwrap());
        if flushed {
            db.flush().unwrap();
        }
        for options in &everything {
            assert_eq!(keys(&mut tree.cursor_with(options.clone()).unwrap()), all, "{options:?}");
        }
        for options in &nothing {
            let mut cursor = tree.cursor_with(options.clone()).unwrap();
            let moves = [cursor.first(), cursor.last(), cursor.next(), cursor.prev()];
            assert!(moves.into_iter().all(|moved| !moved.unwrap()), "{options:?}");
            assert!(!cursor.seek(b"a").unwrap() && !cursor.seek_for_prev(b"a").unwrap());
            assert!(!cursor.is_valid() && cursor.key().is_empty());
            assert!(cursor.value().unwrap().is_empty());
        }
        tree.delete_range(b"b", Some(b"a")).unwrap();
        tree.delete_range(b"a", Some(b"a")).unwrap();
        tree.delete_range(b"", Some(b"")).unwrap();
        assert_eq!(keys(&mut tree.cursor().unwrap()), all);
        assert_eq!(tree.estimate(b"b", Some(b"a")).unwrap().entries, 0);
        tree.delete_range(b"", None).unwrap();
        assert!(keys(&mut tree.cursor().unwrap()).is_empty());
    }
}

#[test]
fn a_batch_may_be_empty_or_larger_than_the_write_buffer() {
    let (db, tree) = database();
    for durability in [Durability::Sync, Durability::NoSync] {
        db.write(&Batch::new(), durability).unwrap();
    }
    let mut batch = Batch::new();
    for i in 0..4000_u32 {
        batch.put(&tree, &i.to_be_bytes(), &[3; 300]);
    }
    assert!(batch.bytes() as u64 > 4 * BUFFER);
    db.write(&batch, Durability::Sync).unwrap();
    db.write(&Batch::new(), Durability::Sync).unwrap();
    assert_eq!(keys(&mut tree.cursor().unwrap()).len(), 4000);
    assert!(db.stats().flushes > 0);
}

#[test]
fn names_and_options_of_trees_are_checked() {
    let (db, _tree) = database();
    let create = |name: &str| db.create_tree(name, TreeOptions::new());
    fails(create(""), ErrorKind::Invalid, "name");
    fails(create(&"n".repeat(TREE_NAME_BYTES_MAX + 1)), ErrorKind::Invalid, "name");
    create(&"n".repeat(TREE_NAME_BYTES_MAX)).unwrap();
    create("/../ \0 \u{1f333}").unwrap();
    fails(create("t"), ErrorKind::Exists, "\"t\"");
    fails(db.open_tree("no"), ErrorKind::NotFound, "\"no\"");
    fails(db.drop_tree("no"), ErrorKind::NotFound, "\"no\"");
    fails(db.rename_tree("no", "other"), ErrorKind::NotFound, "\"no\"");
    fails(db.rename_tree("t", ""), ErrorKind::Invalid, "name");
    fails(db.rename_tree("t", "/../ \0 \u{1f333}"), ErrorKind::Exists, "exists");
    db.rename_tree("t", "t").unwrap();
    let with = |options| db.create_tree("with", options);
    fails(with(TreeOptions::new().codec(Codec::Zstd(99))), ErrorKind::Invalid, "99");
    fails(with(TreeOptions::new().fanout(1)), ErrorKind::Invalid, "fanout");
    fails(with(TreeOptions::new().block_bytes(1)), ErrorKind::Invalid, "block");
    fails(with(TreeOptions::new().update_fn("unknown", 1)), ErrorKind::Invalid, "\"unknown\"");
    assert!(!db.list_trees().contains(&"with".to_owned()));
}

#[test]
fn a_dropped_tree_is_not_found() {
    let (db, tree) = database();
    tree.put(b"k", b"v").unwrap();
    let snapshot = db.snapshot().unwrap();
    let mut cursor = tree.cursor().unwrap();
    let mut batch = Batch::new();
    batch.put(&tree, b"k", b"w");
    db.drop_tree("t").unwrap();
    let dropped = "tree \"t\" was dropped";
    fails(tree.get(b"k"), ErrorKind::NotFound, dropped);
    fails(tree.get_at(b"k", &snapshot), ErrorKind::NotFound, dropped);
    fails(tree.multi_get(&[b"k"]), ErrorKind::NotFound, dropped);
    fails(tree.exists(b"k"), ErrorKind::NotFound, dropped);
    fails(tree.put(b"k", b"v"), ErrorKind::NotFound, dropped);
    fails(tree.delete(b"k"), ErrorKind::NotFound, dropped);
    fails(tree.delete_range(b"", None), ErrorKind::NotFound, dropped);
    fails(tree.cursor(), ErrorKind::NotFound, dropped);
    fails(tree.estimate(b"", None), ErrorKind::NotFound, dropped);
    fails(tree.stats(), ErrorKind::NotFound, dropped);
    fails(tree.verify(&mut |_, _| true), ErrorKind::NotFound, dropped);
    fails(db.write(&batch, Durability::Sync), ErrorKind::NotFound, dropped);
    assert_eq!(tree.name(), "t");
    // An open cursor still works.
    assert!(cursor.next().unwrap());
    assert_eq!(cursor.key(), b"k");
    assert_eq!(cursor.value().unwrap(), b"v");
    // A new tree with the same name is a different tree.
    let new = db.create_tree("t", TreeOptions::new()).unwrap();
    assert_eq!(new.get(b"k").unwrap(), None);
    fails(tree.get(b"k"), ErrorKind::NotFound, dropped);
}

#[test]
fn a_closed_database_says_so() {
    let (db, tree) = database();
    tree.put(b"k", b"v").unwrap();
    let snapshot = db.snapshot().unwrap();
    let mut cursor = tree.cursor().unwrap();
    assert!(cursor.next().unwrap());
    let mut batch = Batch::new();
    batch.put(&tree, b"k", b"w");
    db.close().unwrap();
    db.close().unwrap();
    let closed = "closed";
    fails(db.write(&batch, Durability::NoSync), ErrorKind::Closed, closed);
    fails(db.create_tree("u", TreeOptions::new()), ErrorKind::Closed, closed);
    fails(db.open_tree("t"), ErrorKind::Closed, closed);
    fails(db.rename_tree("t", "u"), ErrorKind::Closed, closed);
    fails(db.drop_tree("t"), ErrorKind::Closed, closed);
    fails(db.snapshot(), ErrorKind::Closed, closed);
    fails(db.sync(), ErrorKind::Closed, closed);
    fails(db.flush(), ErrorKind::Closed, closed);
    fails(db.checkpoint(), ErrorKind::Closed, closed);
    fails(db.wait_settled(), ErrorKind::Closed, closed);
    fails(db.verify(&mut |_, _, _| true), ErrorKind::Closed, closed);
    fails(tree.get(b"k"), ErrorKind::Closed, closed);
    fails(tree.get_at(b"k", &snapshot), ErrorKind::Closed, closed);
    fails(tree.multi_get(&[b"k"]), ErrorKind::Closed, closed);
    fails(tree.exists(b"k"), ErrorKind::Closed, closed);
    fails(tree.put(b"k", b"v"), ErrorKind::Closed, closed);
    fails(tree.cursor(), ErrorKind::Closed, closed);
    fails(tree.estimate(b"", None), ErrorKind::Closed, closed);
    fails(tree.stats(), ErrorKind::Closed, closed);
    fails(tree.verify(&mut |_, _| true), ErrorKind::Closed, closed);
    fails(cursor.first(), ErrorKind::Closed, closed);
    fails(cursor.seek(b"k"), ErrorKind::Closed, closed);
    fails(cursor.next(), ErrorKind::Closed, closed);
    // Statistics and names can still be read.
    assert!(!db.stats().to_string().is_empty());
    assert_eq!(tree.name(), "t");
}

#[test]
fn handles_of_one_database_are_not_taken_by_another() {
    let ((db, tree), (other, other_tree)) = (database(), database());
    let mut batch = Batch::new();
    batch.put(&tree, b"k", b"v");
    fails(other.write(&batch, Durability::Sync), ErrorKind::Invalid, "another");
    batch.put(&other_tree, b"k", b"v");
    fails(db.write(&batch, Durability::Sync), ErrorKind::Invalid, "another");
    fails(tree.get_at(b"k", &other.snapshot().unwrap()), ErrorKind::Invalid, "another");
    assert_eq!(tree.get(b"k").unwrap(), None);
}
