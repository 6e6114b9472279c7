//! A tree whose update function is missing or has another version. Everything that does not apply
//! an update works, and no update is lost.

use frondb::{Db, ErrorKind, Options, Tree, TreeOptions, UpdateFn};
use frondb_testkit::TempDir;

/// An update function that appends the operand to the value. Each version uses another separator.
struct SeparatorAppend(u32);

impl UpdateFn for SeparatorAppend {
    fn name(&self) -> &str {
        "append"
    }

    fn version(&self) -> u32 {
        self.0
    }

    fn apply(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operand: &[u8],
    ) -> std::result::Result<Vec<u8>, String> {
        let separator = [b'0' + self.0 as u8];
        Ok([existing.unwrap_or_default(), &separator, operand].concat())
    }

    fn combine(&self, _key: &[u8], _older: &[u8], _newer: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

fn options() -> Options {
    Options::new().memory_bytes(16 << 20).background_threads(0)
}

/// Creates a tree with keys that have no updates, and with the key "m", which has an update above
/// its value.
fn make(dir: &TempDir, flushed: bool) {
    let db = Db::open(dir.path(), options().update_fn(SeparatorAppend(1))).unwrap();
    let tree = db.create_tree("log", TreeOptions::new().update_fn("append", 1)).unwrap();
    let other = db.create_tree("other", TreeOptions::new()).unwrap();
    other.put(b"k", b"v").unwrap();
    for key in [b"a", b"m", b"z"] {
        tree.put(key, b"old").unwrap();
    }
    if flushed {
        db.flush().unwrap();
    }
    tree.update(b"m", b"new").unwrap();
    tree.put(b"b", &vec![7; 100_000]).unwrap();
    if flushed {
        db.flush().unwrap();
    }
}

fn assert_missing<T: std::fmt::Debug>(result: frondb::Result<T>, why: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    let text = error.to_string();
    assert!(text.contains("\"append\"") && text.contains(why), "{text}");
}

/// Checks everything that must work without the function.
fn use_without(db: &Db, tree: &Tree, why: &str) {
    assert_eq!(db.open_tree("other").unwrap().get(b"k").unwrap().unwrap(), b"v");
    assert_eq!(tree.get(b"a").unwrap().unwrap(), b"old");
    assert_eq!(tree.get(b"b").unwrap().unwrap().len(), 100_000);
    assert_missing(tree.get(b"m"), why);
    assert_missing(tree.update(b"a", b"x"), why);
    let mut cursor = tree.cursor().unwrap();
    assert!(cursor.first().unwrap() && cursor.next().unwrap());
    assert_missing(cursor.next(), why);
    assert!(cursor.seek(b"n").unwrap());
    assert_eq!(cursor.key(), b"z");
    assert!(tree.stats().is_ok());
    let report = db.verify(&mut |_, _, _| true).unwrap();
    assert!(report.faults.is_empty(), "{:?}", report.faults);
}

#[test]
fn only_calls_that_resolve_an_update_fail() {
    for flushed in [false, true] {
        for (open, why) in [
            (options(), "not registered"),
            (options().update_fn(SeparatorAppend(2)), "version 2, the tree needs 1"),
        ] {
            let dir = TempDir::new("missing_function");
            make(&dir, flushed);
            {
                let db = Db::open(dir.path(), open).unwrap();
                let tree = db.open_tree("log").unwrap();
                use_without(&db, &tree, why);
                // Flushes and merges keep the update of "m".
                tree.put(b"zz", b"plain").unwrap();
                db.flush().unwrap();
                while db.run_one(true) {}
                db.checkpoint().unwrap();
                use_without(&db, &tree, why);
                db.close().unwrap();
            }
            let both = options().update_fn(SeparatorAppend(2)).update_fn(SeparatorAppend(1));
            let db = Db::open(dir.path(), both).unwrap();
            let tree = db.open_tree("log").unwrap();
            assert_eq!(tree.get(b"m").unwrap().unwrap(), b"old1new");
            assert_eq!(tree.get(b"zz").unwrap().unwrap(), b"plain");
        }
    }
}

#[test]
fn a_tree_without_its_update_function_is_written_renamed_and_dropped() {
    let dir = TempDir::new("missing_function");
    make(&dir, true);
    let db = Db::open(dir.path(), options()).unwrap();
    let tree = db.open_tree("log").unwrap();
    tree.put(b"m", b"mended").unwrap();
    assert_eq!(tree.get(b"m").unwrap().unwrap(), b"mended");
    db.rename_tree("log", "old").unwrap();
    db.drop_tree("old").unwrap();
    assert_eq!(db.list_trees(), ["other"]);
    // Creating a new tree still needs its function.
    let refused = db.create_tree("log", TreeOptions::new().update_fn("append", 1));
    assert_missing(refused, "not registered");
}

#[test]
fn two_versions_of_a_function_serve_two_trees() {
    let dir = TempDir::new("missing_function");
    for _ in 0..2 {
        let both = options().update_fn(SeparatorAppend(1)).update_fn(SeparatorAppend(2));
        let db = Db::open(dir.path(), both).unwrap();
        for (name, version) in [("one", 1), ("two", 2)] {
            let tree = db
                .open_tree(name)
                .or_else(|_| db.create_tree(name, TreeOptions::new().update_fn("append", version)));
            let tree = tree.unwrap();
            tree.put(b"k", b"v").unwrap();
            tree.update(b"k", b"w").unwrap();
            let value = tree.get(b"k").unwrap().unwrap();
            assert_eq!(value, format!("v{version}w").as_bytes());
        }
    }
}

/// A salvage lists the rows that need the function, and saves all others.
#[test]
fn a_salvage_leaves_out_only_rows_that_need_the_function() {
    for flushed in [false, true] {
        let (dir, to) = (TempDir::new("missing_function"), TempDir::new("salvaged"));
        make(&dir, flushed);
        let to = to.path().join("new");
        let report = Db::salvage(dir.path(), &to, &real(), false, &mut |_, _, _| true).unwrap();
        let log = report.trees.iter().find(|tree| tree.name == "log").unwrap();
        let lost: Vec<_> =
            log.lost.iter().map(|range| (&range.lo[..], range.hi.as_deref())).collect();
        assert_eq!(lost, [(&b"m"[..], Some(&b"m\0"[..]))], "{:?}", log.lost);
        let db = Db::open(&to, real()).unwrap();
        let tree = db.open_tree("log").unwrap();
        assert_eq!(tree.get(b"a").unwrap().unwrap(), b"old");
        assert!(tree.get(b"z").unwrap().is_some(), "a row behind it");
        assert_eq!(tree.get(b"m").unwrap(), None);
        db.close().unwrap();
    }
}

fn real() -> Options {
    Options::new().memory_bytes(16 << 20)
}
