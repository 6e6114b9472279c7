//! Reads at a snapshot under many schedules: rules 8 and 12. A SeqNo becomes visible when its whole
//! batch is in the memtables, a cursor's snapshot is registered before its version is taken, and a
//! point read takes its version before its SeqNo. So a snapshot shows the same values by cursor and
//! by get, in both trees of a batch, now and later, whatever is flushed and merged in between.
//!
//! ```text
//!   writer   one batch: +1 in both trees, then freeze, flush, merge
//!   reader   cursor -> its snapshot -> get in one tree, in the other, and again
//! ```

use std::sync::Arc;

use frondb::{Batch, Db, Durability, Tree, TreeOptions};
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_testkit::MemoryDevice;
use frondb_testkit::schedules;

use crate::open;

const COMMITS: u64 = 3;
/// So many that readers run until the last install, which takes far more steps than a read.
const READS: u64 = 30;
const KEY: &[u8] = b"sum";

fn number(bytes: Option<&[u8]>) -> u64 {
    bytes.map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()))
}

struct Shared {
    db: Db,
    /// Every batch adds one to the value in both trees.
    trees: [Tree; 2],
    acknowledged: AtomicU64,
}

fn shared() -> Shared {
    let db = open(&MemoryDevice::new());
    let options = TreeOptions::new().update_fn("add", 1);
    let trees = ["a", "b"].map(|name| db.create_tree(name, options.clone()).unwrap());
    Shared { db, trees, acknowledged: AtomicU64::new(0) }
}

fn commit(shared: &Shared) {
    let mut batch = Batch::new();
    shared.trees.iter().for_each(|tree| batch.update(tree, KEY, &1u64.to_le_bytes()));
    shared.db.write(&batch, Durability::NoSync).unwrap();
    shared.acknowledged.fetch_add(1, Ordering::SeqCst);
}

fn write(shared: &Shared) {
    for _ in 0..COMMITS {
        commit(shared);
        shared.db.flush().unwrap();
        while shared.db.run_one(true) {}
    }
}

/// Reads the newest state, which must contain all acknowledged additions.
fn read_now(shared: &Shared) {
    for _ in 0..READS {
        let least = shared.acknowledged.load(Ordering::SeqCst);
        let sum = number(shared.trees[0].get(KEY).unwrap().as_deref());
        assert!(sum >= least, "{sum} of at least {least} is visible");
    }
}

fn read_at_snapshots(shared: &Shared) {
    let [a, b] = &shared.trees;
    for _ in 0..READS {
        let mut cursor = a.cursor().unwrap();
        let found = cursor.first().unwrap();
        let sum = number(found.then(|| cursor.value().unwrap()));
        for tree in [a, b, a] {
            let at = tree.get_at(KEY, cursor.snapshot()).unwrap();
            assert_eq!(number(at.as_deref()), sum, "a snapshot shows two states");
        }
    }
}

fn schedule(reader: fn(&Shared)) {
    let shared = Arc::new(shared());
    // Commit first, so that from its beginning a reader has data that it could miss.
    commit(&shared);
    let threads = [write, reader].map(|part| {
        let shared = Arc::clone(&shared);
        shuttle::thread::spawn(move || part(&shared))
    });
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn shuttle_a_snapshot_shows_one_state() {
    schedules::check_random(|| schedule(read_at_snapshots), 200);
    // Few switches between threads, so that whole flushes run between two steps of a reader.
    schedules::check_pct(|| schedule(read_at_snapshots), 800, 3);
}

#[test]
fn shuttle_a_point_read_sees_what_was_acknowledged() {
    schedules::check_pct(|| schedule(read_now), 1500, 2);
}
