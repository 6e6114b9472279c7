//! An engine under full load, which is never idle: the log stays short, and an update function that
//! panics in the background stops the engine instead of making it hang.

use frondb::{Batch, Db, Durability, ErrorKind, Options, Tree, TreeOptions, UpdateFn};
use frondb_testkit::TempDir;

const WRITE_BUFFER: u64 = 256 << 10;
const BATCH: u64 = 100;
const VALUE_BYTES: usize = 500;

fn options() -> Options {
    Options::new().memory_bytes(16 << 20).write_buffer_bytes(WRITE_BUFFER).background_threads(2)
}

fn trees(db: &Db, count: u64) -> Vec<Tree> {
    let name = |i| format!("t{i}");
    (0..count).map(|i| db.create_tree(&name(i), TreeOptions::new()).unwrap()).collect()
}

/// Writes rows at random places into the trees in turn; calls `look` after each batch.
fn load(db: &Db, trees: &[Tree], rows: u64, look: &mut dyn FnMut(&Db)) {
    let mut batch = Batch::new();
    for row in 0..rows {
        let tree = &trees[(row % trees.len() as u64) as usize];
        let key = row.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        batch.put(tree, &key, &[row as u8; VALUE_BYTES]);
        if (row + 1) % BATCH == 0 {
            db.write(&batch, Durability::NoSync).unwrap();
            batch.clear();
            look(db);
        }
    }
}

/// Rule 10: the log that recovery replays is at most twice the write buffer, plus the commit that
/// exceeded this limit.
#[test]
fn the_log_stays_within_twice_the_write_buffer() {
    let batch_bytes = BATCH * (VALUE_BYTES as u64 + 64);
    let most = 2 * WRITE_BUFFER + batch_bytes;
    for count in [1, 7] {
        let dir = TempDir::new("busy-log");
        let db = Db::open(dir.path(), options()).unwrap();
        let trees = trees(&db, count);
        let mut longest = 0;
        load(&db, &trees, 20_000, &mut |db| {
            longest = longest.max(db.stats().wal_replay_bytes);
        });
        assert!(longest > WRITE_BUFFER / 2, "only {longest} bytes of log: the test tests nothing");
        assert!(longest <= most, "{longest} bytes of log, {count} trees");
        db.close().unwrap();
    }
}

/// Rule 10: small memtables that pin the log are logged again. So the log stays short, and
/// thousands of idle trees need no flush.
#[test]
fn idle_trees_neither_keep_the_log_nor_cost_a_flush() {
    let dir = TempDir::new("busy-idle-trees");
    let db = Db::open(dir.path(), options().background_threads(0)).unwrap();
    let idle = trees(&db, 50);
    idle.iter().for_each(|tree| tree.put(b"k", b"v").unwrap());
    let busy = [db.create_tree("busy", TreeOptions::new()).unwrap()];
    let mut longest = 0;
    load(&db, &busy, 20_000, &mut |db| {
        longest = longest.max(db.stats().wal_replay_bytes);
    });
    let most = 2 * WRITE_BUFFER + BATCH * (VALUE_BYTES as u64 + 64);
    assert!(longest <= most, "{longest} bytes of log");
    assert!(db.stats().relogs > 0, "nothing was logged again: the test tests nothing");
    for tree in &idle {
        assert_eq!(tree.stats().unwrap().raw_bytes, 0, "{} was flushed", tree.name());
    }
    drop((idle, busy, db));
    let db = Db::open(dir.path(), options().background_threads(0)).unwrap();
    for i in 0..50 {
        let tree = db.open_tree(&format!("t{i}")).unwrap();
        assert_eq!(tree.get(b"k").unwrap().unwrap(), b"v");
    }
}

/// An update function that appends the operand, and panics on the operand `panic`.
struct Panics;

impl UpdateFn for Panics {
    fn name(&self) -> &str {
        "panics"
    }

    fn apply(&self, _: &[u8], existing: Option<&[u8]>, operand: &[u8]) -> Result<Vec<u8>, String> {
        assert!(operand != b"panic", "told to");
        Ok([existing.unwrap_or_default(), operand].concat())
    }

    fn combine(&self, _: &[u8], _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

#[test]
fn a_function_that_panics_in_the_background_poisons_the_engine() {
    let dir = TempDir::new("busy-panic");
    let db = Db::open(dir.path(), options().update_fn(Panics)).unwrap();
    let tree = db.create_tree("t", TreeOptions::new().update_fn("panics", 1)).unwrap();
    let mut batch = Batch::new();
    batch.put(&tree, b"k", b"v");
    batch.update(&tree, b"k", b"panic");
    db.write(&batch, Durability::Sync).unwrap();
    let error = db.flush().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Poisoned);
    assert!(error.to_string().contains("told to"), "{error}");
    assert_eq!(db.write(&batch, Durability::Sync).unwrap_err().kind(), ErrorKind::Poisoned);
    assert_eq!(db.close().unwrap_err().kind(), ErrorKind::Poisoned);
    drop((tree, db));

    // All acknowledged rows exist.
    let db = Db::open(dir.path(), options().background_threads(0).update_fn(Panics)).unwrap();
    assert_eq!(db.list_trees(), ["t"]);
    assert_eq!(db.recovery().messages, 2);
}
