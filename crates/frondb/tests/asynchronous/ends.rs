//! How a future ends that has to wait: dropped, refused, closed, or with a panic.

use std::task::{Context, Wake, Waker};

use frondb::testing::TestDb;
use frondb::{Db, ErrorKind, Options, TreeOptions, UpdateFn};
use frondb_core::executor::SharedExecutor;
use frondb_core::sync::atomic::{AtomicUsize, Ordering};
use frondb_core::sync::{Arc, Mutex};
use frondb_device::SharedDevice;
use frondb_testkit::MemoryDevice;
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::join_all;

use crate::support::{
    HeldThreads, KEYS, key, open_rows, opening, poll_once, rows_on_device, value,
};

fn device() -> SharedDevice {
    Arc::new(rows_on_device())
}

#[test]
fn a_dropped_future_does_not_disturb_the_others() {
    let (db, tree) = open_rows(opening(&device()));
    let mut kept = Vec::new();
    for n in 0..KEYS {
        let mut pending = tree.get_async(key(n));
        // Some are dropped before, some after their first poll.
        let is_polled = n % 3 == 0 && poll_once(&mut pending).is_some();
        if n % 2 == 0 && !is_polled {
            kept.push((n, pending));
        }
    }
    for (n, pending) in kept {
        assert_eq!(block_on(pending).unwrap(), Some(value(n)));
    }
    db.close().unwrap();
}

/// Nothing is read for a future that was dropped before a thread began.
#[test]
fn a_lookup_that_nothing_waits_for_is_left_out() {
    let threads = Arc::new(HeldThreads::default());
    let executor = Arc::clone(&threads) as SharedExecutor;
    let (db, tree) = open_rows(opening(&device()).executor(executor));
    let before = db.stats().gets;
    drop((0..100).map(|n| tree.get_async(key(n))).collect::<Vec<_>>());
    let kept = tree.get_async(key(7));
    assert!((1..=4).contains(&threads.count()), "threads are started when they are needed");
    std::thread::scope(|scope| {
        scope.spawn(|| threads.run());
        assert_eq!(block_on(kept).unwrap(), Some(value(7)));
        assert_eq!(db.stats().gets, before + 1);
        db.close().unwrap();
    });
}

struct CountWakes(AtomicUsize);

impl Wake for CountWakes {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_close_ends_every_future() {
    for is_closed in [true, false] {
        let executor = Arc::new(HeldThreads::default()) as SharedExecutor;
        let (db, tree) = open_rows(opening(&device()).executor(executor));
        let wakes = std::sync::Arc::new(CountWakes(AtomicUsize::new(0)));
        let waker = Waker::from(std::sync::Arc::clone(&wakes));
        let mut all: Vec<_> = (0..50).map(|n| tree.get_async(key(n))).collect();
        for pending in &mut all {
            assert!(pending.poll_unpin(&mut Context::from_waker(&waker)).is_pending());
            assert!(pending.poll_unpin(&mut Context::from_waker(&waker)).is_pending());
        }
        let mut entries = tree.range_async(frondb::CursorOptions::new()).unwrap();
        assert!(entries.next().now_or_never().is_none());
        if is_closed {
            db.close().unwrap();
        }
        drop((db, tree));
        assert_eq!(wakes.0.load(Ordering::SeqCst), 50, "one wake for each future");
        for pending in &mut all {
            assert_eq!(poll_once(pending).unwrap().unwrap_err().kind(), ErrorKind::Closed);
            assert_eq!(poll_once(pending).unwrap().unwrap_err().kind(), ErrorKind::Invalid);
        }
        let entry = entries.next().now_or_never().unwrap();
        assert_eq!(entry.unwrap().unwrap_err().kind(), ErrorKind::Closed);
        assert!(entries.next().now_or_never().unwrap().is_none());
    }
}

/// Threads read while the database is closed: each future has its value or `Closed`.
#[test]
fn a_close_during_reads_ends_every_future() {
    for round in 0..6 {
        let (db, tree) = open_rows(opening(&device()));
        let all: Vec<_> = (0..KEYS).map(|n| tree.get_async(key(n))).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                if round % 2 == 0 {
                    let _ = block_on(tree.get_async(key(KEYS / 2)));
                }
                db.close().unwrap();
            });
            for (n, found) in (0..KEYS).zip(block_on(join_all(all))) {
                match found {
                    Ok(found) => assert_eq!(found, Some(value(n))),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Closed),
                }
            }
        });
    }
}

#[test]
fn a_system_without_threads_is_an_error() {
    let executor = Arc::new(HeldThreads::refusing()) as SharedExecutor;
    let (db, tree) = open_rows(opening(&device()).executor(executor));
    assert_eq!(block_on(tree.get_async(key(1))).unwrap_err().kind(), ErrorKind::Io);
    tree.put("new", "1").unwrap();
    assert_eq!(block_on(tree.get_async("new")).unwrap(), Some(b"1".to_vec()));
    db.close().unwrap();
}

/// Closes or drops the database on the thread that calls it.
struct EndDatabase {
    db: Mutex<Option<Db>>,
    closes: bool,
}

impl Wake for EndDatabase {
    fn wake(self: std::sync::Arc<Self>) {
        let db = self.db.lock().take();
        if let Some(db) = db
            && self.closes
        {
            db.close().unwrap();
        }
    }
}

/// The thread that calls a waker would wait for itself if the end of the database joined it.
#[test]
fn a_waker_may_end_the_database() {
    for closes in [true, false] {
        let threads = Arc::new(HeldThreads::default());
        let executor = Arc::clone(&threads) as SharedExecutor;
        let (db, tree) = open_rows(opening(&device()).executor(executor));
        let mut pending = tree.get_async(key(1));
        drop(tree);
        let ends = std::sync::Arc::new(EndDatabase { db: Mutex::new(Some(db)), closes });
        let waker = Waker::from(std::sync::Arc::clone(&ends));
        assert!(pending.poll_unpin(&mut Context::from_waker(&waker)).is_pending());
        // Returns once the waker has ended the database.
        threads.run();
        assert!(ends.db.lock().is_none());
        assert_eq!(poll_once(&mut pending).unwrap().unwrap(), Some(value(1)));
    }
}

struct Panics;

impl UpdateFn for Panics {
    fn name(&self) -> &str {
        "panics"
    }

    fn apply(&self, _: &[u8], _: Option<&[u8]>, _: &[u8]) -> Result<Vec<u8>, String> {
        panic!("the update function panics")
    }

    fn combine(&self, _: &[u8], _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

/// The value is on the device, so a reader thread calls the function.
#[test]
fn a_panic_of_an_update_function_is_an_error() {
    let memory = Arc::new(MemoryDevice::new());
    let opening = || {
        let shared = Arc::clone(&memory) as SharedDevice;
        TestDb::on(shared).options(Options::small().update_fn(Panics)).still()
    };
    let db = opening().open().unwrap();
    let tree = db.create_tree("t", TreeOptions::new().update_fn("panics", 1)).unwrap();
    tree.put("k", [7; 100_000]).unwrap();
    tree.put("l", [8; 100_000]).unwrap();
    db.flush().unwrap();
    tree.update(b"k", b"+").unwrap();
    let error = block_on(tree.get_async("k")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
    // The thread continues.
    assert_eq!(block_on(tree.get_async("l")).unwrap(), Some(vec![8; 100_000]));
}
