//! Rule 9: files that were cut short, zeroed at their end, or removed. A manifest that was cut
//! short or zeroed at its end is reported as damaged, and the error names this file. Only after a
//! kill may the database open nevertheless, if it then has all its trees and rows and no dropped
//! tree. A log loses no commit that was synced before a kill.

use frondb::testing::TestDb;
use frondb::{Db, Durability, ErrorKind, Options, Result, TreeOptions};
use frondb_core::sync::Arc;
use frondb_device::{Device, OpenOptions};
use frondb_testkit::{CrashMode, MemoryDevice};

const MANIFEST: &str = "MANIFEST-000001";
/// Size of a superblock's slot, bytes.
const SLOT_BYTES: u64 = 4096;

fn open(device: &MemoryDevice) -> Result<Db> {
    let options = Options::new().memory_bytes(4 << 20).background_threads(0);
    TestDb::on(Arc::new(device.clone())).options(options).open()
}

type Step = fn(&Db) -> Result<()>;

fn put(db: &Db, tree: &str) -> Result<()> {
    db.open_tree(tree)?.put(b"k", tree.as_bytes())
}

const STEPS: [Step; 7] = [
    |db| db.create_tree("t1", TreeOptions::default()).map(drop),
    |db| put(db, "t1"),
    |db| db.create_tree("t2", TreeOptions::default()).map(drop),
    |db| put(db, "t2"),
    |db| db.create_tree("gone", TreeOptions::default()).map(drop),
    |db| db.drop_tree("gone"),
    |db| db.create_tree("t3", TreeOptions::default()).map(drop),
];

/// Returns the names of all trees, each with the value of its key `k`.
fn contents(db: &Db) -> Vec<(String, Option<Vec<u8>>)> {
    let value = |name: &String| db.open_tree(name).unwrap().get(b"k").unwrap();
    let trees = db.list_trees();
    trees.iter().map(|name| (name.clone(), value(name))).collect()
}

fn expected() -> Vec<(String, Option<Vec<u8>>)> {
    let row = |name: &str, has: bool| (name.to_owned(), has.then(|| name.as_bytes().to_vec()));
    vec![row("t1", true), row("t2", true), row("t3", false)]
}

fn used(device: &MemoryDevice) -> u64 {
    let file = device.open(MANIFEST, OpenOptions::READ).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(0, &mut bytes).unwrap();
    bytes.iter().rposition(|&byte| byte != 0).unwrap() as u64 + 1
}

/// Cuts the manifest at `at`, or zeroes it from `at` on.
fn shorten(device: &MemoryDevice, at: u64, zeros: bool) {
    let file = device.open(MANIFEST, OpenOptions::WRITE).unwrap();
    let len = file.len().unwrap();
    file.set_len(at).unwrap();
    if zeros {
        file.set_len(len).unwrap();
    }
}

/// Cuts and zeroes the manifest at every place. Returns the number of cases in which the database
/// opened; it then had all its rows.
fn sweep(device: &MemoryDevice) -> u64 {
    let mut whole = 0;
    for zeros in [false, true] {
        for at in 0..used(device) {
            let device = device.crash(CrashMode::KeepAll);
            shorten(&device, at, zeros);
            match open(&device) {
                Ok(db) => {
                    assert_eq!(contents(&db), expected(), "cut at {at}");
                    whole += 1;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corruption, "cut at {at}: {error}");
                    assert_eq!(error.place().unwrap().file, MANIFEST, "cut at {at}: {error}");
                }
            }
        }
    }
    whole
}

#[test]
fn after_a_clean_close_no_cut_is_silent() {
    let device = MemoryDevice::new();
    for step in STEPS {
        let db = open_or_create(&device);
        step(&db).unwrap();
        db.close().unwrap();
    }
    assert_eq!(contents(&open(&device.crash(CrashMode::KeepAll)).unwrap()), expected());
    assert_eq!(sweep(&device), 0);
}

#[test]
fn after_a_kill_only_edits_that_the_log_has_too_may_be_cut() {
    let device = MemoryDevice::new();
    let db = open_or_create(&device);
    STEPS.iter().for_each(|step| step(&db).unwrap());
    let killed = device.crash(CrashMode::KeepAll);
    sweep(&killed);
    // Now the manifest also has the edit of a flush, whose messages are still in the log too.
    db.with_commit_sync(Durability::Sync).flush().unwrap();
    sweep(&device.crash(CrashMode::KeepAll));
}

fn open_or_create(device: &MemoryDevice) -> Db {
    let options = Options::new().memory_bytes(4 << 20).background_threads(0).create(true);
    TestDb::on(Arc::new(device.clone())).options(options).open().unwrap()
}

/// Two damages at once. If the newer superblock is lost, the older one does not record how far the
/// manifest was durable. But the log records which trees existed, so a tree whose rows are in the
/// log is never lost silently.
#[test]
fn no_tree_with_synced_rows_goes_with_a_superblock_and_the_end_of_the_manifest() {
    let device = MemoryDevice::new();
    let db = open_or_create(&device);
    let create = |name| db.create_tree(name, TreeOptions::default()).unwrap();
    drop(create("first"));
    drop(create("gone"));
    db.drop_tree("gone").unwrap();
    create("last").put(b"k", b"v").unwrap();
    let killed = device.crash(CrashMode::KeepAll);
    let mut refused = 0;
    for slot in [0, SLOT_BYTES] {
        for zeros in [false, true] {
            for at in 0..used(&killed) {
                let device = killed.crash(CrashMode::KeepAll);
                let super_file = device.open("SUPER", OpenOptions::WRITE).unwrap();
                super_file.write_at(slot + 20, b"damaged!").unwrap();
                shorten(&device, at, zeros);
                match open(&device) {
                    Ok(db) => {
                        let row = db.open_tree("last").unwrap().get(b"k").unwrap();
                        assert_eq!(row.as_deref(), Some(&b"v"[..]), "slot {slot}, cut at {at}");
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Corruption, "cut at {at}: {error}");
                        let place = &error.place().unwrap().file;
                        assert!(place.starts_with("MANIFEST"), "cut at {at}: {error}");
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(refused > 0);
}

/// Creates a database with 20 synced rows and closes it, or kills it.
fn with_synced_rows(close: bool) -> MemoryDevice {
    let device = MemoryDevice::new();
    let db = open_or_create(&device);
    let tree = db.create_tree("t", TreeOptions::default()).unwrap();
    for row in 0..20_u8 {
        tree.put(&[row], &[row; 50]).unwrap();
    }
    if close {
        db.close().unwrap();
    }
    device.crash(CrashMode::KeepAll)
}

/// Cuts and removes segments of the log, after a kill and after a close.
#[test]
fn no_synced_commit_goes_with_a_segment() {
    for close in [false, true] {
        let device = with_synced_rows(close);
        let names = device.list("wal").unwrap();
        for name in names.iter().filter(|name| name.ends_with(".wal")) {
            let path = format!("wal/{name}");
            let len = device.open(&path, OpenOptions::READ).unwrap().len().unwrap();
            for at in (0..2000).step_by(7).chain([len, u64::MAX]) {
                let device = device.crash(CrashMode::KeepAll);
                if at == u64::MAX {
                    device.remove(&path).unwrap();
                } else {
                    device.open(&path, OpenOptions::WRITE).unwrap().set_len(at.min(len)).unwrap();
                }
                match open(&device) {
                    Ok(db) => {
                        let tree = db.open_tree("t").unwrap();
                        for row in 0..20_u8 {
                            assert_eq!(tree.get(&[row]).unwrap(), Some(vec![row; 50]), "{at}");
                        }
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Corruption, "cut at {at}: {error}");
                        assert!(error.place().unwrap().file.contains(name), "{at}: {error}");
                    }
                }
            }
        }
    }
}

/// The mark records how far the log was durable. The test removes or damages the mark, and also
/// removes none, some or all segments, newest first. The open must fail with an error that names
/// the mark.
#[test]
fn no_synced_commit_goes_with_segments_and_the_mark() {
    for close in [false, true] {
        let device = with_synced_rows(close);
        let is_segment = |name: &String| name.ends_with(".wal");
        let names: Vec<String> =
            device.list("wal").unwrap().into_iter().filter(is_segment).collect();
        for how in ["removed", "flipped"] {
            for keep in 0..=names.len() {
                let device = device.crash(CrashMode::KeepAll);
                names[keep..]
                    .iter()
                    .for_each(|name| device.remove(&format!("wal/{name}")).unwrap());
                if how == "removed" {
                    device.remove("wal/LOG.mark").unwrap();
                } else {
                    let mark = device.open("wal/LOG.mark", OpenOptions::WRITE).unwrap();
                    [40, 4136].iter().for_each(|&at| mark.write_at(at, b"?").unwrap());
                }
                let error = open(&device).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corruption, "{how}, {keep} kept: {error}");
                assert!(error.place().unwrap().file.contains("LOG.mark"), "{keep} kept: {error}");
            }
        }
    }
}
