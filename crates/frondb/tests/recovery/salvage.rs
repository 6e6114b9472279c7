//! Salvage as a call on directories: what it refuses, and what it leaves in the target directory.
//! Tests of the simulator and of the command line check which rows it saves.

use std::path::Path;
use std::process::Command;

use frondb::testing::TestDb;
use frondb::{
    Batch, BulkOptions, Db, Durability, Error, ErrorKind, Options, Result, SalvageReport,
    TreeOptions,
};
use frondb_core::clock::{ManualClock, SharedClock};
use frondb_core::executor::ThreadExecutor;
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_device::{Device, OpenOptions, PosixDevice};
use frondb_testkit::MemoryDevice;
use frondb_testkit::TempDir;

fn options() -> Options {
    Options::new().memory_bytes(4 << 20).background_threads(0)
}

/// Creates a database with trees of these names, each with enough rows that `progress` is called.
fn make(dir: &Path, options: Options, trees: &[&str]) {
    let db = Db::open(dir, options).unwrap();
    for name in trees {
        let tree = db.create_tree(name, TreeOptions::new()).unwrap();
        let mut batch = Batch::new();
        (0..2000_u32).for_each(|row| batch.put(&tree, &row.to_be_bytes(), &name.as_bytes()[..1]));
        db.write(&batch, Durability::NoSync).unwrap();
    }
    db.close().unwrap();
}

fn salvage(from: &Path, to: &Path, uncertain: bool) -> Result<SalvageReport> {
    Db::salvage(from, to, &options(), uncertain, &mut |_, _, _| true)
}

fn kind<T: std::fmt::Debug>(result: Result<T>) -> (ErrorKind, String) {
    let error: Error = result.unwrap_err();
    (error.kind(), error.message().to_owned())
}

fn listing(dir: &Path) -> Vec<String> {
    PosixDevice::open(dir).unwrap().list("").unwrap()
}

/// Damages two bytes in the last record of the manifest beyond repair, so that no row is certain.
fn cut(device: &dyn Device) {
    let file = device.open("MANIFEST-000001", OpenOptions::WRITE).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(0, &mut bytes).unwrap();
    let end = bytes.iter().rposition(|&byte| byte != 0).unwrap();
    let two = [bytes[end - 30] ^ 0x55, bytes[end - 29] ^ 0x55];
    file.write_at(end as u64 - 30, &two).unwrap();
}

/// A killed database without its newer superblock and the end of its manifest. The report names the
/// tree that the manifest lost, and the other trees keep all rows that the log has.
#[test]
fn a_tree_that_the_manifest_lost_takes_no_rows_of_others_along() {
    let temp = TempDir::new("salvage-lost-tree");
    let (from, copy, to) =
        (temp.path().join("from"), temp.path().join("copy"), temp.path().join("to"));
    let db = Db::open(&from, options()).unwrap();
    let first = db.create_tree("first", TreeOptions::new()).unwrap();
    first.put(b"0", b"v").unwrap();
    db.create_tree("last", TreeOptions::new()).unwrap().put(b"k", b"v").unwrap();
    (1..100_u32).for_each(|row| first.put(&row.to_be_bytes(), b"v").unwrap());
    // Copy the files of the open database.
    assert!(Command::new("cp").arg("-r").args([&from, &copy]).status().unwrap().success());
    let device = PosixDevice::open(&copy).unwrap();
    let manifest = device.open("MANIFEST-000001", OpenOptions::WRITE).unwrap();
    let mut bytes = vec![0; manifest.len().unwrap() as usize];
    manifest.read_exact_at(0, &mut bytes).unwrap();
    let used = bytes.iter().rposition(|&byte| byte != 0).unwrap() as u64;
    manifest.set_len(used).unwrap();
    let newer = [0, 4096].into_iter().find(|slot| {
        let damaged = temp.path().join(format!("damaged-{slot}"));
        assert!(Command::new("cp").arg("-r").args([&copy, &damaged]).status().unwrap().success());
        let device = PosixDevice::open(&damaged).unwrap();
        let file = device.open("SUPER", OpenOptions::WRITE).unwrap();
        file.write_at(slot + 20, b"damaged!").unwrap();
        drop((file, device));
        let (kind, message) = kind(Db::open(&damaged, options()));
        assert_eq!(kind, ErrorKind::Corruption, "{message}");
        message.contains("the log has messages of tree 2")
    });
    let damaged = temp.path().join(format!("damaged-{}", newer.unwrap()));
    let report = salvage(&damaged, &to, true).unwrap();
    let said = report.cut.iter().map(Error::message).collect::<Vec<_>>().join("; ");
    assert!(said.contains("the log has messages of tree 2"), "{said}");
    let saved = Db::open(&to, options()).unwrap();
    let rows = saved.open_tree("first.uncertain").unwrap();
    let mut cursor = rows.cursor().unwrap();
    let mut count = 0;
    while cursor.next().unwrap() {
        count += 1;
    }
    assert_eq!(count, 100);
    db.close().unwrap();
}

#[test]
fn an_unfinished_salvage_is_no_database() {
    let temp = TempDir::new("salvage-unfinished");
    let (from, to) = (temp.path().join("from"), temp.path().join("to"));
    make(&from, options(), &["a", "b"]);
    // Inspect the directory while the second tree is written: a kill would leave it like this.
    let mut seen = 0;
    let mut look = |name: &str, done, _| {
        if name == "b" && done > 0 {
            let opened = Db::open(&to, options().create(false));
            assert!(opened.is_err(), "half of a salvage opens");
            Db::open(&to, options()).unwrap_err();
            assert_eq!(listing(&to), ["unfinished-salvage"]);
            let again = kind(salvage(&from, &to, false));
            assert_eq!(again.0, ErrorKind::Exists);
            assert!(again.1.contains("unfinished salvage"), "{}", again.1);
            seen += 1;
        }
        true
    };
    Db::salvage(&from, &to, &options(), false, &mut look).unwrap();
    assert!(seen > 0);
    assert!(!listing(&to).contains(&"unfinished-salvage".to_owned()));
    let db = Db::open(&to, options().create(false)).unwrap();
    assert_eq!(db.list_trees(), ["a", "b"]);
    assert_eq!(db.open_tree("b").unwrap().get(&1999_u32.to_be_bytes()).unwrap().unwrap(), b"b");
    db.close().unwrap();
}

#[test]
fn a_salvage_that_fails_leaves_nothing() {
    let temp = TempDir::new("salvage-fails");
    let (from, to) = (temp.path().join("from"), temp.path().join("to"));
    make(&from, options(), &["a", "b"]);
    let stop = |to: &Path| {
        Db::salvage(&from, to, &options(), false, &mut |name, done, _| name == "a" || done == 0)
    };
    assert_eq!(kind(stop(&to)).0, ErrorKind::Cancelled);
    assert!(!to.exists());
    // Salvage does not remove a target directory that existed before.
    let there = temp.path().join("there");
    PosixDevice::create(&there).unwrap();
    assert_eq!(kind(stop(&there)).0, ErrorKind::Cancelled);
    assert_eq!(listing(&there), [""; 0]);
    salvage(&from, &there, false).unwrap();
    assert_eq!(Db::open(&there, options().create(false)).unwrap().list_trees(), ["a", "b"]);
}

#[test]
fn where_nothing_is_saved_nothing_is_made() {
    let temp = TempDir::new("salvage-nothing");
    let (from, to) = (temp.path().join("from"), temp.path().join("to"));
    make(&from, options(), &["a"]);
    cut(&PosixDevice::open(&from).unwrap());
    let report = salvage(&from, &to, false).unwrap();
    assert!(!report.cut.is_empty() && !report.is_saved());
    assert!(!to.exists());
    let report = salvage(&from, &to, true).unwrap();
    assert!(report.is_saved());
    assert_eq!(Db::open(&to, options()).unwrap().list_trees(), ["a.uncertain"]);
    // A database without trees has nothing to lose.
    let (from, to) = (temp.path().join("empty"), temp.path().join("of-empty"));
    make(&from, options(), &[]);
    assert!(salvage(&from, &to, false).unwrap().is_saved());
    Db::open(&to, options().create(false)).unwrap();
}

#[test]
fn directories_of_both_databases_lie_apart() {
    let temp = TempDir::new("salvage-apart");
    let (from, log) = (temp.path().join("top/from"), temp.path().join("log"));
    make(&from, options().log_dir(&log), &["a"]);
    std::os::unix::fs::symlink(&from, temp.path().join("link")).unwrap();
    let all = || {
        let list = |dir: &Path| listing(dir);
        (list(&from), list(&log), list(temp.path()))
    };
    let before = all();
    let with_log = options().log_dir(&log);
    let to_of = |path: &str| temp.path().join(path);
    for to in ["top/from/to", "link/to", "top", "top/from/wal/x", "log/to", "none/../log/to"] {
        let result = Db::salvage(&from, to_of(to), &with_log, false, &mut |_, _, _| true);
        let (kind, message) = kind(result);
        assert_eq!(kind, ErrorKind::Invalid, "{to}: {message}");
        assert!(message.contains("outside of the database"), "{to}: {message}");
        assert!(before == all(), "{to} changes a directory");
    }
    let same = Db::salvage(&from, &from, &with_log, false, &mut |_, _, _| true);
    assert_eq!(kind(same).0, ErrorKind::Exists);
    let beside = Db::salvage(&from, to_of("top/to"), &with_log, false, &mut |_, _, _| true);
    assert!(beside.unwrap().is_complete());
}

#[test]
fn a_log_directory_that_is_not_there_is_named() {
    let temp = TempDir::new("salvage-log");
    let (from, to) = (temp.path().join("from"), temp.path().join("to"));
    make(&from, options(), &["a"]);
    let with_log = options().log_dir(temp.path().join("typo"));
    let missing = kind(Db::salvage(&from, &to, &with_log, true, &mut |_, _, _| true));
    assert_eq!(missing.0, ErrorKind::NotFound);
    assert!(missing.1.contains("typo"), "{}", missing.1);
    assert!(!to.exists());
}

#[test]
fn uncertain_trees_get_names_that_fit() {
    let temp = TempDir::new("salvage-names");
    let (from, to) = (temp.path().join("from"), temp.path().join("to"));
    let long = "x".repeat(511);
    let names = [
        format!("{long}a"),
        format!("{long}b"),
        "x".repeat(502),
        // A name that a cut to the longest allowed length would split inside a character.
        "\u{20ac}".repeat(170),
        "short".to_owned(),
        "short.uncertain".to_owned(),
    ];
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    make(&from, options(), &names);
    let device = PosixDevice::open(&from).unwrap();
    // The damage removes one tree from the manifest, the last one that was created.
    Db::open(&from, options()).unwrap().create_tree("last", TreeOptions::new()).unwrap();
    cut(&device);
    let report = salvage(&from, &to, true).unwrap();
    let db = Db::open(&to, options()).unwrap();
    let saved: Vec<String> = report.trees.iter().filter_map(|tree| tree.saved_as.clone()).collect();
    assert!(saved.len() >= names.len(), "{saved:?}");
    let mut sorted = saved.clone();
    sorted.sort();
    assert_eq!(db.list_trees(), sorted);
    assert!(saved.iter().all(|name| name.ends_with(".uncertain") && name.len() <= 512));
    assert!(saved.contains(&format!("{}.uncertain", "x".repeat(502))));
    assert!(saved.contains(&"short.uncertain.uncertain".to_owned()));
}

/// A manifest that another process is writing may look damaged.
#[test]
fn a_database_in_use_is_busy_and_not_damaged() {
    let device = MemoryDevice::new();
    let clock = || -> SharedClock { Arc::new(ManualClock::stepping()) };
    let executor = ThreadExecutor::shared();
    let opening = TestDb::on(Arc::new(device.clone())).options(options());
    let db = opening.open().unwrap();
    for name in ["SUPER", "MANIFEST-000001"] {
        device.open(name, OpenOptions::WRITE).unwrap().set_len(0).unwrap();
    }
    let salvage =
        || Db::open_damaged(Arc::new(device.clone()), None, options(), clock(), &executor);
    assert_eq!(kind(salvage()).0, ErrorKind::Busy);
    drop(db);
    assert_ne!(kind(salvage()).0, ErrorKind::Busy);
}

/// If the log's directory is in use, salvage reports that before it reports damage of the log.
#[test]
fn the_lock_of_the_log_comes_before_its_damage() {
    let (temp, to) = (TempDir::new("salvage-lock"), TempDir::new("salvage-lock-to"));
    let options = Options::new().memory_bytes(16 << 20).background_threads(0);
    Db::open(temp.path(), options.clone()).unwrap().close().unwrap();
    let wal = temp.path().join("wal");
    // Make `LOG` name another database, which fails with `Invalid`. A lock fails with `Busy`.
    let mut owner = std::fs::read(wal.join("LOG")).unwrap();
    let other = TempDir::new("salvage-lock-other");
    Db::open(other.path(), options.clone()).unwrap().close().unwrap();
    owner.copy_from_slice(&std::fs::read(other.path().join("wal/LOG")).unwrap());
    std::fs::write(wal.join("LOG"), owner).unwrap();
    let salvage = || Db::salvage(temp.path(), to.path(), &options, true, &mut |_, _, _| true);
    assert_eq!(salvage().unwrap_err().kind(), ErrorKind::Invalid);
    let lock = PosixDevice::open(&wal).unwrap().lock("LOG.lock").unwrap();
    assert_eq!(salvage().unwrap_err().kind(), ErrorKind::Busy);
    drop(lock);
}

/// If the log's directory is missing, the error of an open names the directory and suggests a
/// salvage.
#[test]
fn a_log_directory_that_is_missing_is_named() {
    let temp = TempDir::new("salvage-no-wal");
    let options = Options::new().memory_bytes(16 << 20).background_threads(0);
    Db::open(temp.path(), options.clone()).unwrap().close().unwrap();
    std::fs::remove_dir_all(temp.path().join("wal")).unwrap();
    let error = Db::open(temp.path(), options).unwrap_err().to_string();
    let wal = temp.path().join("wal").display().to_string();
    assert!(error.contains(&wal) && error.contains("salvage"), "{error}");
}

/// If a data file ends early, salvage saves the rows before its end, including rows of the run that
/// was cut.
#[test]
fn of_a_data_file_that_is_cut_the_part_that_is_there_is_saved() {
    const ROWS: u32 = 60_000;
    let temp = TempDir::new("salvage-cut-data");
    let from = temp.path().join("from");
    // The rows do not compress, so that the parts of lost rows and lost bytes are equal.
    let value = |row: u32| {
        let mut value = [0; 64];
        Prng::new(row.into()).fill(&mut value);
        value
    };
    let db = Db::open(&from, options()).unwrap();
    let load = db.bulk_load(BulkOptions::default()).unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let mut writer = load.writer();
    (0..ROWS).for_each(|row| writer.put(&tree, &row.to_be_bytes(), &value(row)).unwrap());
    writer.finish().unwrap();
    load.finish(&mut |_| true).unwrap();
    db.close().unwrap();
    let device = PosixDevice::open(&from).unwrap();
    let file = device.open("data-0000.fdb", OpenOptions::WRITE).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(0, &mut bytes).unwrap();
    let used = bytes.iter().rposition(|&byte| byte != 0).unwrap() as u64;
    for sixteenths in 1..=4 {
        let missing = used / 16 * sixteenths;
        file.set_len(used - missing).unwrap();
        let to = temp.path().join(format!("to-{sixteenths}"));
        let report = salvage(&from, &to, false).unwrap();
        let saved = report.trees[0].rows;
        assert!(!report.is_complete() && report.cut.is_empty());
        // The missing bytes held no more rows than this, except for a few blocks that are cut or
        // adjacent to the cut.
        let most = missing / 64 + 2000;
        let lost = u64::from(ROWS) - saved;
        assert!(lost <= most, "{lost} rows are lost with {missing} bytes");
        let db = Db::open(&to, options().create(false)).unwrap();
        let mut cursor = db.open_tree("t").unwrap().cursor().unwrap();
        let mut rows = 0;
        while cursor.next().unwrap() {
            let row = u32::from_be_bytes(cursor.key().try_into().unwrap());
            assert_eq!(cursor.value().unwrap(), value(row));
            let is_lost = |range: &frondb::DamagedRange| {
                *range.lo <= *cursor.key() && range.hi.as_deref().is_none_or(|hi| cursor.key() < hi)
            };
            assert!(!report.trees[0].lost.iter().any(is_lost));
            rows += 1;
        }
        assert_eq!(rows, saved);
    }
}
