//! Full backups while other threads write.

use frondb::{BackupOptions, Durability, ErrorKind, TransactionOptions};

use crate::{Store, backup, check_restored, empty, restore, support};

/// Commits, merges and freed space during the copy do not change the backup's contents.
#[test]
fn a_backup_has_the_state_of_its_beginning() {
    for seed in 0..12 {
        let mut store = Store::new(seed);
        for round in 0..6 {
            store.change(["a", "b", "c"][round % 3], 30);
            if store.prng.chance(1, 2) {
                store.settle();
            }
        }
        let (model, target) = (store.model.clone(), empty());
        let db = store.db.clone();
        let mut calls = 0;
        let report = db
            .backup_to(&target, None, &BackupOptions::new(), &mut |done, total| {
                assert!(done <= total);
                calls += 1;
                store.change("a", 10);
                store.change("new", 2);
                match store.prng.below(4) {
                    0 => store.settle(),
                    1 => while db.run_one(true) {},
                    2 if calls % 7 == 0 => {
                        db.checkpoint().unwrap();
                    }
                    3 if calls == 3 => {
                        db.drop_tree("b").unwrap();
                        store.model.remove("b");
                    }
                    _ => {}
                }
                true
            })
            .unwrap();
        assert!(calls > 1 && report.bytes > 0 && !report.is_incremental);
        check_restored(&[target], &model, &format!("seed {seed}"));
        store.settle();
        store.check();
        let used = db.stats().data_used_bytes;
        store.db.close().unwrap();
        let db = support::open_small(std::sync::Arc::new(store.device.clone()));
        assert!(db.stats().data_used_bytes <= used, "seed {seed}: the backup keeps space");
    }
}

/// When a backup ends, in any way, it has released the space that it kept.
#[test]
fn no_space_is_kept_after_a_backup() {
    let mut store = Store::new(1);
    store.change("a", 100);
    store.settle();
    let used = |store: &Store| store.db.stats().data_used_bytes;
    let db = store.db.clone();
    for cancels in [false, true] {
        let before = used(&store);
        let mut grown = 0;
        let result = db.backup_to(&empty(), None, &BackupOptions::new(), &mut |_, _| {
            if grown == 0 {
                for _ in 0..4 {
                    store.change("a", 60);
                    store.settle();
                }
                grown = used(&store);
            }
            !cancels
        });
        assert_eq!(result.is_err(), cancels);
        assert!(grown > before, "released extents are kept: {before}, {grown}");
        store.settle();
        assert!(used(&store) < grown, "{} of {grown}", used(&store));
        store.check();
    }
}

#[test]
fn an_empty_database_and_one_without_a_log_are_backed_up() {
    let mut store = Store::new(1);
    let (empty_one, report) = backup(&store.db, None);
    assert_eq!(report.database_bytes, 0);
    check_restored(&[empty_one], &store.model, "no tree");
    store.tree("t");
    let (one_tree, _) = backup(&store.db, None);
    check_restored(&[one_tree], &store.model, "an empty tree");
    store.change("t", 50);
    store.db.checkpoint().unwrap();
    let (flushed, report) = backup(&store.db, None);
    assert!(report.database_bytes > 0);
    check_restored(&[flushed], &store.model, "an empty log");
}

/// Transactions of every kind: in memory, spilled, prepared in the log, prepared in the manifest.
#[test]
fn transactions_are_in_a_backup_as_they_are_after_a_crash() {
    let mut store = Store::new(3);
    let tree = store.tree("t");
    store.change("t", 20);
    let put = |from: u32, count: u32| {
        let transaction = store.db.begin(TransactionOptions::new()).unwrap();
        for i in from..from + count {
            transaction.put(&tree, &i.to_be_bytes(), &[9; 60]).unwrap();
        }
        transaction
    };
    let open = put(1 << 20, 30_000);
    assert!(store.db.stats().spills > 0);
    put(2 << 20, 30_000).prepare(b"large").unwrap();
    put(3 << 20, 10).prepare(b"small").unwrap();
    store.db.checkpoint().unwrap();
    put(4 << 20, 10).prepare(b"after").unwrap();
    let committed = put(5 << 20, 30_000);
    committed.commit().unwrap();
    let rows = store.model.get_mut("t").unwrap();
    rows.extend((5 << 20..(5 << 20) + 30_000u32).map(|i| (i.to_be_bytes().to_vec(), vec![9; 60])));

    let target = empty();
    let db = store.db.clone();
    let mut open = Some(open);
    db.backup_to(&target, None, &BackupOptions::new(), &mut |_, _| {
        if let Some(open) = open.take() {
            // Free extents that the backup may still have to copy.
            open.rollback().unwrap();
            db.rollback_prepared(b"large").unwrap();
            db.commit_prepared(b"small", Durability::Sync).unwrap();
            store.settle();
        }
        true
    })
    .unwrap();

    let copy = restore(std::slice::from_ref(&target)).unwrap();
    assert!(support::contents(&copy) == store.model, "prepared and open ones are not visible");
    for name in [&b"large"[..], b"small", b"after"] {
        copy.commit_prepared(name, Durability::Sync).unwrap();
    }
    let tree = copy.open_tree("t").unwrap();
    for (from, count) in [(2u32 << 20, 30_000u32), (3 << 20, 10), (4 << 20, 10)] {
        for i in [from, from + count - 1] {
            assert_eq!(tree.get(&i.to_be_bytes()).unwrap(), Some(vec![9; 60]));
        }
    }
    assert_eq!(tree.get(&(1u32 << 20).to_be_bytes()).unwrap(), None);
    let report = copy.verify(&mut |_, _, _| true).unwrap();
    assert!(report.faults.is_empty(), "{:?}", report.faults);
}

#[test]
fn one_backup_is_made_at_a_time() {
    let mut store = Store::new(1);
    store.change("t", 20);
    store.settle();
    let db = store.db.clone();
    let mut seen = None;
    db.backup_to(&empty(), None, &BackupOptions::new(), &mut |_, _| {
        seen = Some(db.backup_to(&empty(), None, &BackupOptions::new(), &mut |_, _| true));
        true
    })
    .unwrap();
    assert_eq!(seen.unwrap().unwrap_err().kind(), ErrorKind::Busy);
    backup(&store.db, None);
}

/// After a close, another process may open the database and reuse space that the backup would copy.
#[test]
fn a_close_ends_a_backup() {
    let mut store = Store::new(1);
    store.change("t", 60);
    store.settle();
    let (db, target) = (store.db.clone(), empty());
    let result = db.backup_to(&target, None, &BackupOptions::new(), &mut |_, _| {
        db.close().unwrap();
        true
    });
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(restore(&[target]).unwrap_err().kind(), ErrorKind::NotFound);
}
