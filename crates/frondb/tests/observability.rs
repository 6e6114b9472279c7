//! What an open database reports about itself: latencies, the page for Prometheus, events.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use frondb::testing::TestDb;
use frondb::{
    Batch, Db, Durability, ErrorKind, Event, Options, ReadProfile, StallReason, Transaction,
    TransactionOptions, Tree, TreeOptions,
};
use frondb_core::clock::SystemClock;
use frondb_core::sync::{Arc, Mutex};
use frondb_device::{OpenOptions, SharedDevice};
use frondb_testkit::MemoryDevice;
use frondb_testkit::faults::Faults;

/// The names of events in their order, with the details that tests check.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn listen(db: &Db) -> Self {
        let log = Self::default();
        let events = Arc::clone(&log.0);
        db.set_event_listener(Some(Arc::new(move |event: &Event<'_>| {
            let detail = match event {
                // A panic in a listener would only be logged, so record the fault here.
                Event::FlushEnded { bytes: 0, .. } => " without data".to_owned(),
                Event::StallBegan(reason) | Event::StallEnded { reason, .. } => {
                    format!(" {}", reason.name())
                }
                Event::Corruption(error) => format!(" {:?}", error.kind()),
                Event::DiskFull(error) | Event::Poisoned(error) | Event::JobFailed(error) => {
                    format!(" {:?}", error.kind())
                }
                _ => String::new(),
            };
            events.lock().push(format!("{}{detail}", event.name()));
        })));
        log
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

fn fill(db: &Db, tree: &Tree, rows: u32, value: u8) {
    let mut batch = Batch::new();
    for row in 0..rows {
        batch.put(tree, &row.to_be_bytes(), &[value; 300]);
    }
    db.write(&batch, Durability::NoSync).unwrap();
}

fn options() -> Options {
    Options::new().memory_bytes(4 << 20).background_threads(0).reserve_bytes(1 << 20)
}

/// Opens a database with the system's clock, so that times are not zero.
fn reopen(device: SharedDevice, options: Options) -> Db {
    TestDb::on(device).options(options).clock(Arc::new(SystemClock::new())).open().unwrap()
}

fn open(device: SharedDevice) -> (Db, Tree) {
    let db = reopen(device, options());
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    (db, tree)
}

#[test]
fn everything_that_a_transaction_writes_is_counted() {
    let (db, tree) = open(Arc::new(MemoryDevice::new()));
    for ends in [Transaction::commit, |txn: &Transaction| txn.prepare(b"x")] {
        let before = db.stats();
        let txn = db.begin(TransactionOptions::default()).unwrap();
        txn.put(&tree, b"large", &[7; 300_000]).unwrap();
        let savepoint = txn.set_savepoint().unwrap();
        for undone in [true, false] {
            for row in 0..20_000u32 {
                txn.put(&tree, &row.to_be_bytes(), &[1; 100]).unwrap();
            }
            if undone {
                txn.roll_back_to(savepoint).unwrap();
            }
        }
        ends(&txn).unwrap();
        let now = db.stats();
        assert!(now.spills > before.spills && now.large_value_bytes > before.large_value_bytes);
        assert_eq!(now.messages - before.messages, 20_001);
        let (bytes, written) = (now.user_bytes - before.user_bytes, 300_000 + 20_000 * 104);
        assert!((written..written * 11 / 10).contains(&bytes), "{bytes} bytes of {written}");
    }
}

#[test]
fn calls_and_background_work_are_timed() {
    let (db, tree) = open(Arc::new(MemoryDevice::new()));
    for round in 0..4 {
        fill(&db, &tree, 1000, round);
        db.flush().unwrap();
    }
    while db.run_one(true) {}
    tree.put(b"synced", b"1").unwrap();
    let (messages, bytes) = (db.stats().messages, db.stats().user_bytes);
    let txn = db.begin(TransactionOptions::default()).unwrap();
    txn.put(&tree, b"prepared", b"1").unwrap();
    txn.prepare(b"x").unwrap();
    assert_eq!(db.stats().messages, messages + 1);
    assert!(db.stats().user_bytes > bytes && db.latencies().prepare.count() == 1);
    txn.commit().unwrap();
    assert_eq!(db.stats().messages, messages + 1);
    let before = db.latencies();
    for row in 0..16_000u32 {
        tree.get(&(row % 2000).to_be_bytes()).unwrap();
    }
    let mut cursor = tree.cursor().unwrap();
    for row in 0..16_000u32 {
        cursor.seek(&(row % 2000).to_be_bytes()).unwrap();
    }
    let now = db.latencies();
    let stats = db.stats();
    for (name, sampled, calls) in [
        ("get", now.get.count() - before.get.count(), 16_000),
        ("seek", now.seek.count() - before.seek.count(), 16_000),
    ] {
        assert!((calls * 9 / 10..calls * 11 / 10).contains(&sampled), "{name}: {sampled}");
    }
    assert_eq!(now.commit.count(), stats.commits);
    assert_eq!(now.log_sync.count(), stats.wal_syncs);
    assert_eq!(now.flush.count(), stats.flushes);
    let merges = stats.merges + stats.rewrites + stats.scan_rewrites + stats.node_flushes;
    assert_eq!(now.merge.count(), merges + stats.prefix_truncations);
    assert!(now.commit_sync.count() >= 1 && now.flush.count() >= 4 && merges > 0);
    for (name, latency) in now.named() {
        let median = latency.quantile_nanos(500_000);
        assert!(median <= latency.quantile_nanos(999_000), "{name}");
        assert!(latency.quantile_nanos(1_000_000) == latency.max_nanos, "{name}");
        assert!(name == "stall" || latency.nanos > 0, "{name}");
    }
    let page = db.prometheus();
    let commits = format!("frondb_latency_seconds_count{{kind=\"commit\"}} {}", stats.commits);
    assert!(page.lines().any(|line| line == commits), "{page}");
    db.close().unwrap();
}

#[test]
fn flushes_and_merges_are_told() {
    let (db, tree) = open(Arc::new(MemoryDevice::new()));
    let log = Log::listen(&db);
    for round in 0..4 {
        fill(&db, &tree, 1000, round);
        db.flush().unwrap();
    }
    while db.run_one(true) {}
    let told = log.take();
    let count = |name: &str| told.iter().filter(|event| *event == name).count() as u64;
    let stats = db.stats();
    assert_eq!(count("flush_ended"), stats.flushes);
    assert_eq!(count("flush_began"), stats.flushes);
    let merges = db.latencies().merge.count();
    assert!(merges > 0 && count("merge_ended") == merges, "{told:?}");
    assert_eq!(count("merge_began"), merges + count("merge_given_up"));
    db.set_event_listener(None);
    fill(&db, &tree, 1000, 9);
    db.flush().unwrap();
    assert_eq!(log.take(), Vec::<String>::new());
    // A listener that panics does no harm.
    db.set_event_listener(Some(Arc::new(|_: &Event<'_>| panic!("on purpose"))));
    fill(&db, &tree, 1000, 10);
    db.flush().unwrap();
    assert_eq!(tree.get(&1u32.to_be_bytes()).unwrap(), Some(vec![10; 300]));
    db.close().unwrap();
}

#[test]
fn a_full_disk_and_its_end_are_told() {
    let device = MemoryDevice::new();
    let options = options().memory_bytes(32 << 20).write_buffer_bytes(4 << 20);
    let db = reopen(Arc::new(device.clone()), options.reserve_bytes(32 << 20));
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let log = Log::listen(&db);
    device.set_capacity(96 << 20);
    let mut prng = frondb_core::prng::Prng::new(1);
    let mut value = vec![0; 4000];
    let error = (0..100_000u32).find_map(|row| {
        prng.fill(&mut value);
        tree.put(&row.to_be_bytes(), &value).err()
    });
    assert_eq!(error.unwrap().kind(), ErrorKind::NoSpace);
    let told = log.take();
    let full = told.iter().position(|event| event == "disk_full NoSpace").unwrap();
    assert!(told[..full].contains(&"job_failed NoSpace".to_owned()), "{:?}", &told[full - 3..]);
    device.set_capacity(u64::MAX);
    // The first put may still fail; the second one must succeed.
    let _ = tree.put(b"k", b"v");
    tree.put(b"k", b"v").unwrap();
    assert!(log.take().contains(&"disk_has_space".to_owned()));
    db.close().unwrap();
}

#[test]
fn a_poisoned_database_and_damage_are_told() {
    let memory = MemoryDevice::new();
    let faults = Arc::new(Faults::over(Arc::new(memory.clone()), &"".parse().unwrap()));
    let (db, tree) = open(Arc::clone(&faults) as SharedDevice);
    fill(&db, &tree, 3000, 1);
    db.flush().unwrap();
    while db.run_one(true) {}
    db.close().unwrap();
    // Damage a block of the reopened database, whose cache is empty.
    let db = reopen(Arc::clone(&faults) as SharedDevice, options());
    let tree = db.open_tree("t").unwrap();
    let log = Log::listen(&db);
    let device: SharedDevice = Arc::new(memory);
    let names = device.list("").unwrap();
    let name = names.iter().find(|name| name.starts_with("data-")).unwrap();
    let file = device.open(name, OpenOptions::WRITE).unwrap();
    let mut byte = [0];
    for at in (100..file.len().unwrap()).step_by(1000) {
        file.read_exact_at(at, &mut byte).unwrap();
        file.write_at(at, &[byte[0] ^ 1]).unwrap();
    }
    let failed = (0..3000u32).find_map(|row| tree.get(&row.to_be_bytes()).err());
    assert_eq!(failed.unwrap().kind(), ErrorKind::Corruption);
    assert!(log.take().contains(&"corruption Corruption".to_owned()));

    faults.set_script(&"fail sync * nth=1 error=EIO".parse().unwrap());
    assert_eq!(tree.put(b"k", b"v").unwrap_err().kind(), ErrorKind::Poisoned);
    let told = log.take();
    let poisoned = told.iter().filter(|event| event.starts_with("poisoned")).count();
    assert_eq!(poisoned, 1, "{told:?}");
    assert!(db.stats().poisoned == 1 && db.stats().corruptions >= 1);
}

/// Damages a large value, and then cuts off a data file.
#[test]
fn damage_of_values_and_of_whole_files_is_told() {
    let memory = MemoryDevice::new();
    let (db, tree) = open(Arc::new(memory.clone()));
    tree.put(b"large", &[7; 300_000]).unwrap();
    fill(&db, &tree, 3000, 1);
    db.flush().unwrap();
    while db.run_one(true) {}
    db.close().unwrap();
    let device: SharedDevice = Arc::new(memory.clone());
    let names = device.list("").unwrap();
    let name = names.iter().find(|name| name.starts_with("data-")).unwrap();
    let file = device.open(name, OpenOptions::WRITE).unwrap();
    let db = reopen(Arc::clone(&device), options().memory_bytes(32 << 20));
    let tree = db.open_tree("t").unwrap();
    let log = Log::listen(&db);
    assert_eq!(tree.get(b"large").unwrap(), Some(vec![7; 300_000]));
    // Change every page, so that the place of the value does not matter.
    for at in (0..file.len().unwrap()).step_by(4096) {
        let mut byte = [0];
        file.read_exact_at(at, &mut byte).unwrap();
        file.write_at(at, &[byte[0] ^ 1]).unwrap();
    }
    assert_eq!(tree.get(b"large").unwrap_err().kind(), ErrorKind::Corruption);
    assert_eq!(log.take(), ["corruption Corruption"]);
    file.set_len(4096).unwrap();
    let error = (0..3000u32).find_map(|row| tree.get(&row.to_be_bytes()).err()).unwrap();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(log.take().contains(&"corruption Corruption".to_owned()));
}

/// Commits that outrun the single worker wait for it, and each wait is reported with its reason.
#[test]
fn stalls_are_told_with_their_reason_and_timed() {
    let device: SharedDevice = Arc::new(MemoryDevice::new());
    let db = reopen(device, options().memory_bytes(16 << 20).background_threads(1));
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let log = Log::listen(&db);
    // The number of commits before a stall depends on the worker.
    for round in 0..=20_000 {
        assert!(round < 20_000, "no commit waits");
        fill(&db, &tree, 2000, round as u8);
        if log.0.lock().iter().any(|event| event.starts_with("stall_ended")) {
            break;
        }
    }
    let told = log.take();
    let began: Vec<_> =
        told.iter().filter_map(|event| event.strip_prefix("stall_began ")).collect();
    let ended: Vec<_> =
        told.iter().filter_map(|event| event.strip_prefix("stall_ended ")).collect();
    assert_eq!(began, ended);
    let reasons = [StallReason::Memtables, StallReason::Log, StallReason::Merges];
    assert!(reasons.iter().any(|reason| reason.name() == began[0]), "{began:?}");
    let (stats, stalls) = (db.stats(), db.latencies().stall);
    assert!(stalls.count() > 0 && stats.write_stall_nanos >= stalls.nanos);
    db.close().unwrap();
}

#[test]
fn a_profile_has_the_cost_of_its_reads() {
    let device: SharedDevice = Arc::new(MemoryDevice::new());
    let (db, tree) = open(Arc::clone(&device));
    fill(&db, &tree, 3000, 1);
    db.flush().unwrap();
    while db.run_one(true) {}
    db.close().unwrap();
    let db = reopen(device, options().memory_bytes(32 << 20));
    let tree = db.open_tree("t").unwrap();
    let get = |row: u32| tree.get(&row.to_be_bytes()).unwrap();
    let before = db.stats();
    let (_, cold) = ReadProfile::of(|| get(5));
    let (found, warm) = ReadProfile::of(|| get(5));
    let (_, missing) = ReadProfile::of(|| get(1_000_000));
    assert_eq!(found, Some(vec![1; 300]));
    let stats = db.stats();
    assert_eq!(cold.reads + warm.reads + missing.reads, stats.reads - before.reads);
    assert_eq!(cold.read_bytes, stats.read_bytes - before.read_bytes);
    assert!(cold.reads >= 1 && cold.read_nanos > 0 && cold.blocks == 1, "{cold:?}");
    assert!(warm.reads == 0 && warm.cached_blocks == 1 && warm.blocks == 0, "{warm:?}");
    let sum = |profile: ReadProfile| profile.filter_negatives + profile.filter_positives;
    let filters = stats.filter_negatives + stats.filter_positives;
    let filters_before = before.filter_negatives + before.filter_positives;
    assert_eq!(sum(cold) + sum(warm) + sum(missing), filters - filters_before);
    get(7);
    db.close().unwrap();
}
