//! Rules of docs/design/rules.md that a random history exercises only by chance. Each test performs
//! the one step that its rule is about: an edit that frees log, a snapshot of the manifest, an
//! install, a choice of the scheduler. The tests are unit tests of the crate, because they call
//! parts of a [`Db`].
//!
//! | file | rules |
//! |---|---|
//! | [`full_disk`] | 25: a full disk and its reserve |
//! | [`lifetimes`] | 1, 7, 12, 17: when a run, an extent and a large value may be freed |
//! | [`log`] | 6 to 9, 25: where the log begins and ends, ids and SeqNos |
//! | [`memory`] | 24: charges on the memory budget |
//! | [`relog`] | 10: memtables that are logged again |
//! | [`scheduling`] | 3, 10, 15, 25: which background work is chosen next |
//! | [`stowing`] | 7, 8, 24: trees that nothing uses take few bytes |

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod full_disk;
mod lifetimes;
mod log;
mod memory;
mod relog;
mod scheduling;
mod stowing;

use crate::options::TreeOptions;
use crate::testing::TestDb;
use crate::tree::Tree;
use frondb_background::Background;
use frondb_commit::Batch;
use frondb_commit::Durability;
use frondb_core::Result;
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_testkit::MemoryDevice;
use frondb_testkit::functions::AppendEach;

use crate::db::Db;
use crate::options::Options;

/// A call that durably records the position from which recovery needs the log.
type Keep = fn(&Background);

const KEEPS: [(&str, Keep); 2] = [
    ("an edit", |background| background.trim_log().unwrap()),
    ("a snapshot of the manifest", |background| assert!(background.rotate_manifest(true).unwrap())),
];

fn open(device: &MemoryDevice) -> Result<Db> {
    TestDb::on(Arc::new(device.clone())).open()
}

fn open_reserving(device: &MemoryDevice, reserve_bytes: u64) -> Result<Db> {
    TestDb::on(Arc::new(device.clone()))
        .options(Options { reserve_bytes, ..Options::small() })
        .open()
}

/// Opens a database with the update function `append`.
fn open_updating(device: &MemoryDevice) -> Result<Db> {
    let mut options = Options::small();
    options.update_fns.register(Arc::new(AppendEach));
    TestDb::on(Arc::new(device.clone())).options(options).open()
}

fn create(db: &Db, name: &str) -> Tree {
    db.create_tree(name, TreeOptions::default()).unwrap()
}

fn put(db: &Db, tree: &Tree, key: &str, durability: Durability) {
    let mut batch = Batch::new();
    batch.put(tree, key.as_bytes(), b"value");
    db.write(&batch, durability).unwrap();
}

fn has(db: &Db, tree: &str, key: &str) -> bool {
    let tree = db.open_tree(tree).unwrap();
    tree.get(key.as_bytes()).unwrap().is_some()
}

fn put_rows(db: &Db, tree: &Tree, rows: impl Iterator<Item = u64>) {
    let mut prng = Prng::new(1);
    for row in rows {
        let mut value = vec![0; 1000];
        prng.fill(&mut value);
        let mut batch = Batch::new();
        batch.put(tree, &row.to_be_bytes(), &value);
        db.write(&batch, Durability::NoSync).unwrap();
    }
}

fn delete_row(db: &Db, tree: &Tree, row: u64) {
    let mut batch = Batch::new();
    batch.delete(tree, &row.to_be_bytes());
    db.write(&batch, Durability::NoSync).unwrap();
}
