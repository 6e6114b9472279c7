//! Ranges of keys with the same first bytes, in trees whose filters hash these bytes. Cursors and
//! counts return the same as without filters, and read fewer blocks.

use std::collections::BTreeMap;
use std::ops::Bound;

use frondb::{
    Batch, CursorOptions, Db, Durability, FilterPolicy, Options, Snapshot, Tree, TreeOptions,
};
use frondb_core::prng::Prng;
use frondb_testkit::{TempDir, seed};

/// A key consists of a group, a part of the group, and a number.
const GROUPS: u64 = 40;
const PARTS: u64 = 3;
const NUMBERS: u64 = 20;

fn key(group: u64, part: u64, number: u64) -> Vec<u8> {
    // Groups at the upper end of the byte range, so that the end of a prefix is shorter than the
    // prefix.
    let group = (0xffff - GROUPS + 1 + group) as u16;
    [&group.to_be_bytes()[..], &[0xfd + part as u8, number as u8]].concat()
}

fn random_key(prng: &mut Prng) -> Vec<u8> {
    let mut key = key(prng.below(GROUPS), prng.below(PARTS), prng.below(NUMBERS));
    // Some keys are shorter than the hashed bytes.
    key.truncate(if prng.chance(1, 20) { 1 + prng.index(3) } else { 4 });
    key
}

/// Returns the smallest key above all keys with this prefix.
fn end_of(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

/// Returns random bounds of a range: mostly one within the keys of a prefix, or all of these keys.
fn random_range(prng: &mut Prng) -> (Vec<u8>, Option<Vec<u8>>) {
    let mut prefix = random_key(prng);
    prefix.truncate(1 + prng.index(3));
    let end = end_of(&prefix);
    let within = |prng: &mut Prng| [&prefix[..], &[0xfe + prng.below(2) as u8]].concat();
    match prng.below(6) {
        0 => (within(prng), end),
        1 => (prefix.clone(), Some(within(prng))),
        2 => (within(prng), Some([&within(prng)[..], &[9]].concat())),
        3 => (random_key(prng), Some(random_key(prng))),
        4 => (prefix, None),
        _ => (prefix, end),
    }
}

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// Reads a range in one of the directions; returns its entries in ascending order.
fn scan(tree: &Tree, options: &CursorOptions, backward: bool) -> Entries {
    let mut cursor = tree.cursor_with(options.clone()).unwrap();
    let mut found = Vec::new();
    let mut more = if backward { cursor.last().unwrap() } else { cursor.first().unwrap() };
    while more {
        found.push((cursor.key().to_vec(), cursor.value().unwrap().to_vec()));
        more = if backward { cursor.prev().unwrap() } else { cursor.next().unwrap() };
    }
    // Also seek within the bounds, and change the direction.
    if let Some((key, _)) = found.get(found.len() / 2) {
        assert!(cursor.seek(key).unwrap() && cursor.key() == key);
        let has_previous = cursor.prev().unwrap();
        assert!(!has_previous || cursor.key() < &key[..]);
        assert!(cursor.seek_for_prev(key).unwrap() && cursor.key() == key);
    }
    if backward {
        found.reverse();
    }
    found
}

/// Random histories of puts, deletes and range deletes, in trees of each filter policy. Whatever is
/// flushed or merged, all trees show the same entries in the same order at each snapshot, and count
/// the same.
#[test]
fn filters_change_neither_scans_nor_counts() {
    let policies = [
        FilterPolicy::None,
        FilterPolicy::Runs,
        FilterPolicy::Prefix(1),
        FilterPolicy::Prefix(2),
        FilterPolicy::Prefix(3),
    ];
    let first = seed::from_env("FRONDB_SHORT_RANGES_SEED", 1u64);
    for round in first..first + 4 {
        let mut prng = Prng::new(round);
        let dir = TempDir::new("short-ranges");
        let db = Db::open(dir.path(), Options::new().background_threads(0)).unwrap();
        let trees: Vec<Tree> = policies
            .iter()
            .map(|&policy| {
                let options = TreeOptions::new().filter(policy).shape(|shape| {
                    shape.leaf_bytes_min = 4 << 10;
                    shape.leaf_bytes_max = 8 << 10;
                    shape.slice_bytes_min = 256;
                    shape.base_block_bytes = 256;
                    shape.run_block_bytes = 256;
                });
                db.create_tree(&format!("{policy:?}"), options).unwrap()
            })
            .collect();
        let mut model = BTreeMap::new();
        let mut snapshots = Vec::new();
        for step in 0..60u64 {
            change(&mut prng, &db, &trees, &mut model, step);
            if prng.chance(1, 2) {
                db.flush().unwrap();
            }
            (0..prng.below(4)).for_each(|_| _ = db.run_one(false));
            if prng.chance(1, 4) {
                snapshots.push((db.snapshot().unwrap(), model.clone()));
            }
            if snapshots.len() > 3 {
                drop(snapshots.swap_remove(prng.index(4)));
            }
            for _ in 0..15 {
                let (lo, hi) = random_range(&mut prng);
                let now = (None, &model);
                let old = prng.pick(&snapshots).map(|(at, model)| (Some(at), model));
                for (snapshot, model) in old.into_iter().chain([now]) {
                    check(&trees, &lo, hi.as_deref(), snapshot, model);
                }
            }
        }
        let excluded = db.stats().filter_negatives;
        assert!(excluded > 300, "filters have excluded {excluded} ranges only");
    }
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Makes the same changes in all trees and in the model.
fn change(prng: &mut Prng, db: &Db, trees: &[Tree], model: &mut Model, step: u64) {
    let mut batch = Batch::new();
    // Each batch changes few groups, as if the keys were written at different times.
    let group = prng.below(GROUPS);
    for _ in 0..prng.below(60) {
        let mut key = random_key(prng);
        if prng.chance(2, 3) {
            let of_group = self::key(group, 0, 0);
            let shared = key.len().min(2);
            key[..shared].copy_from_slice(&of_group[..shared]);
        }
        if prng.chance(1, 3) {
            model.remove(&key);
            trees.iter().for_each(|tree| batch.delete(tree, &key));
        } else {
            let value = step.to_be_bytes().to_vec();
            trees.iter().for_each(|tree| batch.put(tree, &key, &value));
            model.insert(key, value);
        }
    }
    if prng.chance(1, 4) {
        let (lo, hi) = random_range(prng);
        // Of the ranges without an upper bound, which delete every key from `lo` on, use only one
        // in five.
        if hi.as_ref().is_none_or(|hi| lo < *hi) && (hi.is_some() || prng.chance(1, 5)) {
            model.retain(|key, _| *key < lo || hi.as_ref().is_some_and(|hi| key >= hi));
            trees.iter().for_each(|tree| batch.delete_range(tree, &lo, hi.as_deref()));
        }
    }
    db.write(&batch, Durability::NoSync).unwrap();
}

/// Compares all trees with the model in `[lo, hi)`.
fn check(trees: &[Tree], lo: &[u8], hi: Option<&[u8]>, snapshot: Option<&Snapshot>, model: &Model) {
    let inside = |key: &[u8]| lo <= key && hi.is_none_or(|hi| key < hi);
    let expected: Entries =
        model.iter().filter(|(key, _)| inside(key)).map(|(k, v)| (k.clone(), v.clone())).collect();
    for tree in trees {
        let end = hi.map_or(Bound::Unbounded, Bound::Excluded);
        let mut options = CursorOptions::new().range((Bound::Included(lo), end));
        if let Some(snapshot) = snapshot {
            options = options.at(snapshot);
        }
        for backward in [false, true] {
            let found = scan(tree, &options, backward);
            assert_eq!(found, expected, "{} {lo:?} to {hi:?}, {backward}", tree.name());
        }
        if snapshot.is_none() && hi.is_none_or(|hi| lo < hi) {
            let count = tree.count_first(lo, hi, 100_000).unwrap();
            let exact = count.is_all && !count.is_estimate && count.count == expected.len() as u64;
            assert!(exact, "{} {lo:?} to {hi:?}: {count:?} of {}", tree.name(), expected.len());
        }
    }
}

/// Scans and counts read no block of runs above the base that lack the scanned group.
#[test]
fn a_short_scan_reads_no_block_of_runs_without_its_prefix() {
    const GROUPS: u64 = 20_000;
    let key = |group: u64, number: u64| [group.to_be_bytes(), number.to_be_bytes()].concat();
    let mut reads = Vec::new();
    for policy in [FilterPolicy::Runs, FilterPolicy::Prefix(8)] {
        let dir = TempDir::new("short-ranges");
        let options = || Options::new().memory_bytes(16 << 20).background_threads(0);
        let db = Db::open(dir.path(), options()).unwrap();
        let tree_options = TreeOptions::new().filter(policy);
        // Small blocks, so that each group that is read has its own blocks in each run.
        let tree_options = tree_options.shape(|shape| shape.run_block_bytes = 512);
        let tree = db.create_tree("t", tree_options).unwrap();
        let put = |groups: &mut dyn Iterator<Item = u64>, number: u64| {
            let mut batch = Batch::new();
            for group in groups {
                batch.put(&tree, &key(group, number), &[number as u8; 100]);
            }
            db.write(&batch, Durability::NoSync).unwrap();
        };
        (0..3).for_each(|number| put(&mut (0..GROUPS), number));
        db.flush().unwrap();
        db.wait_settled().unwrap();
        // Five runs above the base, each with one group in twenty.
        for run in 0..5 {
            put(&mut (0..GROUPS).filter(|group| group % 20 == run), 3 + run);
            db.flush().unwrap();
        }
        drop((db, tree));
        let db = Db::open(dir.path(), options()).unwrap();
        let tree = db.open_tree("t").unwrap();
        let scanned = read_of(&db, &|group| {
            let bounds = CursorOptions::new().prefix(&group.to_be_bytes());
            let mut cursor = tree.cursor_with(bounds).unwrap();
            let mut rows = 0;
            while cursor.prev().unwrap() {
                rows += 1;
            }
            assert_eq!(rows, 3);
        });
        drop((db, tree));
        let db = Db::open(dir.path(), options()).unwrap();
        let tree = db.open_tree("t").unwrap();
        let counted = read_of(&db, &|group| {
            let count =
                tree.count_first(&key(group, 0), Some(&(group + 1).to_be_bytes()), 128).unwrap();
            assert!(count.is_all && count.count == 3, "{count:?}");
        });
        reads.push((scanned, counted));
    }
    let [(scanned_all, counted_all), (scanned, counted)] = reads[..] else { panic!("{reads:?}") };
    // The two blocks of the base that each group needs are read in any case.
    assert!(scanned + 300 < scanned_all && counted + 300 < counted_all, "{reads:?}");
}

/// Counts the device reads of `work`, which is called with groups far from each other.
fn read_of(db: &Db, work: &dyn Fn(u64)) -> u64 {
    let before = db.stats().reads;
    (0..200).for_each(|i| work(i * 97 % 200 * 100 + 10));
    db.stats().reads - before
}
