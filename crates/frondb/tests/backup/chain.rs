//! Incremental backups.

use frondb::{BackupOptions, ErrorKind};
use frondb_device::SharedDevice;
use frondb_testkit::CrashMode;

use crate::{Model, Store, backup, check_restored, empty, restore};

#[test]
fn a_chain_of_ten_restores_every_state() {
    for seed in 0..4 {
        let mut store = Store::new(seed);
        let mut chain: Vec<SharedDevice> = Vec::new();
        let mut models: Vec<Model> = Vec::new();
        let db = store.db.clone();
        for round in 0..11 {
            store.change(["a", "b", "c"][round % 3], 20);
            if round == 6 {
                db.drop_tree("a").unwrap();
                store.model.remove("a");
            }
            if store.prng.chance(1, 2) {
                store.settle();
            }
            models.push(store.model.clone());
            let target = empty();
            let mut changed = false;
            let report = db
                .backup_to(&target, chain.last(), &BackupOptions::new(), &mut |_, _| {
                    if !changed {
                        store.change("b", 10);
                        store.settle();
                        changed = true;
                    }
                    true
                })
                .unwrap();
            assert_eq!(report.is_incremental, round > 0);
            chain.push(target);
        }
        for (length, model) in (1..).zip(&models) {
            check_restored(&chain[..length], model, &format!("seed {seed}, {length} backups"));
        }
    }
}

#[test]
fn an_incremental_backup_has_what_changed() {
    let mut store = Store::new(1);
    store.change("large", 300);
    store.change("small", 10);
    store.settle();
    let (full, of_all) = backup(&store.db, None);
    let (same, of_nothing) = backup(&store.db, Some(&full));
    assert!(of_nothing.bytes < 8192, "{of_nothing:?}");
    store.change("small", 3);
    let (changed, of_some) = backup(&store.db, Some(&same));
    assert!(of_some.bytes * 4 < of_all.bytes, "{of_some:?} of {of_all:?}");
    check_restored(&[full, same, changed], &store.model, "three");
}

/// A new large value may occupy the extents of one that was freed.
#[test]
fn a_large_value_in_the_place_of_another_is_copied() {
    let mut store = Store::new(1);
    let tree = store.tree("t");
    let mut chain: Vec<SharedDevice> = Vec::new();
    for round in 0..6u8 {
        tree.put(b"k", &[round; 200_000]).unwrap();
        store.model.get_mut("t").unwrap().insert(b"k".to_vec(), vec![round; 200_000]);
        store.settle();
        store.db.wait_settled().unwrap();
        let (target, _) = backup(&store.db, chain.last());
        chain.push(target);
        check_restored(&chain, &store.model, &format!("round {round}"));
    }
    let (_, again) = backup(&store.db, chain.last());
    assert!(again.bytes < 8192, "the value has not changed: {again:?}");
}

#[test]
fn backups_that_do_not_continue_each_other_are_refused() {
    let mut store = Store::new(1);
    store.change("t", 10);
    let (full, _) = backup(&store.db, None);
    let (one, _) = backup(&store.db, Some(&full));
    store.change("t", 10);
    let (two, _) = backup(&store.db, Some(&one));
    let refused = |chain: &[&SharedDevice]| {
        let chain: Vec<SharedDevice> = chain.iter().map(|one| SharedDevice::clone(one)).collect();
        let error = restore(&chain).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    };
    refused(&[]);
    refused(&[&one]);
    refused(&[&full, &two]);
    refused(&[&one, &full]);
    refused(&[&full, &full]);
    refused(&[&full, &two, &one]);
    let mut other = Store::new(2);
    other.change("t", 10);
    let (of_other, _) = backup(&other.db, None);
    refused(&[&of_other, &one]);
    let options = BackupOptions::new();
    let error = other.db.backup_to(&empty(), Some(&full), &options, &mut |_, _| true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    let error = other.db.backup_to(&empty(), Some(&empty()), &options, &mut |_, _| true);
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);
    // A restored database has its own history and its own identity.
    let branch = restore(std::slice::from_ref(&full)).unwrap();
    let error = branch.backup_to(&empty(), Some(&one), &options, &mut |_, _| true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    backup(&branch, None);
    check_restored(&[full, one, two], &store.model, "in order");
}

/// A copy of the database's files has its own history, and assigns the same run ids to other runs.
/// The database and the copy can both continue the backups made before the copy, but not the
/// backups that the other one has made since.
#[test]
fn a_copy_that_went_another_way_continues_its_own_backups() {
    let mut store = Store::new(1);
    store.change("t", 40);
    store.settle();
    let (full, _) = backup(&store.db, None);
    store.db.close().unwrap();
    let mut other = Store::of(store.device.crash(CrashMode::KeepAll), store.model.clone(), 7);
    let mut store = Store::of(store.device, store.model, 8);
    let mut made = Vec::new();
    for one in [&mut store, &mut other] {
        one.change("t", 40);
        one.settle();
        made.push(backup(&one.db, Some(&full)).0);
        one.change("t", 10);
    }
    let options = BackupOptions::new();
    for (one, of_other) in [(&store, &made[1]), (&other, &made[0])] {
        let error = one.db.backup_to(&empty(), Some(of_other), &options, &mut |_, _| true);
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
    for (one, own) in [(&store, &made[0]), (&other, &made[1])] {
        let (last, _) = backup(&one.db, Some(own));
        check_restored(&[full.clone(), own.clone(), last], &one.model, "each its own way");
    }
}
