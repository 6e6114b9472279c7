//! Explores schedules of eviction under pressure: `RUSTFLAGS="--cfg shuttle" cargo test`.
#![cfg(shuttle)]

use std::sync::atomic::{AtomicU64, Ordering};

use frondb_cache::{Cache, CacheKey, CacheOptions, Priority, Row, RowCache};
use frondb_core::budget::{Budget, Part};
use frondb_core::sync::Arc;
use frondb_core::{MessageKind, RunId, SeqNo};
use shuttle::thread;

fn key(block: u32) -> CacheKey {
    CacheKey::block(RunId(1), block)
}

/// Entries evicted in all schedules: a test without any eviction would prove nothing.
static EVICTED: AtomicU64 = AtomicU64::new(0);

/// Two threads insert entries, one of them also removes an entry, and a third thread shrinks and
/// grows another part of the budget. In every schedule the values are right, the byte counts are
/// exact, and the final sum is within the total. While the other part has its initial size, all
/// entries fit into the total; with its final size, only some of them fit.
fn pressure_against_inserts() {
    let budget = Budget::new(4_000);
    let cache: Arc<Cache<u32>> =
        Cache::new(Arc::clone(&budget), CacheOptions { shards: 2, floor_divisor: 16 });
    let inserters: Vec<_> = (0..2)
        .map(|thread| {
            let cache = Arc::clone(&cache);
            thread::spawn(move || {
                for block in 0..6 {
                    let key = key(block);
                    match cache.get(key) {
                        Some(value) => assert_eq!(value, block),
                        None => cache.insert(key, block, 100, Priority::Meta),
                    }
                    if thread == 1 && block == 2 {
                        cache.remove(key);
                    }
                }
            })
        })
        .collect();
    let grower = {
        let budget = Arc::clone(&budget);
        thread::spawn(move || {
            let mut memtable = budget.reserve(Part::Memtable, 1_000);
            memtable.shrink(500);
            memtable.grow(2_500);
            memtable
        })
    };
    for inserter in inserters {
        inserter.join().unwrap();
    }
    let memtable = grower.join().unwrap();
    let stats = cache.stats();
    EVICTED.fetch_add(stats.evictions, Ordering::Relaxed);
    assert_eq!(budget.used(), stats.bytes + memtable.bytes());
    assert!(budget.used() <= budget.total(), "{budget:?}");
    drop(memtable);
    drop(cache);
    assert_eq!(budget.used(), 0);
}

#[test]
fn every_schedule_keeps_the_accounts() {
    shuttle::check_random(pressure_against_inserts, 2_000);
    assert!(EVICTED.load(Ordering::Relaxed) > 0);
}

#[test]
fn every_schedule_with_few_switches_keeps_the_accounts() {
    shuttle::check_pct(pressure_against_inserts, 2_000, 3);
    assert!(EVICTED.load(Ordering::Relaxed) > 0);
}

/// Two threads look rows up and insert them, while a third thread reserves the whole budget for
/// another part and releases it. In every schedule the values are right and the bytes are counted
/// exactly.
fn rows_under_pressure() {
    let budget = Budget::new(200_000);
    let rows = RowCache::new(&budget);
    let readers: Vec<_> = (0..2u8)
        .map(|thread| {
            let rows = Arc::clone(&rows);
            thread::spawn(move || {
                for n in 0..24u8 {
                    let (run, key) = (RunId(1), [n % 18 + thread]);
                    let value = [key[0]; 900];
                    match rows.get(run, &key, |row| row.value == value) {
                        Some(is_right) => assert!(is_right),
                        None => {
                            let (seq, kind) = (SeqNo(1), MessageKind::Put);
                            rows.insert(&Row { run, key: &key, seq, kind, value: &value });
                        }
                    }
                }
            })
        })
        .collect();
    let grower = {
        let budget = Arc::clone(&budget);
        thread::spawn(move || drop(budget.reserve(Part::Memtable, 200_000)))
    };
    for reader in readers {
        reader.join().unwrap();
    }
    grower.join().unwrap();
    ROW_HITS.fetch_add(rows.stats().hits, Ordering::Relaxed);
    assert_eq!(budget.used_by(Part::Rows), rows.stats().bytes);
    drop(rows);
    assert_eq!(budget.used(), 0);
}

static ROW_HITS: AtomicU64 = AtomicU64::new(0);

#[test]
fn every_schedule_finds_the_rows_that_were_inserted() {
    shuttle::check_random(rows_under_pressure, 500);
    shuttle::check_pct(rows_under_pressure, 500, 3);
    assert!(ROW_HITS.load(Ordering::Relaxed) > 0);
}
