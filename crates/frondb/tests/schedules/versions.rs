//! Publishes versions under many schedules (rule 2): while memtables are frozen, flushed and
//! merged, a reader finds every acknowledged message, and none of them twice.
//!
//! ```text
//!   writer       +1                       each message is in one source of the published version:
//!   maintenance  freeze, flush, merge     active memtable -> frozen memtable -> trunk
//!   stowing      stow the tree            a version <-> the bytes of its trunk
//!   readers      get and scan the sum     lost: less than acknowledged; twice: more than begun
//! ```
//!
//! The messages are additions to one key, so the value counts them; a put that is read twice would
//! not show.

use std::sync::Arc;

use frondb::{Batch, Db, Durability, Tree, TreeOptions};
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_testkit::MemoryDevice;
use frondb_testkit::schedules;

use crate::open;

const COMMITS: u64 = 12;
/// So many that readers run until the last install, which takes far more steps than a read.
const READS: u64 = 100;
/// Number of flushes. The install of each may happen during a read.
const FLUSHES: u64 = 5;
const KEY: &[u8] = b"sum";

fn number(bytes: Option<&[u8]>) -> u64 {
    bytes.map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()))
}

struct Shared {
    db: Db,
    tree: Tree,
    /// Number of additions that were begun; `acknowledged` counts the additions that have returned.
    begun: AtomicU64,
    acknowledged: AtomicU64,
}

fn shared() -> Shared {
    let db = open(&MemoryDevice::new());
    let options = TreeOptions::new().update_fn("add", 1);
    let tree = db.create_tree("t", options).unwrap();
    Shared { db, tree, begun: AtomicU64::new(0), acknowledged: AtomicU64::new(0) }
}

fn write(shared: &Shared) {
    for _ in 0..COMMITS {
        shared.begun.fetch_add(1, Ordering::SeqCst);
        let mut batch = Batch::new();
        batch.update(&shared.tree, KEY, &1u64.to_le_bytes());
        shared.db.write(&batch, Durability::NoSync).unwrap();
        shared.acknowledged.fetch_add(1, Ordering::SeqCst);
    }
}

/// Freezes and flushes memtables, and then does the merges that are due.
fn maintain(shared: &Shared) {
    for _ in 0..FLUSHES {
        shared.db.flush().unwrap();
        while shared.db.run_one(true) {}
    }
}

/// Stows the tree whenever no thread uses it; each of the other threads opens it again.
fn stow(shared: &Shared) {
    for _ in 0..READS {
        let _ = shared.db.stow_trees();
    }
}

fn by_get(shared: &Shared) -> u64 {
    number(shared.tree.get(KEY).unwrap().as_deref())
}

fn by_cursor(shared: &Shared) -> u64 {
    let mut cursor = shared.tree.cursor().unwrap();
    let mut values = Vec::new();
    while cursor.next().unwrap() {
        assert_eq!(cursor.key(), KEY);
        values.push(number(Some(cursor.value().unwrap())));
    }
    assert!(values.len() <= 1, "one key came twice: {values:?}");
    values.pop().unwrap_or(0)
}

fn read(shared: &Shared, sum: fn(&Shared) -> u64) {
    let mut before = 0;
    for _ in 0..READS {
        let least = before.max(shared.acknowledged.load(Ordering::SeqCst));
        let sum = sum(shared);
        let most = shared.begun.load(Ordering::SeqCst);
        assert!(sum >= least, "a message is lost: {sum} of at least {least}");
        assert!(sum <= most, "a message is seen twice: {sum} of at most {most}");
        before = sum;
    }
}

fn schedule() {
    let shared = Arc::new(shared());
    let parts: [fn(&Shared); 5] =
        [write, maintain, stow, |shared| read(shared, by_get), |shared| read(shared, by_cursor)];
    let threads = parts.map(|part| {
        let shared = Arc::clone(&shared);
        shuttle::thread::spawn(move || part(&shared))
    });
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!((by_get(&shared), by_cursor(&shared)), (COMMITS, COMMITS));
}

#[test]
fn shuttle_no_reader_misses_a_message_or_sees_it_twice() {
    schedules::check_random(schedule, 1500);
}
