//! Write stalls, when background work cannot keep up. A commit that waits for background work can
//! be cancelled and then leaves nothing, and small writes for which other threads wait proceed.

use std::sync::{Mutex, mpsc};
use std::thread;

use frondb::{
    Batch, Canceller, Db, Durability, ErrorKind, Options, TransactionOptions, TreeOptions,
};
use frondb_core::prng::Prng;
use frondb_testkit::TempDir;

/// Opens a database whose background work is limited to one byte per second, so that data stays in
/// memory.
fn stalling(dir: &TempDir) -> Db {
    let options = Options::new()
        .memory_bytes(16 << 20)
        .write_buffer_bytes(1 << 20)
        .background_bytes_per_second(1);
    Db::open(dir.path(), options).unwrap()
}

/// Commits transactions of about 40 KB until one fails; returns the number of commits, and the kind
/// of the error.
fn commit_until_cancelled(db: &Db, present: &Mutex<Option<Canceller>>) -> (u64, ErrorKind) {
    let tree = db.open_tree("t").unwrap();
    let (mut value, mut prng) = (vec![0; 40_000], Prng::new(1));
    for n in 0_u64.. {
        let txn = db.begin(TransactionOptions::new().durability(Durability::NoSync)).unwrap();
        prng.fill(&mut value);
        txn.put(&tree, &n.to_be_bytes(), &value).unwrap();
        *present.lock().unwrap() = Some(txn.canceller());
        if let Err(error) = txn.commit() {
            return (n, error.kind());
        }
    }
    unreachable!("memory has an end")
}

#[test]
fn a_commit_that_waits_for_room_can_be_cancelled_and_small_writes_go_through() {
    let dir = TempDir::new("write_stalls");
    let db = stalling(&dir);
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let counters = db.create_tree("counters", TreeOptions::new()).unwrap();
    let (present, (ended, end)) = (Mutex::new(None::<Canceller>), mpsc::channel());
    let mut counter = 0_u64;
    let (committed, kind) = thread::scope(|scope| {
        scope.spawn(|| ended.send(commit_until_cancelled(&db, &present)).unwrap());
        loop {
            // If no commit waits now, the cancellation only sets a flag, which ends with the
            // transaction.
            if let Some(canceller) = &*present.lock().unwrap() {
                canceller.cancel();
            }
            counter += 1;
            let mut batch = Batch::new();
            batch.put(&counters, b"counter", &counter.to_be_bytes());
            batch.exempt_from_pacing();
            db.write(&batch, Durability::NoSync).unwrap();
            match end.try_recv() {
                Ok(end) => return end,
                Err(_) => thread::yield_now(),
            }
        }
    });
    assert_eq!(kind, ErrorKind::Cancelled);
    assert!(committed > 10, "only {committed} transactions until memory was full");
    assert_eq!(tree.get(&committed.to_be_bytes()).unwrap(), None, "what was cancelled is there");
    assert!(tree.get(&(committed - 1).to_be_bytes()).unwrap().is_some());
    assert_eq!(counters.get(b"counter").unwrap().as_deref(), Some(&counter.to_be_bytes()[..]));
    // The wait of a cancelled commit counts like any other wait.
    let stalled = db.stats().write_stall_nanos;
    let txn = db.begin(TransactionOptions::new()).unwrap();
    txn.put(&tree, b"cancelled", &[0; 40_000]).unwrap();
    txn.canceller().cancel();
    assert_eq!(txn.commit().unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(db.stats().write_stall_nanos > stalled, "{stalled} before and after");
    // Later commits proceed once background work can keep up again.
    db.set_background_bytes_per_second(0).unwrap();
    tree.put(b"after", b"").unwrap();
    db.close().unwrap();
}

#[test]
fn a_cancel_that_came_before_a_commit_can_be_forgotten() {
    let dir = TempDir::new("write_stalls");
    let db = Db::open(dir.path(), Options::new()).unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let txn = db.begin(TransactionOptions::new()).unwrap();
    txn.put(&tree, b"key", b"value").unwrap();
    txn.canceller().cancel();
    txn.forget_cancel().unwrap();
    txn.commit().unwrap();
    assert_eq!(txn.forget_cancel().unwrap_err().kind(), ErrorKind::Invalid);
    assert!(tree.get(b"key").unwrap().is_some());
}
