//! Helpers of this crate's test programs: opening a database on a device in memory, reading all of
//! its contents, and listing a directory.
#![allow(dead_code, reason = "each program uses a part")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use frondb::testing::TestDb;
use frondb::{Db, Options, Tree, TreeOptions};
use frondb_core::sync::Arc;
use frondb_device::SharedDevice;
use frondb_testkit::MemoryDevice;
use frondb_testkit::TempDir;
use frondb_testkit::functions::Append;

pub(crate) type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Opens the database on a device, with the update function `append` and a clock that does not
/// advance.
pub(crate) fn open_small(device: SharedDevice) -> Db {
    TestDb::on(device).options(Options::small().update_fn(Append)).still().open().unwrap()
}

/// Creates a database in memory, with a clock that does not advance.
pub(crate) fn database() -> Db {
    TestDb::on(Arc::new(MemoryDevice::new())).still().open().unwrap()
}

/// Creates a [`database`] with one tree.
pub(crate) fn database_with_tree() -> (Db, Tree) {
    let db = database();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    (db, tree)
}

/// Returns all current rows of a tree.
pub(crate) fn rows(tree: &Tree) -> Rows {
    let (mut cursor, mut rows) = (tree.cursor().unwrap(), Rows::new());
    while cursor.next().unwrap() {
        rows.insert(cursor.key().to_vec(), cursor.value().unwrap().to_vec());
    }
    rows
}

/// Returns the rows of all trees, by the names of the trees.
pub(crate) fn contents(db: &Db) -> BTreeMap<String, Rows> {
    let names = db.list_trees().into_iter();
    names.map(|name| (name.clone(), rows(&db.open_tree(&name).unwrap()))).collect()
}

/// Returns the names of the files and folders in a directory, sorted.
pub(crate) fn names(dir: &TempDir) -> Vec<String> {
    let entries = std::fs::read_dir(dir.path()).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
