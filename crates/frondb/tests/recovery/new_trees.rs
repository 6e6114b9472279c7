//! Rules 8 and 19: a tree that a bulk load creates exists with all its rows or not at all, whatever
//! stops the load and wherever power is lost.

use std::collections::BTreeMap;

use frondb::testing::TestDb;
use frondb::{BulkOptions, Db, ErrorKind, Options, Tree, TreeOptions};
use frondb_core::Result;
use frondb_core::sync::Arc;
use frondb_testkit::MemoryDevice;
use frondb_testkit::{Crash, CrashTest, for_each_crash_point};

fn open(memory: &Arc<MemoryDevice>) -> Result<Db> {
    TestDb::on(Arc::clone(memory) as _).options(Options::small().memory_bytes(8 << 20)).open()
}

fn rows_of(tree: &Tree) -> u64 {
    let (mut cursor, mut rows) = (tree.cursor().unwrap(), 0);
    while cursor.next().unwrap() {
        rows += 1;
    }
    rows
}

/// Returns the names of all trees, each with its number of rows.
fn contents(db: &Db) -> BTreeMap<String, u64> {
    let names = db.list_trees().into_iter();
    names.map(|name| (name.clone(), rows_of(&db.open_tree(&name).unwrap()))).collect()
}

/// Loads rows into a new tree and into an existing tree, and creates a new tree without rows.
fn load(db: &Db) -> Result<()> {
    let old = db.open_tree("old")?;
    let load = db.bulk_load(BulkOptions::default())?;
    let (new, _) =
        (load.new_tree("new", TreeOptions::new())?, load.new_tree("empty", TreeOptions::new())?);
    let mut writer = load.writer();
    for i in 0..40_u32 {
        writer.put(&new, &i.to_be_bytes(), &[7; 300])?;
        writer.put(&old, &i.to_be_bytes(), b"value")?;
    }
    // A large value, which has its own extents.
    writer.put(&new, b"large", &vec![1; 70_000])?;
    writer.finish()?;
    load.finish(&mut |_| true).map(drop)
}

fn before() -> BTreeMap<String, u64> {
    BTreeMap::from([("old".into(), 1)])
}

fn after() -> BTreeMap<String, u64> {
    BTreeMap::from([("old".into(), 41), ("new".into(), 41), ("empty".into(), 0)])
}

#[test]
fn they_are_there_from_the_commit_on() {
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device).unwrap();
    db.create_tree("old", TreeOptions::new()).unwrap().put(b"row", b"").unwrap();
    let given_up = db.bulk_load(BulkOptions::default()).unwrap();
    let gone = given_up.new_tree("new", TreeOptions::new()).unwrap();
    given_up.writer().put(&gone, b"k", b"v").unwrap();
    let twice = given_up.new_tree("new", TreeOptions::new());
    assert_eq!(twice.unwrap_err().kind(), ErrorKind::Exists);
    let taken = given_up.new_tree("old", TreeOptions::new());
    assert_eq!(taken.unwrap_err().kind(), ErrorKind::Exists);
    assert_eq!(gone.get(b"k").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(gone.put(b"k", b"v").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(gone.cursor().map(drop).unwrap_err().kind(), ErrorKind::NotFound);
    // A writer of another load cannot use the tree either.
    let other = db.bulk_load(BulkOptions::default()).unwrap();
    let refused = other.writer().put(&gone, b"k", b"v");
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotFound);
    drop((given_up, other, gone));
    assert_eq!(contents(&db), before());

    load(&db).unwrap();
    assert_eq!(contents(&db), after());
    drop(db);
    // Check a recovery from the log, from edits of the manifest, and from the manifest's snapshot.
    let db = open(&device).unwrap();
    assert_eq!(contents(&db), after());
    db.checkpoint().unwrap();
    drop(db);
    let db = open(&device).unwrap();
    assert_eq!(contents(&db), after());
    db.verify(&mut |_, _, _| true).unwrap();
    db.close().unwrap();
}

/// A tree that another call creates before the load finishes keeps the name, and the load fails.
#[test]
fn a_name_that_is_taken_meanwhile_fails_the_load() {
    let db = open(&Arc::new(MemoryDevice::new())).unwrap();
    let load = db.bulk_load(BulkOptions::default()).unwrap();
    let tree = load.new_tree("new", TreeOptions::new()).unwrap();
    let mut writer = load.writer();
    writer.put(&tree, b"k", b"v").unwrap();
    writer.finish().unwrap();
    db.create_tree("new", TreeOptions::new()).unwrap();
    assert_eq!(load.finish(&mut |_| true).unwrap_err().kind(), ErrorKind::Exists);
    assert_eq!(contents(&db), BTreeMap::from([("new".into(), 0)]));
    assert_eq!(load.new_tree("x", TreeOptions::new()).unwrap_err().kind(), ErrorKind::Invalid);
    db.close().unwrap();
}

/// The progress of the history.
#[derive(Default)]
struct Known {
    made: bool,
    loaded: bool,
}

fn history(memory: Arc<MemoryDevice>) -> Known {
    let mut known = Known::default();
    let mut run = || -> Result<()> {
        let db = open(&memory)?;
        db.create_tree("old", TreeOptions::new())?.put(b"row", b"")?;
        known.made = true;
        load(&db)?;
        known.loaded = true;
        db.checkpoint()
    };
    let _ = run();
    known
}

#[test]
fn all_or_nothing_wherever_power_is_lost() {
    let seed = frondb_testkit::seed::from_env("FRONDB_SEED", 1);
    println!("FRONDB_SEED={seed}");
    let check = |crash: Crash, known: &Known| {
        let db = open(&crash.device).unwrap();
        if !known.made {
            return;
        }
        let found = contents(&db);
        assert!(found == after() || (found == before() && !known.loaded), "{found:?}");
        if found == before() {
            // The name is free, and trees that recovery dropped do not come back.
            load(&db).unwrap();
        }
        drop(db);
        let db = open(&crash.device).unwrap();
        assert_eq!(contents(&db), after());
        db.checkpoint().unwrap();
        drop(db);
        assert_eq!(contents(&open(&crash.device).unwrap()), after());
    };
    let report = for_each_crash_point(CrashTest::new(300, seed), history, check);
    println!("{report}");
    assert!(report.points > 20, "{report}");
}
