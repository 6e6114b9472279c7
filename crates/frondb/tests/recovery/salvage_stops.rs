//! A salvage that stops at any write of the new database leaves its source unchanged, and the next
//! salvage saves everything. A salvage that was reported as done is durable.

use std::collections::BTreeMap;

use frondb::testing::TestDb;
use frondb::{Db, Options, TreeOptions};
use frondb_core::Result;
use frondb_core::clock::{ManualClock, SharedClock};
use frondb_core::executor::ThreadExecutor;
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_device::{Device, OpenOptions};
use frondb_testkit::{Crash, CrashTest, for_each_crash_point};
use frondb_testkit::{CrashMode, MemoryDevice};

use crate::support::contents;

type Found = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

fn options() -> Options {
    Options::small().memory_bytes(8 << 20)
}

fn clock() -> SharedClock {
    Arc::new(ManualClock::stepping())
}

fn open(memory: Arc<MemoryDevice>) -> Result<Db> {
    TestDb::on(memory).options(options()).open()
}

/// Returns a database and its contents: two trees with rows and large values, in runs and in a log
/// that also has large records. One byte of the log is damaged.
fn database() -> (MemoryDevice, Found) {
    let device = Arc::new(MemoryDevice::new());
    let db = open(Arc::clone(&device)).unwrap();
    let mut prng = Prng::new(1);
    for name in ["a", "b"] {
        let tree = db.create_tree(name, TreeOptions::new()).unwrap();
        for i in 0..60_u32 {
            let len = match i % 10 {
                0 => 70_000 + prng.below(100_000),
                1 => 5000 + prng.below(30_000),
                _ => prng.below(300),
            };
            let mut value = vec![0; len as usize];
            prng.fill(&mut value);
            tree.put(&(i % 50).to_be_bytes(), &value).unwrap();
            if i == 30 {
                db.flush().unwrap();
            }
        }
    }
    let found = contents(&db);
    drop(db);
    let device = device.crash(CrashMode::KeepAll);
    let names = device.list("wal").unwrap();
    let newest = names.iter().rfind(|name| name.ends_with(".wal")).unwrap();
    let file = device.open(&format!("wal/{newest}"), OpenOptions::WRITE).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(0, &mut bytes).unwrap();
    // A byte of the last record, which is a short one.
    let at = bytes.iter().rposition(|&byte| byte != 0).unwrap() - 20;
    file.write_at(at as u64, &[bytes[at] ^ 0x10]).unwrap();
    (device, found)
}

fn salvage(from: &MemoryDevice, to: Arc<MemoryDevice>) -> Result<()> {
    let executor = ThreadExecutor::shared();
    let damaged = Db::open_damaged(Arc::new(from.clone()), None, options(), clock(), &executor)?;
    let target = open(to)?;
    let report = damaged.save(&target, false, &mut |_, _, _| true)?;
    assert!(report.is_complete() && !report.repaired.is_empty(), "{report:?}");
    target.close()
}

fn files(device: &MemoryDevice) -> Vec<(String, Vec<u8>)> {
    let names = device.list("").unwrap().into_iter();
    let logs = device.list("wal").unwrap().into_iter().map(|name| format!("wal/{name}"));
    let read = |name: String| {
        let file = device.open(&name, OpenOptions::READ).ok()?;
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_exact_at(0, &mut bytes).unwrap();
        Some((name, bytes))
    };
    names.chain(logs).filter_map(read).collect()
}

#[test]
fn the_next_salvage_saves_everything() {
    let seed = frondb_testkit::seed::from_env("FRONDB_SEED", 1);
    println!("FRONDB_SEED={seed}");
    let (from, found) = database();
    let before = files(&from);
    let history = |to: Arc<MemoryDevice>| salvage(&from, to).is_ok();
    let check = |crash: Crash, is_done: &bool| {
        assert!(files(&from) == before, "a salvage changes nothing where it saves from");
        if *is_done {
            assert!(contents(&open(Arc::clone(&crash.device)).unwrap()) == found);
        }
        let to = Arc::new(MemoryDevice::new());
        salvage(&from, Arc::clone(&to)).unwrap();
        assert!(contents(&open(to).unwrap()) == found);
    };
    let report = for_each_crash_point(CrashTest::new(100, seed), history, check);
    println!("{report}");
    assert!(report.points > 20, "{report}");
}
