//! Cursors lose their versions under many schedules (rule 12). The memtables and runs that cursors
//! pin are frozen, flushed, merged and taken away from the cursors, and finally the tree is
//! dropped. Each cursor still shows its snapshot, with each key once.
//!
//! ```text
//!   maintenance  writes every key again, flushes, merges; drops the tree
//!   cursors      forward, backward, to and fro: all keys with the values of their snapshot
//! ```

use std::sync::Arc;

use frondb::{Batch, Cursor, Db, Durability, Tree, TreeOptions};
use frondb_testkit::MemoryDevice;
use frondb_testkit::schedules;

use crate::open;

/// Keys; enough for several chunks of each source, since the first chunks have 16 or 32 entries.
const KEYS: u8 = 60;
const ROUNDS: u8 = 4;

struct Shared {
    db: Db,
    tree: Tree,
}

fn shared() -> Shared {
    let db = open(&MemoryDevice::new());
    let tree = db.create_tree("t", TreeOptions::default()).unwrap();
    Shared { db, tree }
}

fn write(shared: &Shared, round: u8) {
    let mut batch = Batch::new();
    for key in 0..KEYS {
        batch.put(&shared.tree, &[key], &[round]);
    }
    shared.db.write(&batch, Durability::NoSync).unwrap();
}

fn maintain(shared: &Shared, drops: bool) {
    for round in 1..=ROUNDS {
        write(shared, round);
        shared.db.flush().unwrap();
        while shared.db.run_one(true) {}
    }
    if drops {
        shared.db.drop_tree("t").unwrap();
    }
}

/// Checks that the cursor is at `key`, with the value that every key has at its snapshot.
fn check(cursor: &Cursor, key: u8, round: &mut Option<u8>) {
    assert_eq!(cursor.key(), [key]);
    let value = cursor.value().unwrap()[0];
    assert_eq!(*round.get_or_insert(value), value, "key {key} of another state");
}

fn forward(mut cursor: Cursor) {
    let mut round = None;
    for key in 0..KEYS {
        assert!(cursor.next().unwrap(), "key {key} is missing");
        check(&cursor, key, &mut round);
    }
    assert!(!cursor.next().unwrap());
}

fn backward(mut cursor: Cursor) {
    let mut round = None;
    for key in (0..KEYS).rev() {
        assert!(cursor.prev().unwrap(), "key {key} is missing");
        check(&cursor, key, &mut round);
    }
    assert!(!cursor.prev().unwrap());
}

fn to_and_fro(mut cursor: Cursor) {
    let mut round = None;
    assert!(cursor.first().unwrap());
    for key in 1..KEYS - 1 {
        assert!(cursor.next().unwrap() && cursor.next().unwrap());
        check(&cursor, key + 1, &mut round);
        assert!(cursor.prev().unwrap());
        check(&cursor, key, &mut round);
    }
}

fn schedule(drops: bool) {
    let shared = Arc::new(shared());
    write(&shared, 0);
    let readers: [fn(Cursor); 3] = [forward, backward, to_and_fro];
    let mut threads = Vec::new();
    for reader in readers {
        let cursor = shared.tree.cursor().unwrap();
        threads.push(shuttle::thread::spawn(move || reader(cursor)));
    }
    let worker = Arc::clone(&shared);
    threads.push(shuttle::thread::spawn(move || maintain(&worker, drops)));
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn shuttle_cursors_show_their_snapshots_while_versions_are_taken() {
    schedules::check_random(|| schedule(false), 300);
}

#[test]
fn shuttle_cursors_go_on_in_a_tree_that_is_dropped() {
    schedules::check_pct(|| schedule(true), 300, 4);
}
