//! Damaged backups: a restore finds every flipped bit and creates no database.

use frondb::testing::TestDb;
use frondb::{BackupOptions, Batch, Db, Durability, ErrorKind, TreeOptions};
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_device::{OpenOptions, SharedDevice};
use frondb_testkit::MemoryDevice;

use crate::{Store, backup, check_restored, empty, restore, support};

/// Returns the files of a backup, log segments included, with their lengths.
fn files(backup: &SharedDevice) -> Vec<(String, u64)> {
    let mut names = backup.list("").unwrap();
    names.retain(|name| name != "wal");
    let log = backup.subdevice("wal").unwrap();
    names.extend(log.list("").unwrap().into_iter().map(|name| format!("wal/{name}")));
    let length = |name: &String| backup.open(name, OpenOptions::READ).unwrap().len().unwrap();
    names.iter().map(|name| (name.clone(), length(name))).collect()
}

/// Flips a bit of the byte at `at`.
fn flip(backup: &SharedDevice, name: &str, at: u64) {
    let file = backup.open(name, OpenOptions::WRITE).unwrap();
    let mut byte = [0];
    file.read_exact_at(at, &mut byte).unwrap();
    file.write_at(at, &[byte[0] ^ 4]).unwrap();
}

#[test]
fn every_flipped_bit_is_found() {
    let mut store = Store::new(5);
    store.change("t", 60);
    store.settle();
    let (full, _) = backup(&store.db, None);
    store.change("t", 20);
    let (one, _) = backup(&store.db, Some(&full));
    let chain = [full, one];
    check_restored(&chain, &store.model, "before");
    let mut prng = Prng::new(1);
    let mut found = 0;
    for (number, of) in chain.iter().enumerate() {
        for (name, length) in files(of) {
            for _ in 0..12 {
                let at = prng.below(length);
                flip(of, &name, at);
                let verified = Db::verify_backup_in(of, &mut |_, _| true);
                let is_seen = verified.as_ref().map_or(true, |found| !found.faults.is_empty());
                match restore(&chain) {
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Corruption, "{name} at {at}: {error}");
                        assert!(is_seen, "{name} at {at}: {verified:?}");
                        found += 1;
                    }
                    // The byte is in a hole of a data file, or only a restore of the full backup
                    // alone needs it.
                    Ok(db) => {
                        assert!(crate::support::contents(&db) == store.model, "{name} at {at}");
                        let unused = name.starts_with("data-") || number == 0;
                        assert!(unused, "{name} at {at} of backup {number}");
                    }
                }
                flip(of, &name, at);
            }
        }
    }
    assert!(found > 60, "{found}");
    check_restored(&chain, &store.model, "mended");
}

#[test]
fn missing_and_shortened_files_are_found() {
    let mut store = Store::new(5);
    store.change("t", 60);
    store.settle();
    store.change("t", 5);
    let (full, _) = backup(&store.db, None);
    for (name, length) in files(&full) {
        let file = full.open(&name, OpenOptions::WRITE).unwrap();
        let mut bytes = vec![0; length as usize];
        file.read_exact_at(0, &mut bytes).unwrap();
        file.set_len(length / 2).unwrap();
        let error = restore(std::slice::from_ref(&full)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{name}: {error}");
        full.remove(&name).unwrap();
        let error = restore(std::slice::from_ref(&full)).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Corruption | ErrorKind::NotFound), "{error}");
        full.open(&name, OpenOptions::CREATE).unwrap().write_at(0, &bytes).unwrap();
    }
    check_restored(&[full], &store.model, "mended");
}

/// A failed restore leaves files that no open accepts as a database.
#[test]
fn a_restore_that_fails_makes_no_database() {
    let mut store = Store::new(5);
    store.change("t", 60);
    store.settle();
    let (full, _) = backup(&store.db, None);
    let mut calls = 0;
    let chain = [full];
    Db::restore_from(&chain, &empty(), &mut |_, _| {
        calls += 1;
        true
    })
    .unwrap();
    for last in 1..=calls {
        let (target, mut left) = (empty(), last);
        let error = Db::restore_from(&chain, &target, &mut |_, _| {
            left -= 1;
            left > 0
        });
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Cancelled);
        let options = frondb::Options::new().memory_bytes(4 << 20).background_threads(0);
        let error = TestDb::on(target).options(options).open().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
}

/// A backup also checks the frames of the runs that it copies. Otherwise a backup of damaged data
/// could replace a good one.
#[test]
fn no_backup_is_made_of_a_damaged_run() {
    let device = MemoryDevice::new();
    let db = support::open_small(Arc::new(device.clone()));
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let (mut batch, mut prng) = (Batch::new(), Prng::new(3));
    for i in 0..4000u32 {
        batch.put(&tree, &i.to_be_bytes(), &prng.next_u64().to_be_bytes().repeat(12));
    }
    db.write(&batch, Durability::NoSync).unwrap();
    db.flush().unwrap();
    while db.run_one(true) {}
    let rows = support::contents(&db);
    let source: SharedDevice = Arc::new(device);
    let mut refused = 0;
    let names = source.list("").unwrap().into_iter().filter(|name| name.starts_with("data-"));
    for name in names {
        let length = source.open(&name, OpenOptions::READ).unwrap().len().unwrap();
        for _ in 0..100 {
            let at = prng.below(length);
            flip(&source, &name, at);
            let target = empty();
            match db.backup_to(&target, None, &BackupOptions::new(), &mut |_, _| true) {
                Ok(_) => assert!(support::contents(&restore(&[target]).unwrap()) == rows, "{at}"),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corruption, "{at}: {error}");
                    assert!(error.to_string().contains(&name), "{error}");
                    refused += 1;
                }
            }
            flip(&source, &name, at);
        }
    }
    assert!(refused > 20, "{refused}");
    let (target, _) = backup(&db, None);
    assert!(support::contents(&restore(&[target]).unwrap()) == rows);
}
