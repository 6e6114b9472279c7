//! Asynchronous calls under many schedules: whatever the order of polls, reads, drops and the close
//! of the database, every future ends, with its value or with `Closed`.
//!
//! ```text
//!   tasks    look up keys that are on the device; drop a future; scan; sync
//!   closing  closes the database at some moment
//! ```

use std::sync::Arc;

use frondb::{Batch, CursorOptions, Db, Durability, ErrorKind, Result, Tree, TreeOptions};
use frondb_testkit::MemoryDevice;
use frondb_testkit::schedules;
use shuttle::future::block_on;

use crate::open;

const KEYS: u8 = 12;

/// Returns a database whose rows are not in memory.
fn reopened() -> (Db, Tree) {
    let device = MemoryDevice::new();
    let db = open(&device);
    let tree = db.create_tree("t", TreeOptions::default()).unwrap();
    let mut batch = Batch::new();
    for key in 0..KEYS {
        batch.put(&tree, [key], [key; 9]);
    }
    db.write(&batch, Durability::NoSync).unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    drop((db, tree));
    let db = open(&device);
    let tree = db.open_tree("t").unwrap();
    (db, tree)
}

/// Returns the value; `None` if the database was closed before.
fn unless_closed<T>(result: Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
            None
        }
    }
}

fn look_up(tree: &Tree, from: u8) {
    let dropped = tree.get_async([from]);
    let futures: Vec<_> = (from..KEYS).map(|key| (key, tree.get_async([key]))).collect();
    drop(dropped);
    for (key, future) in futures {
        if let Some(value) = unless_closed(block_on(future)) {
            assert_eq!(value, Some(vec![key; 9]));
        }
    }
}

fn scan(tree: &Tree) {
    let Some(mut entries) = unless_closed(tree.range_async(CursorOptions::new())) else { return };
    for key in 0..KEYS {
        let Some(entry) = unless_closed(block_on(entries.next()).unwrap()) else { return };
        assert_eq!(entry, (vec![key], vec![key; 9]));
    }
    // The end of the range may be found only by a part that a close refuses.
    let end = block_on(entries.next()).and_then(unless_closed);
    assert_eq!(end, None);
}

fn schedule(closes: bool) {
    let (db, tree) = reopened();
    let shared = Arc::new((db, tree));
    let tasks: [fn(&Db, &Tree); 4] = [
        |_, tree| look_up(tree, 0),
        |_, tree| look_up(tree, KEYS / 2),
        |_, tree| scan(tree),
        |db, _| unless_closed(block_on(db.sync_async())).unwrap_or_default(),
    ];
    let threads = tasks.map(|task| {
        let shared = Arc::clone(&shared);
        shuttle::thread::spawn(move || task(&shared.0, &shared.1))
    });
    if closes {
        shared.0.close().unwrap();
    }
    for thread in threads {
        thread.join().unwrap();
    }
    // Without a close, the drop of the last handle ends the threads.
    assert!(closes || shared.0.stats().reads > 0, "nothing had to wait");
}

#[test]
fn shuttle_every_future_ends() {
    schedules::check_random(|| schedule(false), 100);
}

#[test]
fn shuttle_every_future_ends_when_the_database_is_closed() {
    schedules::check_random(|| schedule(true), 150);
    schedules::check_pct(|| schedule(true), 150, 4);
}
