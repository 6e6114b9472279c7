//! What the test programs of this crate share: opening a database on a device in memory, reading
//! all of it, and listing a directory.
#![allow(dead_code, reason = "each program uses a part")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use frondb::{Db, Options, Result, Tree};
use frondb_core::clock::{ManualClock, SharedClock};
use frondb_core::executor::ThreadExecutor;
use frondb_core::sync::Arc;
use frondb_device::SharedDevice;
use frondb_testkit::TempDir;
use frondb_testkit::functions::Append;

pub(crate) type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Opens a database under a clock that advances a little each time it is read.
pub(crate) fn open(device: SharedDevice, options: Options) -> Result<Db> {
    open_at(device, options, Arc::new(ManualClock::stepping()))
}

/// Opens a database under a clock that does not advance: nothing happens because time has passed.
pub(crate) fn open_still(device: SharedDevice, options: Options) -> Db {
    open_at(device, options, Arc::new(ManualClock::new())).unwrap()
}

/// Opens a database with the least memory and the update function `append`, under a clock that
/// does not advance. The calls of the test do all work, because there are no background threads.
pub(crate) fn open_small(device: SharedDevice) -> Db {
    let options = Options::new().memory_bytes(4 << 20).background_threads(0).reserve_bytes(0);
    open_still(device, options.update_fn(Append))
}

/// Opens a database under a clock of the caller.
pub(crate) fn open_at(device: SharedDevice, options: Options, clock: SharedClock) -> Result<Db> {
    Db::open_on(device, None, options, clock, &ThreadExecutor::shared())
}

/// All rows of a tree as of now.
pub(crate) fn rows(tree: &Tree) -> Rows {
    let (mut cursor, mut rows) = (tree.cursor().unwrap(), Rows::new());
    while cursor.next().unwrap() {
        rows.insert(cursor.key().to_vec(), cursor.value().unwrap().to_vec());
    }
    rows
}

/// The rows of all trees, by the tree's name.
pub(crate) fn contents(db: &Db) -> BTreeMap<String, Rows> {
    let names = db.list_trees().into_iter();
    names.map(|name| (name.clone(), rows(&db.open_tree(&name).unwrap()))).collect()
}

/// The names of the files and folders in a directory, sorted.
pub(crate) fn names(dir: &TempDir) -> Vec<String> {
    let entries = std::fs::read_dir(dir.path()).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
