//! Estimates are within a factor of two of the truth, whether the messages are in memtables, in
//! flushed runs, or merged.

use frondb::{Batch, Db, Durability, FirstEntries, Options, Tree, TreeOptions};
use frondb_testkit::TempDir;

const N: u64 = 10_000;

fn options() -> Options {
    Options::new().memory_bytes(64 << 20).background_threads(0)
}

/// Writes `n` messages, which `add` makes from numbers in a scattered order.
fn write(db: &Db, n: u64, add: impl Fn(&mut Batch, u64)) {
    let mut batch = Batch::new();
    for i in 0..n {
        add(&mut batch, i * 7919 % n);
        if batch.len() >= 1000 || i + 1 == n {
            db.write(&batch, Durability::NoSync).unwrap();
            batch.clear();
        }
    }
}

/// Keys are even numbers, so that odd numbers are missing keys.
fn key(i: u64) -> Vec<u8> {
    format!("key/{:012}", i * 2).into_bytes()
}

fn absent(i: u64) -> Vec<u8> {
    format!("key/{:012}", i * 2 + 1).into_bytes()
}

fn put(tree: &Tree, from: u64) -> impl Fn(&mut Batch, u64) {
    move |batch, i| batch.put(tree, &key(from + i), &[b'v'; 40])
}

fn truth(tree: &Tree, lo: &[u8], hi: Option<&[u8]>) -> u64 {
    let mut cursor = tree.cursor().unwrap();
    let mut n = 0;
    let mut more = cursor.seek(lo).unwrap();
    while more && hi.is_none_or(|hi| cursor.key() < hi) {
        n += 1;
        more = cursor.next().unwrap();
    }
    n
}

fn assert_close(tree: &Tree, what: &str) {
    let ends = [
        (Vec::new(), None),
        (key(N / 4), Some(key(N / 2))),
        (key(N / 2), None),
        (b"key".to_vec(), Some(b"kez".to_vec())),
    ];
    for (lo, hi) in ends {
        let hi = hi.as_deref();
        let (truth, found) = (truth(tree, &lo, hi), tree.estimate(&lo, hi).unwrap().entries);
        // The position of each end of the range within its block is estimated.
        let (least, most) = ((truth / 2).saturating_sub(500), truth * 2 + 500);
        assert!((least..=most).contains(&found), "{what} {hi:?}: {found}, really {truth}");
    }
    for i in 0..20 {
        let (lo, hi) = (key(i * N / 20), key(i * N / 20 + 100));
        let (truth, found) = (truth(tree, &lo, Some(&hi)), tree.count_first(&lo, Some(&hi), 128));
        let FirstEntries { count, is_all, is_estimate, .. } = found.unwrap();
        let is_true = match (is_all, is_estimate) {
            (true, _) => count == truth,
            (false, true) => count >= truth / 2 && count <= truth * 2,
            (false, false) => count <= truth,
        };
        assert!(is_true, "{what} {i}: {count} of all {is_all}, really {truth}");
        let about = tree.estimate_first(&lo, Some(&hi), 128).unwrap();
        let is_near = match about.is_estimate {
            true => about.count >= truth / 2 && about.count <= truth * 2,
            false => (about.count, about.is_all) == (count, is_all),
        };
        assert!(is_near, "{what} {i}: {about:?}, really {truth}");
    }
}

/// Ranges of a hundred keys.
fn hundreds() -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    (0..20).map(|i| (key(i * N / 20), key(i * N / 20 + 100)))
}

/// Checks that ranges of a hundred keys are counted and not estimated.
fn assert_counted(tree: &Tree, what: &str) {
    for (lo, hi) in hundreds() {
        let found = tree.count_first(&lo, Some(&hi), 128).unwrap();
        let exact = found.is_all && !found.is_estimate && found.count == 100;
        assert!(exact, "{what}: {found:?}");
    }
}

/// Runs `work` on trees with N keys. The keys, and then the messages of `work`, are in a memtable
/// or flushed, in every combination.
fn everywhere(what: &str, work: impl Fn(&Db, &Tree)) {
    for (flush_keys, flush_work) in [(false, false), (true, false), (false, true), (true, true)] {
        let dir = TempDir::new("estimates");
        let db = Db::open(dir.path(), options()).unwrap();
        let tree = db
            .create_tree("t", TreeOptions::new().shape(|shape| shape.leaf_bytes_min = 256 << 10))
            .unwrap();
        let what = format!("{what}, keys flushed {flush_keys}, rest flushed {flush_work}");
        write(&db, N, put(&tree, 0));
        assert_close(&tree, "keys alone");
        assert_counted(&tree, "keys alone");
        if flush_keys {
            db.flush().unwrap();
            assert_close(&tree, "keys alone, flushed");
            assert_counted(&tree, "keys alone, flushed");
        }
        work(&db, &tree);
        assert_close(&tree, &what);
        if flush_work {
            db.flush().unwrap();
            assert_close(&tree, &what);
            db.wait_settled().unwrap();
            assert_close(&tree, &format!("{what}, settled"));
        }
    }
}

/// Each run spans all groups of keys, but each group is in only one run or in the memtable. Counts
/// are then exact even beyond the number of keys that are counted one by one.
#[test]
fn a_range_with_entries_of_one_source_is_counted_by_positions() {
    const GROUP: u64 = 250;
    let dir = TempDir::new("estimates");
    let db = Db::open(dir.path(), options()).unwrap();
    let tree = db
        .create_tree("t", TreeOptions::new().shape(|shape| shape.leaf_bytes_min = 256 << 10))
        .unwrap();
    for source in 0..4 {
        for group in (0..32).filter(|group| group % 4 == source) {
            write(&db, GROUP, put(&tree, group * GROUP));
        }
        if source < 3 {
            db.flush().unwrap();
        }
    }
    let count = |lo: u64, hi: u64| tree.count_first(&key(lo), Some(&key(hi)), 128).unwrap();
    for group in 0..32 {
        let (lo, hi) = (group * GROUP, (group + 1) * GROUP);
        let whole = count(lo, hi);
        assert!(whole.is_all && whole.count == GROUP, "{group}: {whole:?}");
        let part = count(lo + 20, hi - 30);
        assert!(part.is_all && part.count == GROUP - 50, "{group}: {part:?}");
        // A range with keys of two sources is counted by merging them.
        let both = count(hi - 40, (hi + 60).min(32 * GROUP));
        let truth = if group == 31 { 40 } else { 100 };
        assert!(both.is_all && both.count == truth, "{group}: {both:?}");
    }
}

/// If at least half of the messages of a range are in bases and few are deletes, the estimate is
/// the number of entries in the bases. Otherwise the messages are merged and counted.
#[test]
fn bases_stand_for_a_range_with_few_messages_above_them() {
    // Whether the messages are flushed, and whether they are deletes or puts.
    for (flush, deletes) in [(false, false), (true, false), (false, true), (true, true)] {
        let dir = TempDir::new("estimates");
        let db = Db::open(dir.path(), options()).unwrap();
        let tree = db.create_tree("t", TreeOptions::new()).unwrap();
        write(&db, N, put(&tree, 0));
        db.flush().unwrap();
        db.wait_settled().unwrap();
        assert_counted(&tree, "consolidated");
        // Writes to groups of a hundred keys: `group * 5` keys of each group.
        let mut batch = Batch::new();
        for (group, i) in (0..20).flat_map(|group| (0..group * 5).map(move |i| (group, i))) {
            let key = key(group * N / 20 + i);
            if deletes { batch.delete(&tree, &key) } else { batch.put(&tree, &key, b"new") }
        }
        db.write(&batch, Durability::NoSync).unwrap();
        if flush {
            db.flush().unwrap();
        }
        for (group, (lo, hi)) in (0..).zip(hundreds()) {
            let found = tree.estimate_first(&lo, Some(&hi), 128).unwrap();
            let truth = if deletes { 100 - group * 5 } else { 100 };
            let (is_few, what) = (!deletes || group <= 5, format!("{group}: {found:?}"));
            match group {
                0 => assert!(found.is_all && found.count == 100, "{what}"),
                _ if is_few => assert!(found.is_estimate && found.count == 100, "{what}"),
                _ => assert!(found.is_all && found.count == truth, "{what}"),
            }
        }
        // The messages of a range of few keys are always merged.
        let few = tree.estimate_first(&key(N / 20), Some(&key(N / 20 + 6)), 128).unwrap();
        assert!(few.is_all && few.count == if deletes { 1 } else { 6 }, "{few:?}");
    }
}

#[test]
fn deletes_of_absent_keys_take_nothing_away() {
    everywhere("blind deletes", |db, tree| {
        write(db, N, |batch, i| batch.delete(tree, &absent(i)));
    });
}

#[test]
fn overwrites_add_nothing() {
    everywhere("overwrites", |db, tree| {
        for _ in 0..4 {
            write(db, N, put(tree, 0));
        }
    });
    everywhere("overwrites, each flushed", |db, tree| {
        for _ in 0..4 {
            write(db, N, put(tree, 0));
            db.flush().unwrap();
        }
    });
}

#[test]
fn old_versions_of_snapshots_are_not_counted() {
    everywhere("overwrites under snapshots", |db, tree| {
        let mut snapshots = Vec::new();
        for _ in 0..2 {
            snapshots.push(db.snapshot().unwrap());
            write(db, N, put(tree, 0));
            db.flush().unwrap();
            db.wait_settled().unwrap();
            assert_close(tree, "overwritten under a snapshot");
            assert_counted(tree, "overwritten under a snapshot");
        }
    });
}

#[test]
fn keys_that_are_written_all_the_time_are_estimated() {
    let dir = TempDir::new("estimates");
    let db = Db::open(dir.path(), options()).unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    for _ in 0..8 {
        write(&db, N, put(&tree, 0));
    }
    for (lo, hi) in hundreds() {
        let found = tree.count_first(&lo, Some(&hi), 128).unwrap();
        assert!(found.is_estimate && (80..=125).contains(&found.count), "{found:?}");
    }
}

#[test]
fn new_keys_are_added() {
    everywhere("appended", |db, tree| write(db, 2 * N, put(tree, N)));
    everywhere("between", |db, tree| {
        write(db, N, |batch, i| batch.put(tree, &absent(i), &[b'v'; 40]));
    });
}

#[test]
fn deletes_reduce_the_estimates() {
    everywhere("every other", |db, tree| {
        write(db, N / 2, |batch, i| batch.delete(tree, &key(2 * i)));
    });
    everywhere("all", |db, tree| write(db, N, |batch, i| batch.delete(tree, &key(i))));
    everywhere("the front of a queue", |db, tree| {
        write(db, N * 3 / 4, |batch, i| batch.delete(tree, &key(i)));
    });
}

#[test]
fn estimates_do_not_extrapolate_from_a_deleted_front() {
    everywhere("written again and again, then the front of each part deleted", |db, tree| {
        for _ in 0..6 {
            write(db, N, put(tree, 0));
        }
        write(db, N / 10, |batch, i| batch.delete(tree, &key(i / 50 * 500 + i % 50)));
    });
}

/// A time series whose oldest rows are deleted, with an index that begins with a column of few
/// values: each value has a long deleted part and a short live part.
#[test]
fn estimates_tell_a_deleted_left_part_from_a_live_right_part() {
    const VALUES: u64 = 10;
    const LIVE: u64 = 20_000;
    const PART: u64 = 2000;
    let key = |i: u64| [(i % VALUES).to_be_bytes(), i.to_be_bytes()].concat();
    for flush_every in [u64::MAX, 9] {
        let dir = TempDir::new("estimates");
        let db = Db::open(dir.path(), options()).unwrap();
        let tree = db.create_tree("t", TreeOptions::new()).unwrap();
        let mut from = 0;
        for round in 0..60 {
            let mut batch = Batch::new();
            let to = if round == 0 { LIVE } else { PART };
            (0..to)
                .for_each(|i| batch.put(&tree, &key(from + LIVE * u64::from(round > 0) + i), b""));
            if round > 0 {
                (0..PART).for_each(|i| batch.delete(&tree, &key(from + i)));
                from += PART;
            }
            db.write(&batch, Durability::NoSync).unwrap();
            if round % flush_every == flush_every - 1 {
                db.flush().unwrap();
            }
            for value in [0, 3, 9] {
                let [lo, hi] = [value, value + 1].map(u64::to_be_bytes);
                let found = tree.estimate(&lo, Some(&hi)).unwrap().entries;
                let truth = LIVE / VALUES;
                let is_near = (truth / 2..=truth * 2).contains(&found);
                assert!(is_near, "{found} in round {round}, really {truth}");
            }
        }
    }
}

#[test]
fn few_keys_may_be_asked_for() {
    everywhere("counts of a few keys", |db, tree| {
        for _ in 0..6 {
            write(db, N, put(tree, 0));
        }
        for max_keys in 0..20 {
            let first = tree.count_first(&key(0), Some(&key(100)), max_keys).unwrap();
            let is_true = match first.is_estimate {
                true => max_keys >= 8 && (50..=200).contains(&first.count),
                false => first.count <= max_keys || first.is_all && first.count == 100,
            };
            assert!(is_true, "{max_keys} keys: {first:?}");
        }
        // Any limit is accepted, however large.
        for max_keys in [1 << 62, 1 << 63, u64::MAX] {
            let first = tree.count_first(&key(0), Some(&key(100)), max_keys).unwrap();
            assert!(first.is_all && first.count == 100, "{max_keys} keys: {first:?}");
        }
    });
}

#[test]
fn range_deletes_hide_older_rows() {
    everywhere("a range", |_, tree| tree.delete_range(&key(N / 4), Some(&key(N * 3 / 4))).unwrap());
    everywhere("all of it", |_, tree| tree.delete_range(b"", None).unwrap());
    everywhere("emptied and filled again", |db, tree| {
        tree.delete_range(b"", None).unwrap();
        write(db, N, put(tree, 0));
    });
}

#[test]
fn memory_will_be_disk() {
    let dir = TempDir::new("estimates");
    let db = Db::open(dir.path(), options()).unwrap();
    let tree = db.create_tree("t", TreeOptions::new().codec(frondb::Codec::None)).unwrap();
    assert_eq!(tree.estimate(b"", None).unwrap(), frondb::RangeEstimate::default());
    write(&db, N, put(&tree, 0));
    let before = tree.estimate(b"", None).unwrap().disk_bytes;
    db.flush().unwrap();
    db.wait_settled().unwrap();
    let after = tree.estimate(b"", None).unwrap().disk_bytes;
    assert!(before > 0 && before <= after * 2 && after <= before * 2, "{before} {after}");
    assert_eq!(tree.estimate(b"x", Some(b"a")).unwrap(), frondb::RangeEstimate::default());
}

#[test]
fn split_keys_cut_parts_of_about_the_same_size() {
    // Most of the key space is empty, so the parts must follow the keys.
    everywhere("keys far away", |db, tree| {
        let mut batch = Batch::new();
        batch.put(tree, b"\0", b"least");
        batch.put(tree, b"zzzzzzzzzzzz", b"most");
        db.write(&batch, Durability::NoSync).unwrap();
        for parts in [2, 7, 16] {
            let mut keys = tree.split_keys(parts).unwrap();
            assert_eq!(keys.len(), parts - 1);
            assert!(keys.is_sorted_by(|a, b| a < b), "{keys:?}");
            keys.insert(0, Vec::new());
            for (i, lo) in keys.iter().enumerate() {
                let n = truth(tree, lo, keys.get(i + 1).map(|hi| &hi[..]));
                let even = N / parts as u64;
                // The position of a key within its block is estimated.
                let (least, most) = ((even / 2).saturating_sub(500), even * 2 + 500);
                assert!((least..=most).contains(&n), "part {i} of {parts} has {n}");
            }
        }
    });
}

#[test]
fn messages_are_counted_as_they_are_written() {
    everywhere("written twice", |db, tree| {
        let before = tree.messages(b"", None).unwrap();
        write(db, N, put(tree, 0));
        // Nothing has been merged as long as all messages are in memory.
        let after = tree.messages(b"", None).unwrap();
        assert!(after.all >= before.all + N, "{before:?} {after:?}");
        assert!(after.base <= N, "{after:?}");
        let (lo, hi) = (key(N / 4), key(N / 2));
        let part = tree.messages(&lo, Some(&hi)).unwrap().all;
        let (least, most) = (N / 2 - 500, N / 2 + 500);
        assert!((least..=most).contains(&part), "{part}");
        assert_eq!(tree.messages(&hi, Some(&lo)).unwrap().all, 0);
        db.flush().unwrap();
        db.wait_settled().unwrap();
    });
}

#[test]
fn few_keys_are_cut_into_few_parts() {
    let dir = TempDir::new("estimates");
    let db = Db::open(dir.path(), options()).unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    assert!(tree.split_keys(10).unwrap().is_empty());
    tree.put(b"one", b"").unwrap();
    assert!(tree.split_keys(10).unwrap().is_empty());
    tree.put(b"three", b"").unwrap();
    tree.put(b"two", b"").unwrap();
    let keys = tree.split_keys(10).unwrap();
    assert!((1..=2).contains(&keys.len()), "{keys:?}");
    assert!(tree.split_keys(0).unwrap().is_empty());
}
