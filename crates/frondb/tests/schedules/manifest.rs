//! Replaces the manifest under many schedules. Checkpoints rewrite the manifest while memtables are
//! flushed, runs are merged, and trees are created and dropped. An edit during a rewrite must be in
//! the new file, either in its snapshot or after it, so that a reopened database has all edits. If
//! the edit of a flush were missing, the flushed rows would be lost, because the log may already
//! have been freed (rule 6).
//!
//! ```text
//!   writer        put, flush, merge, create and drop trees: each appends edits to the manifest
//!   checkpoints   capture the state |             | begin the new file
//!                                    an edit here must not be lost
//! ```

use std::sync::Arc;

use frondb::{Batch, Db, Durability, Tree, TreeOptions};
use frondb_testkit::MemoryDevice;
use frondb_testkit::schedules;

use crate::open;

const ROUNDS: u64 = 4;
const CHECKPOINTS: u64 = 3;

fn put(db: &Db, tree: &Tree, row: u64) {
    let mut batch = Batch::new();
    batch.put(tree, &row.to_be_bytes(), &row.to_le_bytes());
    db.write(&batch, Durability::NoSync).unwrap();
}

fn write(db: &Db, tree: &Tree) {
    for row in 0..ROUNDS {
        put(db, tree, row);
        db.flush().unwrap();
        while db.run_one(true) {}
        let name = format!("tree {row}");
        put(db, &db.create_tree(&name, TreeOptions::default()).unwrap(), row);
        if row % 2 == 1 {
            db.drop_tree(&name).unwrap();
        }
    }
}

fn schedule() {
    let device = MemoryDevice::new();
    let db = Arc::new(open(&device));
    let tree = db.create_tree("t", TreeOptions::default()).unwrap();
    let writer = {
        let (db, tree) = (Arc::clone(&db), tree.clone());
        shuttle::thread::spawn(move || write(&db, &tree))
    };
    let checkpoints = {
        let db = Arc::clone(&db);
        shuttle::thread::spawn(move || {
            for _ in 0..CHECKPOINTS {
                db.checkpoint().unwrap();
            }
        })
    };
    writer.join().unwrap();
    checkpoints.join().unwrap();
    drop((tree, db));

    let db = open(&device);
    assert_eq!(db.list_trees(), ["t", "tree 0", "tree 2"]);
    let tree = db.open_tree("t").unwrap();
    for row in 0..ROUNDS {
        let found = tree.get(&row.to_be_bytes()).unwrap();
        assert_eq!(found, Some(row.to_le_bytes().to_vec()), "row {row}");
    }
    for row in [0, 2] {
        let tree = db.open_tree(&format!("tree {row}")).unwrap();
        let found = tree.get(&u64::to_be_bytes(row)).unwrap();
        assert_eq!(found, Some(row.to_le_bytes().to_vec()), "the row of tree {row}");
    }
}

#[test]
fn shuttle_no_edit_falls_between_two_manifests() {
    schedules::check_random(schedule, 400);
}
