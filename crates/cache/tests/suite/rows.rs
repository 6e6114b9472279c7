//! The row cache: what it keeps, what it charges, and how it yields.

use std::collections::BTreeMap;
use std::sync::Arc;

use frondb_cache::{Row, RowCache};
use frondb_core::budget::{Budget, Part};
use frondb_core::prng::Prng;
use frondb_core::{MessageKind, RunId, SeqNo};

fn row<'a>(run: u64, key: &'a [u8], value: &'a [u8]) -> Row<'a> {
    Row { run: RunId(run), key, seq: SeqNo(7), kind: MessageKind::Put, value }
}

fn value_of(rows: &RowCache, run: u64, key: &[u8]) -> Option<Vec<u8>> {
    rows.get(RunId(run), key, |row| row.value.to_vec())
}

/// Checks that the budget charges the rows exactly, and nothing once the cache is dropped.
fn check_accounts(budget: &Budget, rows: Arc<RowCache>) {
    assert_eq!(budget.used_by(Part::Rows), rows.stats().bytes);
    assert_eq!(budget.used(), rows.stats().bytes);
    drop(rows);
    assert_eq!(budget.used(), 0);
}

#[test]
fn a_row_is_found_by_its_run_and_key() {
    let budget = Budget::new(64 << 20);
    let rows = RowCache::new(&budget);
    assert!(rows.is_empty() && value_of(&rows, 1, b"a").is_none());
    rows.insert(&row(1, b"a", b"first"));
    rows.insert(&row(2, b"a", b"second"));
    rows.insert(&row(1, b"", b""));
    assert_eq!(value_of(&rows, 1, b"a").unwrap(), b"first");
    assert_eq!(value_of(&rows, 2, b"a").unwrap(), b"second");
    assert_eq!(value_of(&rows, 1, b"").unwrap(), b"");
    assert!(value_of(&rows, 3, b"a").is_none() && value_of(&rows, 1, b"b").is_none());
    let whole = |row: Row<'_>| (row.run, row.key.to_vec(), row.seq, row.kind, row.value.to_vec());
    let expected = (RunId(2), b"a".to_vec(), SeqNo(7), MessageKind::Put, b"second".to_vec());
    assert_eq!(rows.get(RunId(2), b"a", whole).unwrap(), expected);
    assert_eq!(rows.stats().hits, 4);
    // Another part takes all of the memory.
    drop(budget.reserve(Part::Memtable, 64 << 20));
    assert!(rows.is_empty() && value_of(&rows, 1, b"a").is_none());
    check_accounts(&budget, rows);
}

#[test]
fn a_long_row_is_not_kept() {
    let budget = Budget::new(64 << 20);
    let rows = RowCache::new(&budget);
    rows.insert(&row(1, b"fits", &[1; 1020]));
    rows.insert(&row(1, b"long", &[1; 1021]));
    assert_eq!(value_of(&rows, 1, b"fits").unwrap(), [1; 1020]);
    assert!(value_of(&rows, 1, b"long").is_none());
    check_accounts(&budget, rows);
}

/// Looks ten thousand rows up again and again, beside a stream of other rows, ten times as many as
/// fit. The ten thousand rows stay, and few of the others do.
#[test]
fn rows_that_are_read_stay() {
    let budget = Budget::new(64 << 20);
    let rows = RowCache::new(&budget);
    let key = |n: u64| n.to_be_bytes();
    let look_up = |n: u64| {
        let found = value_of(&rows, 1, &key(n)).is_some();
        if !found {
            rows.insert(&row(1, &key(n), &[5; 100]));
        }
        found
    };
    let mut hot_hits = 0;
    for n in 0..500_000 {
        hot_hits += u64::from(look_up(n * 7 % 10_000));
        look_up(1_000_000 + n);
    }
    assert!(hot_hits > 480_000, "{hot_hits} of 500,000");
    let cold = (1_000_000..1_500_000).filter(|&n| value_of(&rows, 1, &key(n)).is_some()).count();
    assert!(cold < 60_000, "{cold} rows that were read once");
    check_accounts(&budget, rows);
}

/// Every row found is the row that was inserted, while bundles come and go and other parts of the
/// budget take and return memory.
#[test]
fn no_answer_is_wrong_and_no_byte_is_lost() {
    let seed = 5;
    println!("seed {seed}");
    let mut prng = Prng::new(seed);
    let budget = Budget::new(4 << 20);
    let rows = RowCache::new(&budget);
    let (mut model, mut memtable) = (BTreeMap::new(), budget.reserve(Part::Memtable, 0));
    let mut found = 0;
    for round in 0..60_000u64 {
        let (run, n) = (prng.below(3), prng.below(4_000) as u32);
        let key = vec![n as u8; n as usize % 40].into_iter().chain(n.to_be_bytes());
        let key: Vec<u8> = key.collect();
        let value =
            model.entry((run, key.clone())).or_insert_with(|| vec![round as u8; n as usize % 300]);
        match value_of(&rows, run, &key) {
            Some(cached) => {
                assert_eq!(cached, *value);
                found += 1;
            }
            None => rows.insert(&row(run, &key, value)),
        }
        rows.note_block_hit(RunId(run), prng.index(1000));
        rows.note_block_read();
        if round % 1000 == 0 {
            memtable.resize(prng.below(5 << 20));
        }
        assert!(budget.used() <= budget.total().max(memtable.bytes() + (32 << 10)));
    }
    assert!(found > 1_000, "{found}");
    drop(memtable);
    check_accounts(&budget, rows);
}

/// Point reads fill the cache with rows; then a load that only reads blocks takes the memory of the
/// rows back.
#[test]
fn rows_that_nobody_reads_yield_to_blocks() {
    let budget = Budget::new(16 << 20);
    let rows = RowCache::new(&budget);
    let key = |n: u64| n.to_be_bytes();
    for n in 0..400_000 {
        let hot = n * 7 % 10_000;
        if value_of(&rows, 1, &key(hot)).is_none() {
            rows.note_block_read();
            rows.insert(&row(1, &key(hot), &[5; 100]));
        }
    }
    let most = rows.stats().bytes;
    assert!(most > 1 << 20, "{most}");
    for n in 0..100_000 {
        rows.note_block_hit(RunId(2), n);
        rows.note_block_read();
    }
    let least = rows.stats().bytes;
    assert!(least <= (16 << 20) * 3 / 64, "{least} of {most}");
    check_accounts(&budget, rows);
}

/// A shard whose bundles were all freed gets memory from the other shards again.
#[test]
fn a_shard_without_rows_fills_again() {
    let budget = Budget::new(16 << 20);
    let rows = RowCache::new(&budget);
    let key = |n: u64| n.to_be_bytes();
    (0..50_000).for_each(|n| rows.insert(&row(1, &key(n), &[5; 100])));
    // All but a few bundles yield.
    drop(budget.reserve(Part::Memtable, (16 << 20) - (64 << 10)));
    (0..50_000).for_each(|n| rows.insert(&row(2, &key(n), &[6; 100])));
    let newest = (49_900..50_000).filter(|&n| value_of(&rows, 2, &key(n)).is_some()).count();
    assert_eq!(newest, 100);
    check_accounts(&budget, rows);
}
