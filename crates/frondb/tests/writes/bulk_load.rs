//! Bulk loads are sorted outside the trees and attached with one commit. A load that fails leaves
//! nothing.

use std::sync::Arc;
use std::time::Duration;

use frondb::testing::TestDb;
use frondb::{
    Batch, BulkLoad, BulkOptions, Db, Duplicates, Durability, ErrorKind, Transaction,
    TransactionOptions, Tree, TreeOptions,
};
use frondb_core::prng::Prng;
use frondb_device::Device;
use frondb_testkit::MemoryDevice;

use crate::support::{Rows, rows};

fn open(device: &Arc<MemoryDevice>) -> Db {
    let device = Arc::clone(device);
    TestDb::on(device).still().open().unwrap()
}

fn small() -> BulkOptions {
    // The smallest possible buffers.
    BulkOptions { memory_bytes: 1, durability: Durability::NoSync, ..BulkOptions::default() }
}

/// Unsorted entries from several threads into two trees, one empty and one not: runs on disk and
/// buffers in memory, large values, keys that one writer writes twice.
#[test]
fn a_load_has_its_entries_and_no_others() {
    for seed in 0..6 {
        let device = Arc::new(MemoryDevice::new());
        let db = open(&device);
        let trees = ["new", "old"].map(|name| db.create_tree(name, TreeOptions::new()).unwrap());
        let mut rng = Prng::new(seed);
        let mut models = [Rows::new(), Rows::new()];
        let mut batch = Batch::new();
        for _ in 0..500 {
            let key = rng.below(30_000).to_be_bytes();
            batch.put(&trees[1], &key, b"before");
            models[1].insert(key.to_vec(), b"before".to_vec());
        }
        db.write(&batch, Durability::NoSync).unwrap();
        if seed % 2 == 0 {
            db.flush().unwrap();
        }
        let load = db.bulk_load(small()).unwrap();
        let entries = [100, 4000, 12_000][seed as usize % 3];
        let given: Vec<[Rows; 2]> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3_u64)
                .map(|thread| {
                    let (mut writer, trees, mut rng) =
                        (load.writer(), &trees, Prng::new(rng.next_u64()));
                    scope.spawn(move || {
                        let mut given = [Rows::new(), Rows::new()];
                        for _ in 0..entries {
                            let at = rng.index(2);
                            // Each writer has its own keys.
                            let key = (rng.below(10_000) * 3 + thread).to_be_bytes().to_vec();
                            let long = if rng.chance(1, 1000) { 70_000 } else { 60 };
                            let value = vec![rng.below(256) as u8; rng.below(long) as usize];
                            writer.put(&trees[at], &key, &value).unwrap();
                            given[at].insert(key, value);
                        }
                        writer.finish().unwrap();
                        given
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let before = models.clone();
        assert_eq!(trees.each_ref().map(rows), before, "nothing shows before the commit");
        let loaded: usize = given.iter().flatten().map(Rows::len).sum();
        for (model, given) in given.into_iter().flat_map(|given| [0, 1].into_iter().zip(given)) {
            models[model].extend(given);
        }
        let mut last = 0;
        let report = load
            .finish(&mut |progress| {
                assert!(last <= progress.done && progress.done <= progress.total);
                last = progress.done;
                true
            })
            .unwrap();
        assert_eq!(report.entries, loaded as u64);
        assert_eq!(report.entries + report.duplicates, entries as u64 * 3);
        assert_eq!(report.sorted_runs > 6, entries == 12_000);
        for when in ["loaded", "settled", "reopened"] {
            let db = if when == "reopened" {
                db.close().unwrap();
                open(&device)
            } else {
                db.clone()
            };
            while when == "settled" && db.run_one(true) {}
            for (i, name) in ["new", "old"].into_iter().enumerate() {
                let tree = db.open_tree(name).unwrap();
                let found = rows(&tree);
                let differs = models[i].iter().find(|(key, value)| found.get(*key) != Some(value));
                let key = differs.map(|(key, _)| key);
                assert!(found == models[i], "seed {seed}: {when}, {name}: key {key:?}");
                tree.verify(&mut |_, _| true).unwrap();
            }
        }
    }
}

/// The duplicate key is reported whether its two entries meet in memory, when runs are merged in
/// passes, or at the end.
#[test]
fn a_key_that_is_given_twice_is_reported() {
    for (entries, distance) in [(100, 1), (20_000, 19_999), (400_000, 300_000)] {
        let db = open(&Arc::new(MemoryDevice::new()));
        let names = ["other", "twice"];
        let [other, tree] = names.map(|name| db.create_tree(name, TreeOptions::new()).unwrap());
        let key = |i: u32| i.wrapping_mul(2_654_435_761).to_be_bytes();
        for is_twice in [false, true] {
            let load = db.bulk_load(small()).unwrap();
            let mut writer = load.writer();
            for i in 0..entries {
                writer.put(&other, &key(i), b"").unwrap();
                let of = if is_twice && i == entries - 1 { i - distance } else { i };
                writer.put(&tree, &key(of), &[3; 40]).unwrap();
            }
            writer.finish().unwrap();
            let report = load.finish(&mut |_| true).unwrap();
            assert_eq!(report.duplicates, u64::from(is_twice));
            assert_eq!(report.sorted_runs > 64, entries == 400_000);
            let found = load.duplicate().map(|found| (found.tree, found.key.to_vec()));
            let twice = key(entries - 1 - distance).to_vec();
            assert_eq!(found, is_twice.then(|| (tree.id(), twice)));
        }
    }
}

/// Duplicates of many keys in two trees: the smallest key of the tree that was created first is
/// reported, whether the entries are sorted in memory or on disk.
#[test]
fn the_smallest_key_that_is_given_twice_is_reported() {
    for memory_bytes in [1, 64 << 20] {
        let db = open(&Arc::new(MemoryDevice::new()));
        let [first, second] =
            ["b", "a"].map(|name| db.create_tree(name, TreeOptions::new()).unwrap());
        let load = db.bulk_load(BulkOptions { memory_bytes, ..small() }).unwrap();
        let mut writer = load.writer();
        let mut twice = Rows::new();
        for i in 0..100_000_u32 {
            let key = (i % 99_000).wrapping_mul(2_654_435_761).to_be_bytes();
            writer.put(&second, &key, &[5; 30]).unwrap();
            writer.put(&first, &key, &[5; 30]).unwrap();
            if i >= 99_000 {
                twice.insert(key.to_vec(), Vec::new());
            }
        }
        writer.finish().unwrap();
        let report = load.finish(&mut |_| true).unwrap();
        assert_eq!((report.duplicates, report.sorted_runs > 4), (2000, memory_bytes == 1));
        let found = load.duplicate().unwrap();
        let least = twice.keys().next().unwrap();
        assert_eq!((found.tree, found.key.to_vec()), (first.id(), least.clone()));
    }
}

/// The base is written once, into as many leaves as a tree of this size has, and then no merge is
/// due.
#[test]
fn an_empty_tree_gets_its_base_at_once() {
    let db = open(&Arc::new(MemoryDevice::new()));
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let load = db.bulk_load(small()).unwrap();
    let mut writer = load.writer();
    for i in (0..200_000_u32).rev() {
        writer.put(&tree, &i.wrapping_mul(2_654_435_761).to_be_bytes(), &[3; 100]).unwrap();
    }
    writer.finish().unwrap();
    let report = load.finish(&mut |_| true).unwrap();
    assert!(report.sorted_runs > 64, "more than are merged in one pass");
    while db.run_one(false) {}
    let stats = tree.stats().unwrap();
    assert_eq!((stats.entries, stats.raw_bytes), (200_000, stats.base_raw_bytes));
    assert_eq!(stats.leaves, stats.views);
    assert_eq!(db.stats().rewrites + db.stats().merges, 0);
}

#[test]
fn a_load_that_fails_leaves_nothing() {
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device);
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    tree.put(b"k", b"v").unwrap();
    let used = db.stats().data_used_bytes;
    let before = rows(&tree);
    let fill = |load: &frondb::BulkLoad, n: u32| {
        let mut writer = load.writer();
        for i in 0..n {
            writer.put(&tree, &(i % 9000).to_be_bytes(), &[1; 80])?;
        }
        writer.put(&tree, b"large", &[9; 100_000])?;
        writer.put(&tree, b"large", &[8; 100_000])?;
        writer.finish()
    };
    let kind = |result: frondb::Result<frondb::BulkReport>| result.unwrap_err().kind();

    let load = db.bulk_load(small()).unwrap();
    fill(&load, 20_000).unwrap();
    drop(load);
    assert_eq!(db.stats().data_used_bytes, used, "dropped");

    let load = db.bulk_load(small()).unwrap();
    fill(&load, 20_000).unwrap();
    let mut calls = 0;
    let mut some = |_| {
        calls += 1;
        calls < 2
    };
    assert_eq!(kind(load.finish(&mut some)), ErrorKind::Cancelled);
    assert_eq!(db.stats().data_used_bytes, used, "cancelled by its progress");

    let load = db.bulk_load(small()).unwrap();
    load.cancel();
    assert_eq!(fill(&load, 20_000).unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(kind(load.finish(&mut |_| true)), ErrorKind::Cancelled);
    assert_eq!(db.stats().data_used_bytes, used, "cancelled");

    let load = db.bulk_load(small()).unwrap();
    let mut writer = load.writer();
    writer.put(&tree, b"a", b"b").unwrap();
    drop(writer);
    assert_eq!(kind(load.finish(&mut |_| true)), ErrorKind::Cancelled, "a writer was dropped");

    let load = db.bulk_load(BulkOptions { duplicates: Duplicates::Fail, ..small() }).unwrap();
    fill(&load, 20_000).unwrap();
    assert_eq!(kind(load.finish(&mut |_| true)), ErrorKind::Exists);
    assert_eq!(db.stats().data_used_bytes, used, "given twice");
    assert_eq!(load.duplicate().unwrap().tree, tree.id());

    let load = db.bulk_load(small()).unwrap();
    let _writer = load.writer();
    assert_eq!(kind(load.finish(&mut |_| true)), ErrorKind::Invalid, "a writer is under way");

    let load = db.bulk_load(small()).unwrap();
    let other = db.create_tree("other", TreeOptions::new()).unwrap();
    let mut writer = load.writer();
    writer.put(&other, b"a", b"b").unwrap();
    writer.put(&tree, b"a", b"b").unwrap();
    writer.finish().unwrap();
    db.drop_tree("other").unwrap();
    assert_eq!(kind(load.finish(&mut |_| true)), ErrorKind::NotFound);
    assert_eq!(rows(&tree), before);

    // An empty load is no error.
    let load = db.bulk_load(small()).unwrap();
    load.writer().finish().unwrap();
    assert_eq!(load.finish(&mut |_| true).unwrap().entries, 0);
    db.close().unwrap();
    assert_eq!(rows(&open(&device).open_tree("t").unwrap()), before);
}

/// A snapshot from before the load does not see it, and locks of a transaction delay the load.
#[test]
fn a_load_is_one_commit() {
    let db = open(&Arc::new(MemoryDevice::new()));
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    tree.put(b"k", b"v").unwrap();
    let snapshot = db.snapshot().unwrap();
    let reader = db.begin(TransactionOptions::new()).unwrap();
    assert_eq!(reader.get(&tree, b"a").unwrap(), None);
    let load = db.bulk_load(small()).unwrap();
    let mut writer = load.writer();
    writer.put(&tree, b"a", b"loaded").unwrap();
    writer.put(&tree, b"k", b"loaded").unwrap();
    writer.finish().unwrap();
    let locker = db.begin(TransactionOptions::new()).unwrap();
    locker.put(&tree, b"x", b"y").unwrap();
    std::thread::scope(|scope| {
        let loading = scope.spawn(|| load.finish(&mut |_| true));
        while db.lock_waits().is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(tree.get(b"a").unwrap(), None);
        locker.commit().unwrap();
        assert_eq!(loading.join().unwrap().unwrap().entries, 2);
    });
    assert_eq!(tree.get(b"a").unwrap().as_deref(), Some(&b"loaded"[..]));
    assert_eq!(tree.get_at(b"a", &snapshot).unwrap(), None);
    assert_eq!(reader.get(&tree, b"k").unwrap().as_deref(), Some(&b"v"[..]));
    assert!(db.locks().is_empty());
}

/// Returns a load of one entry that is ready to finish, and a transaction that holds locks in its
/// tree.
fn load_and_writer(db: &Db, tree: &Tree, options: BulkOptions) -> (BulkLoad, Transaction) {
    let load = db.bulk_load(options).unwrap();
    let mut writer = load.writer();
    writer.put(tree, b"loaded", b"").unwrap();
    writer.finish().unwrap();
    let transaction = db.begin(TransactionOptions::new()).unwrap();
    transaction.put(tree, b"x", b"").unwrap();
    (load, transaction)
}

/// A load waits for a transaction. When the transaction takes its next lock, neither of them fails.
#[test]
fn a_load_loses_nothing_to_a_deadlock() {
    let db = open(&Arc::new(MemoryDevice::new()));
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let (load, transaction) = load_and_writer(&db, &tree, small());
    std::thread::scope(|scope| {
        let loading = scope.spawn(|| load.finish(&mut |_| true));
        for key in 0..20_u32 {
            while db.lock_waits().is_empty() {
                std::thread::yield_now();
            }
            transaction.put(&tree, &key.to_be_bytes(), b"").unwrap();
        }
        transaction.commit().unwrap();
        assert_eq!(loading.join().unwrap().unwrap().entries, 1);
    });
    assert_eq!(rows(&tree).len(), 22);
}

/// Each attempt of a load locks the first of its two trees again. That counts for nothing: the load
/// loses even to a transaction that has written one row.
#[test]
fn a_load_into_two_trees_is_the_victim_of_every_deadlock() {
    let db = open(&Arc::new(MemoryDevice::new()));
    let [one, two] = ["one", "two"].map(|name| db.create_tree(name, TreeOptions::new()).unwrap());
    let load = db.bulk_load(small()).unwrap();
    let mut writer = load.writer();
    writer.put(&one, b"loaded", b"").unwrap();
    writer.put(&two, b"loaded", b"").unwrap();
    writer.finish().unwrap();
    let transaction = db.begin(TransactionOptions::new()).unwrap();
    transaction.put(&two, b"written", b"").unwrap();
    std::thread::scope(|scope| {
        let loading = scope.spawn(|| load.finish(&mut |_| true));
        while db.stats().lock_timeouts < 4 {
            std::thread::yield_now();
        }
        transaction.put(&one, b"written", b"").unwrap();
        transaction.commit().unwrap();
        loading.join().unwrap().unwrap();
    });
    assert_eq!((rows(&one).len(), rows(&two).len()), (2, 2));
}

/// While a load waits for an idle transaction, other writers can lock the other rows.
#[test]
fn a_load_that_waits_blocks_no_other_row() {
    let db = open(&Arc::new(MemoryDevice::new()));
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let (load, transaction) = load_and_writer(&db, &tree, small());
    std::thread::scope(|scope| {
        let loading = scope.spawn(|| load.finish(&mut |_| true));
        for key in 0..3_u32 {
            while db.lock_waits().is_empty() {
                std::thread::yield_now();
            }
            tree.put(&key.to_be_bytes(), b"").unwrap();
        }
        transaction.commit().unwrap();
        loading.join().unwrap().unwrap();
    });
    assert_eq!(rows(&tree).len(), 5);
}

#[test]
fn a_load_that_waits_can_be_stopped() {
    let db = open(&Arc::new(MemoryDevice::new()));
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let stops: [fn(&Db, &BulkLoad) -> ErrorKind; 3] = [
        // Cancelled by another thread.
        |db, load| {
            std::thread::scope(|scope| {
                let loading = scope.spawn(|| load.finish(&mut |_| true));
                while db.lock_waits().is_empty() {
                    std::thread::yield_now();
                }
                load.cancel();
                loading.join().unwrap().unwrap_err().kind()
            })
        },
        // Cancelled by the progress callback.
        |_, load| {
            let mut calls = 0;
            let finished = load.finish(&mut |_| {
                calls += 1;
                calls < 5
            });
            finished.unwrap_err().kind()
        },
        // Ended by the load's own lock timeout, which abandons the load.
        |_, load| {
            let error = load.finish(&mut |_| true).unwrap_err();
            assert!(error.message().contains("tree \"t\""), "{error}");
            error.kind()
        },
    ];
    let options = |lock_timeout| BulkOptions { lock_timeout, ..small() };
    let (long, short) = (Duration::from_secs(3600), Duration::from_millis(150));
    for (stop, timeout) in stops.into_iter().zip([long, long, short]) {
        let (load, transaction) = load_and_writer(&db, &tree, options(timeout));
        let expected = if timeout == long { ErrorKind::Cancelled } else { ErrorKind::LockTimeout };
        assert_eq!(stop(&db, &load), expected);
        assert_eq!(load.finish(&mut |_| true).unwrap_err().kind(), ErrorKind::Invalid);
        transaction.rollback().unwrap();
        assert!(rows(&tree).is_empty());
        assert!(db.locks().is_empty());
    }
}

/// A load that finds the disk full, while it reads its entries or while it merges them, does not
/// leave the disk full: when it is dropped, its space is back in the file system.
#[test]
fn a_load_that_fills_the_disk_gives_its_space_back_at_once() {
    let mut ends = [0, 0];
    for all in [4 << 20, 12 << 20, 17 << 20, 20 << 20] {
        let device = Arc::new(MemoryDevice::new());
        let db = open(&device);
        device.set_capacity(device.used_bytes() + all);
        let load = db.bulk_load(small()).unwrap();
        let tree = load.new_tree("t", TreeOptions::new()).unwrap();
        let (mut writer, mut prng) = (load.writer(), Prng::new(all));
        let put = (0..12_000).try_for_each(|_| {
            let mut value = vec![0; 1000];
            prng.fill(&mut value);
            writer.put(&tree, &prng.next_u64().to_be_bytes(), &value)
        });
        let (at, result) = match put {
            Err(error) => {
                drop(writer);
                (0, Err(error))
            }
            Ok(()) => (1, writer.finish().and_then(|()| load.finish(&mut |_| true))),
        };
        assert_eq!(result.unwrap_err().kind(), ErrorKind::NoSpace);
        ends[at] += 1;
        drop(load);
        let free = device.free_bytes().unwrap();
        assert!(free * 2 >= all, "{free} of {all} bytes are free");
    }
    assert!(ends.iter().all(|&n| n > 0), "reading, merging: {ends:?}");
}
