//! What power loss removes and what it keeps, for every choice of durability: of a write, of a
//! handle and of the database, even while the choice changes.

use std::time::Duration;

use frondb::testing::TestDb;
use frondb::{
    Batch, Db, Durability, ErrorKind, Options, SyncMode, TransactionOptions, Tree, TreeOptions,
};
use frondb_core::clock::{Clock, ManualClock, SharedClock, SystemClock};
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_device::SharedDevice;
use frondb_testkit::faults::Script;
use frondb_testkit::functions;
use frondb_testkit::{CrashMode, Faults, MemoryDevice};

fn options() -> Options {
    Options::small().memory_bytes(8 << 20)
}

fn open_at(memory: &MemoryDevice, options: Options, clock: SharedClock) -> Db {
    let device: SharedDevice = Arc::new(memory.clone());
    TestDb::on(device).options(options).clock(clock).open().unwrap()
}

fn open(memory: &MemoryDevice, options: Options) -> Db {
    open_at(memory, options, Arc::new(ManualClock::stepping()))
}

/// Returns for each key whether it would exist after a power loss now.
fn survivors(memory: &MemoryDevice, keys: &[String]) -> Vec<bool> {
    let device = memory.crash(CrashMode::LoseUnsynced);
    let db = open(&device, options());
    let tree = db.open_tree("t").unwrap();
    keys.iter().map(|key| tree.exists(key.as_bytes()).unwrap()).collect()
}

fn survives(memory: &MemoryDevice, key: &str) -> bool {
    survivors(memory, &[key.to_owned()])[0]
}

fn put(tree: &Tree, key: &str) {
    tree.put(key.as_bytes(), b"value").unwrap();
}

#[test]
fn commits_older_than_the_interval_survive() {
    const MILLIS: u64 = 100;
    let memory = MemoryDevice::new();
    let clock = Arc::new(ManualClock::new());
    let mode = SyncMode::EveryMillis(MILLIS);
    let db = open_at(&memory, options().sync(mode), Arc::clone(&clock) as SharedClock);
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let unsynced = db.with_commit_sync(Durability::NoSync).open_tree("t").unwrap();
    let mut prng = Prng::new(11);
    let (mut keys, mut times) = (Vec::new(), Vec::new());
    let (mut old, mut lost) = (0, 0);
    for round in 0..60 {
        // Also test long pauses, in which only the clock triggers the sync.
        for i in 0..prng.below(4) {
            let key = format!("{round} {i}");
            put(if prng.chance(1, 2) { &tree } else { &unsynced }, &key);
            keys.push(key);
            times.push(clock.now());
        }
        clock.advance(Duration::from_millis(prng.below(70)));
        while db.run_one(false) {}
        let now = clock.now();
        for (there, time) in survivors(&memory, &keys).into_iter().zip(&times) {
            if now.since(*time) >= Duration::from_millis(MILLIS) {
                old += 1;
                assert!(there, "acknowledged {:?} ago, in round {round}", now.since(*time));
            }
            lost += u32::from(!there);
        }
    }
    assert!(old > 100 && lost > 10, "{old} were old, {lost} lost: too few to tell");
}

/// A worker that sleeps because it has no other work must wake up for the sync.
#[test]
fn a_worker_syncs_although_nothing_more_is_written() {
    let memory = MemoryDevice::new();
    let options = options().memory_bytes(16 << 20).background_threads(2);
    let options = options.sync(SyncMode::EveryMillis(1));
    let clock = SystemClock::shared();
    let db = open_at(&memory, options, Arc::clone(&clock));
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    for round in 0..20 {
        let before = db.stats().wal_syncs;
        let key = format!("{round}");
        put(&tree, &key);
        let since = clock.now();
        while db.stats().wal_syncs == before {
            // The limit only ends a failing test.
            assert!(clock.now().since(since) < Duration::from_secs(100), "it is never synced");
            std::thread::yield_now();
        }
        // The sync that was counted may have begun before the put.
        while !survives(&memory, &key) {
            assert!(clock.now().since(since) < Duration::from_secs(100), "it is never synced");
        }
    }
    // A worker that waits for the end of a long interval must notice a shorter one.
    db.set_sync_mode(SyncMode::EveryMillis(SyncMode::MILLIS_MAX)).unwrap();
    put(&tree, "long");
    assert!(!survives(&memory, "long"));
    db.set_sync_mode(SyncMode::EveryMillis(1)).unwrap();
    put(&tree, "short");
    let since = clock.now();
    while !survives(&memory, "short") {
        assert!(clock.now().since(since) < Duration::from_secs(100), "it is never synced");
    }
}

#[test]
fn a_change_of_the_mode_leaves_no_promise_open() {
    let modes = [SyncMode::Always, SyncMode::EveryMillis(1000), SyncMode::Never];
    for from in modes {
        for to in modes {
            let memory = MemoryDevice::new();
            let db = open(&memory, options().sync(from));
            let tree = db.create_tree("t", TreeOptions::new()).unwrap();
            assert_eq!(db.sync_mode(), from);
            put(&tree, "before");
            let mut batch = Batch::new();
            batch.put(&tree, b"unsynced", b"value");
            db.write(&batch, Durability::NoSync).unwrap();
            assert_eq!(survives(&memory, "before"), from == SyncMode::Always);
            db.set_sync_mode(to).unwrap();
            assert_eq!(db.clone().sync_mode(), to);
            assert!(survives(&memory, "before") && survives(&memory, "unsynced"), "{from:?}");
            put(&tree, "behind");
            assert_eq!(survives(&memory, "behind"), to == SyncMode::Always, "{from:?} {to:?}");
            drop((tree, db));
            // The next open begins with the value of its own option.
            let db = open(&memory, options());
            assert_eq!(db.sync_mode(), SyncMode::Always);
        }
    }
}

#[test]
fn a_bad_interval_changes_nothing_and_a_failed_sync_is_reported() {
    let memory = MemoryDevice::new();
    let faults = Arc::new(Faults::over(Arc::new(memory), &Script::default()));
    let device = Arc::clone(&faults) as SharedDevice;
    let options = options().sync(SyncMode::Never);
    let db = TestDb::on(device).options(options).open().unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    for millis in [0, SyncMode::MILLIS_MAX + 1, u64::MAX] {
        let error = db.set_sync_mode(SyncMode::EveryMillis(millis)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("86400000"), "{error}");
        assert_eq!(db.sync_mode(), SyncMode::Never);
    }
    put(&tree, "key");
    faults.set_script(&"fail sync wal nth=1".parse().unwrap());
    let error = db.set_sync_mode(SyncMode::Always).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Poisoned);
    assert_eq!(tree.put(b"key", b"value").unwrap_err().kind(), ErrorKind::Poisoned);
}

/// Counts the log's syncs for one write of each kind.
fn syncs_of_writes(db: &Db, tree: &Tree) -> u64 {
    let before = db.stats().wal_syncs;
    tree.put(b"a", b"value").unwrap();
    tree.update(b"a", b"!").unwrap();
    tree.delete(b"b").unwrap();
    tree.delete_range(b"c", Some(b"d")).unwrap();
    db.stats().wal_syncs - before
}

#[test]
fn a_handle_says_how_durable_its_writes_are() {
    let memory = MemoryDevice::new();
    let db = open(&memory, options().update_fn(functions::Append));
    let bulk = db.with_commit_sync(Durability::NoSync);
    let tree = TreeOptions::new().update_fn("append", 1);
    let (made, safe) = (bulk.create_tree("t", tree.clone()), db.create_tree("safe", tree));
    let (made, safe) = (made.unwrap(), safe.unwrap());
    assert_eq!((db.commit_sync(), bulk.commit_sync()), (Durability::Sync, Durability::NoSync));
    assert_eq!(bulk.clone().commit_sync(), Durability::NoSync);
    assert_eq!(syncs_of_writes(&db, &made), 0);
    assert_eq!(syncs_of_writes(&db, &made.clone()), 0);
    assert_eq!(syncs_of_writes(&db, &bulk.open_tree("safe").unwrap()), 0);
    assert_eq!(syncs_of_writes(&db, &safe), 4);
    assert_eq!(syncs_of_writes(&db, &db.open_tree("t").unwrap()), 4);
    assert_eq!(
        syncs_of_writes(&db, &bulk.with_commit_sync(db.commit_sync()).open_tree("t").unwrap()),
        4
    );

    put(&made, "fast");
    assert!(!survives(&memory, "fast"));
    // When the process ends without power loss, no commit is lost.
    drop((db, bulk, made, safe));
    assert!(open(&memory, options()).open_tree("t").unwrap().exists(b"fast").unwrap());
}

/// Counts the log's syncs for a transaction with one write.
fn syncs_of_a_transaction(db: &Db, tree: &Tree, options: TransactionOptions) -> u64 {
    let before = db.stats().wal_syncs;
    let transaction = db.begin(options).unwrap();
    transaction.put(tree, b"key", b"value").unwrap();
    transaction.commit().unwrap();
    db.stats().wal_syncs - before
}

#[test]
fn a_transaction_is_as_durable_as_its_handle_unless_it_says_more() {
    let memory = MemoryDevice::new();
    let db = open(&memory, options());
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let bulk = db.with_commit_sync(Durability::NoSync);
    let new = TransactionOptions::new;
    assert_eq!(syncs_of_a_transaction(&db, &tree, new()), 1);
    assert_eq!(syncs_of_a_transaction(&bulk, &tree, new()), 0);
    assert_eq!(syncs_of_a_transaction(&bulk, &tree, new().durability(Durability::Sync)), 1);
    assert_eq!(syncs_of_a_transaction(&db, &tree, new().durability(Durability::NoSync)), 0);
}

/// A synced commit makes all earlier commits durable: the log never loses a part in its middle.
#[test]
fn a_synced_commit_makes_those_before_it_durable_too() {
    let memory = MemoryDevice::new();
    let db = open(&memory, options());
    db.create_tree("t", TreeOptions::new()).unwrap();
    put(&db.with_commit_sync(Durability::NoSync).open_tree("t").unwrap(), "fast");
    assert!(!survives(&memory, "fast"));
    put(&db.open_tree("t").unwrap(), "safe");
    assert!(survives(&memory, "fast") && survives(&memory, "safe"));
}

/// Returns the number of log files after 400 kB of log.
fn log_files(segment_bytes: u64) -> usize {
    let memory = MemoryDevice::new();
    let db = open(&memory, options().log_segment_bytes(segment_bytes));
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let mut keys = Vec::new();
    for i in 0..100 {
        keys.push(format!("{i}"));
        tree.put(keys[i].as_bytes(), &[i as u8; 4000]).unwrap();
    }
    assert_eq!(survivors(&memory, &keys), vec![true; 100]);
    let files = frondb_device::Device::list(&memory, "wal").unwrap();
    files.iter().filter(|name| name.ends_with(".wal")).count()
}

#[test]
fn a_log_file_ends_at_the_size_that_was_asked_for() {
    assert_eq!(log_files(64 << 10), 7);
    assert_eq!(log_files(256 << 10), 2);
    assert_eq!(log_files(1 << 30), 1);
    // The default size: a quarter of the write buffer, which is a quarter of 8 MiB.
    assert_eq!(log_files(0), 1);
}

#[test]
fn a_compressed_log_is_smaller_and_holds_the_same() {
    let written = |compression: bool| {
        let memory = MemoryDevice::new();
        let db = open(&memory, options().log_compression(compression));
        let tree = db.create_tree("t", TreeOptions::new()).unwrap();
        let keys: Vec<String> = (0..50).map(|i| format!("{i}")).collect();
        for key in &keys {
            tree.put(key.as_bytes(), "GET /index.html 200 ".repeat(20).as_bytes()).unwrap();
        }
        assert_eq!(survivors(&memory, &keys), vec![true; 50]);
        db.stats().wal_written_bytes
    };
    let (raw, compressed) = (written(false), written(true));
    assert!(raw > 50 * 400 && compressed < raw / 4, "{raw} bytes, then {compressed}");
}

/// A full file of the log is synced before the next file begins.
#[test]
fn without_syncs_power_loss_takes_the_end_and_at_most_a_file_of_the_log() {
    let memory = MemoryDevice::new();
    let db = open(&memory, options().log_segment_bytes(64 << 10).sync(SyncMode::Never));
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let mut keys = Vec::new();
    let mut longest = 0;
    for i in 0..100 {
        keys.push(format!("{i}"));
        tree.put(keys[i].as_bytes(), &[i as u8; 4000]).unwrap();
        let found = survivors(&memory, &keys);
        let kept = found.iter().filter(|found| **found).count();
        assert!(found[..kept].iter().all(|found| *found), "lost from the middle");
        longest = longest.max(keys.len() - kept);
    }
    assert!((1..=(64 << 10) / 4000 + 1).contains(&longest), "{longest} were lost");
}
