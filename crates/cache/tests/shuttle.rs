//! Explores schedules of eviction under pressure: `RUSTFLAGS="--cfg shuttle" cargo test`.
#![cfg(shuttle)]

use std::sync::atomic::{AtomicU64, Ordering};

use frondb_cache::{Cache, CacheKey, CacheOptions, Priority};
use frondb_core::RunId;
use frondb_core::budget::{Budget, Part};
use frondb_core::sync::Arc;
use shuttle::thread;

fn key(block: u32) -> CacheKey {
    CacheKey::block(RunId(1), block)
}

/// Entries evicted in all schedules: a test without any eviction would prove nothing.
static EVICTED: AtomicU64 = AtomicU64::new(0);

/// Two inserters, one of which also removes an entry, and a part of the budget that
/// shrinks and grows: in every schedule the values are right, the byte counts are exact, and the
/// final sum is within the total. While that part has its initial size, all entries fit into the
/// total; with its final size, three of them fit.
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
